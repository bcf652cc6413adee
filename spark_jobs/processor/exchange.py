"""The exchange: groups that cross partitions, finished by the exchange partition that owns them.

`ExchangeProcessor` is a processor over `penstock.exchange` whose position is its own offset, and
which drops what a producer sends twice. What arrives there is sent by `exchange_sender`.
"""

from __future__ import annotations

import io
import json

import polars as pl

from penstock import names, traces
from penstock.errors import SchemaError
from penstock.records import ControlRecord, ExchangeRecord, decode
from penstock.sql.plan import StreamPlan
from spark_jobs.history import StoredHistory, TableHistory
from spark_jobs.input import Records
from spark_jobs.processor.own_groups import OwnGroups
from spark_jobs.processor.processor import PartitionProcessor
from spark_jobs.processor.result_batcher import ResultBatcher
from spark_jobs.processor.route import Route
from spark_jobs.processor.stream import LiveStream
from spark_jobs.replay import Position
from spark_jobs.state import Snapshot
from spark_jobs.virtual_history import VirtualHistory
from spark_jobs.worker import Worker


def _announced(stream_id: int) -> str:
    return f"on {stream_id}"


def _begun(stream_id: int) -> str:
    return f"begun {stream_id}"


class ExchangeProcessor(PartitionProcessor):
    """All exchange streams, on one partition of the exchange."""

    reader = "exchange"

    def __init__(
        self,
        worker: Worker,
        directory: str,
        topic: str,
        topic_id: int,
        partition: int,
        first_time: int,
    ) -> None:
        #: topics of a new generation that have been heard of
        self._turned: set[str] = set()
        #: while a chunk is worked on: what had been seen before it of the producers in it
        self._before: dict[str, Position] = {}
        super().__init__(worker, directory, topic, topic_id, partition, first_time)

    def process_records(self, records: Records) -> None:
        frames: dict[int, list[pl.DataFrame]] = {}
        followed: dict[int, str] = {}
        for i in range(len(records)):
            offset = int(records.offsets[i])
            value = records.values[i]
            try:
                record = decode(ExchangeRecord, value)
                rows = pl.read_ipc_stream(io.BytesIO(record.rows))
            except (SchemaError, pl.exceptions.PolarsError) as error:
                self.bury(records, i, "E_MALFORMED", str(error))
                continue
            self._before.setdefault(record.producer, self._seen.get(record.producer, (-1, -1)))
            if traces.COLUMN in rows.columns:
                followed[record.stream] = str(rows[traces.COLUMN][0])
                rows = rows.drop(traces.COLUMN)
            if not self.repeated(record.producer, record.offset, record.ordinal):
                frames.setdefault(record.stream, []).append(
                    rows.with_columns(_record=pl.lit(offset, dtype=pl.Int64))
                )
        first = int(records.offsets[0])
        last = int(records.offsets[-1])
        batcher = ResultBatcher()
        for stream_id, parts in frames.items():
            stream = self.streams.get(stream_id)
            if stream is not None:
                rows = pl.concat(parts, how="diagonal")
                steps = pl.struct("_record", "_step").rle_id().cast(pl.UInt32)
                rows = self._full(stream.plan, rows.with_columns(_step=steps).drop("_record"))
                stream.apply(rows, first, last, batcher, followed.get(stream_id))
        batcher.flush()
        self._before = {}

    @staticmethod
    def _full(plan: StreamPlan, rows: pl.DataFrame) -> pl.DataFrame:
        """*rows* with all source columns: those that the plan does not read are not sent."""
        lacking = [
            c for c in (*plan.source.columns, *plan.source.tags) if c.name not in rows.columns
        ]
        return (
            rows.with_columns(pl.lit(None).cast(c.type.polars()).alias(c.name) for c in lacking)
            if lacking
            else rows
        )

    def forward(self, control: ControlRecord, offset: int) -> None:
        """Nobody comes behind the exchange; but every announcement of a stream says where it begins
        in a source partition.
        """
        if (
            control.kind == "stream_on"
            and control.stream in self.streams
            and control.producer is not None
        ):
            self._note_begin(control.stream, control.producer.split(":", 2)[2], control.offset)
        if (
            control.kind == "stream_on"
            and control.stream in self.streams
            and _announced(control.stream) in self._waiting
        ):
            self._hear(self.streams[control.stream], control, offset)

    def _note_begin(self, stream_id: int, where: str, offset: int) -> None:
        known = self._waiting.setdefault(_begun(stream_id), [])
        if all(k.rpartition("@")[0] != where for k in known):
            known.append(f"{where}@{offset}")

    def ended(self, stream_id: int) -> None:
        for key in (_begun(stream_id), _announced(stream_id)):
            self._waiting.pop(key, None)

    def barrier(self, control: ControlRecord, offset: int) -> None:
        """Passed when it has come from every partition of its source topic."""
        try:
            origin = json.loads(control.body)
            needed = int(origin["partitions"])
            key = f"{control.id} {origin['topic']}"
        except (ValueError, KeyError, TypeError):
            return  # not one that a scan passed on
        heard = self._waiting.setdefault(key, [])
        if control.producer is not None and control.producer not in heard:
            heard.append(control.producer)
        if len(heard) >= needed:
            del self._waiting[key]
            self.outbox.then(
                lambda _: self.worker.report_barrier(
                    control.id, f"{self.reader}:{self.topic}:{self.partition}", offset
                )
            )

    def show(self, control: ControlRecord) -> None:
        """Answered when the question has come from every partition of its source topic."""
        topic = (control.producer or "").split(":", 2)[-1].rpartition(":")[0]
        heard = self._waiting.setdefault(f"open {control.id} {topic}", [])
        heard.append(control.producer or "")
        if len(set(heard)) >= self.worker.catalog.catalog.topics().get(topic, 1):
            del self._waiting[f"open {control.id} {topic}"]
            super().show(control)

    def plans(self) -> list[StreamPlan]:
        return [s.plan for s in self.worker.catalog.catalog.streams() if s.plan.path == "exchange"]

    def outputs(self, plan: StreamPlan) -> dict[str, int]:
        table = self.worker.catalog.catalog.table_by_id(plan.target.table_id)
        target = {} if table is None else {table.topic: table.partitions}
        return {**target, names.EVENTS: names.BUILT_IN_TOPICS[names.EVENTS]}

    def begun(self, stream: LiveStream, offset: int) -> None:
        """Whether there is history to fill is known when every source partition has announced the
        stream.
        """
        if stream.plan.fill_history:
            self._waiting[_announced(stream.id)] = []
            self.hold(stream, offset)

    def tables(self, table_id: int) -> set[str]:
        return set()

    def inherited(self) -> Snapshot | None:
        return None

    def turned(self, control: ControlRecord, offset: int) -> bool:
        """The source of streams goes on in another topic: what they read again is in that one
        now.
        """
        if control.kind != "begin":
            return False
        catalog = self.worker.catalog.catalog
        topic = control.body
        if topic not in self._turned:
            self._turned.add(topic)
            mine = [
                s
                for s in self.streams.values()
                if s.status != "failed" and topic in catalog.source_topics(s.plan)
            ]
            if mine and self._dirty:
                self.snapshot()
            for stream in mine:
                stream.alter(stream.text, self.history(stream.plan))
                self.touch(stream)
        return True

    def _hear(self, stream: LiveStream, control: ControlRecord, offset: int) -> None:
        """History is what lies before the announcements, once they have come from all source
        partitions.
        """
        heard = self._waiting[_announced(stream.id)]
        heard.append(f"{(control.producer or '').rpartition(':')[2]}:{control.offset}")
        table = self.worker.catalog.catalog.table_by_id(stream.plan.source.table_id)
        if table is not None and len(heard) >= table.partitions:
            until = json.dumps({p: int(o) for p, _, o in (h.partition(":") for h in heard)})
            self.begin_history(stream, until, offset)
            del self._waiting[_announced(stream.id)]

    def history(self, plan: StreamPlan) -> StoredHistory | None:
        def bounds(topic: str, partitions: int) -> dict[int, int]:
            producers = {
                p: names.exchange_producer(plan.stream_id, topic, p) for p in range(partitions)
            }
            stamps = {
                p: self._before.get(name) or self._seen.get(name, (-1, -1))
                for p, name in producers.items()
            }
            # of a partition that has taken the place of another and has sent nothing yet, all below
            # its beginning was in the other
            first = self.worker.catalog.catalog.begins(topic)
            return {p: max(offset + 1, first.get(p, 0)) for p, (offset, _) in stamps.items()}

        def begins(topic: str) -> dict[int, int]:
            known = {
                w: int(offset)
                for w, _, offset in (
                    line.rpartition("@") for line in self._waiting.get(_begun(plan.stream_id), ())
                )
            }
            lineage = self.worker.catalog.catalog.lineage(topic)
            wheres = {p: [f"{t}:{p % n}" for t, n in lineage] for p in range(lineage[0][1])}
            return {
                p: known[next(w for w in ws if w in known)]
                for p, ws in wheres.items()
                if known.keys() & set(ws)
            }

        route = Route(plan)
        if plan.source.kind == "virtual":
            return OwnGroups(
                VirtualHistory(self.worker, plan.source, bounds, begins), route, self.partition
            )
        table = self.worker.catalog.catalog.table_by_id(plan.source.table_id)
        topic, partitions = ("", 0) if table is None else (table.topic, table.partitions)
        held = self.worker.stored_names(plan.source.table_id)
        stored = TableHistory(
            self.worker,
            plan.source,
            topic,
            lambda: bounds(topic, partitions),
            lambda: begins(topic),
            held,
        )
        return OwnGroups(stored, route, self.partition)

    def stored(self, plan: StreamPlan) -> TableHistory | None:
        return None

    def precedes(self, control: ControlRecord, stream: LiveStream) -> bool:
        """The first source partition that announces a stream makes it begin here; another may still
        be on its way there.
        """
        if control.kind != "delete" or control.producer is None:
            return False
        where = control.producer.split(":", 2)[2]
        topic, _, partition = where.rpartition(":")
        # of one that has taken the place of another, the other may have announced it
        wheres = {
            where,
            *(
                f"{t}:{int(partition) % n}"
                for t, n in self.worker.catalog.catalog.lineage(topic)
                if n
            ),
        }
        return wheres.isdisjoint(
            known.rpartition("@")[0] for known in self._waiting.get(_begun(stream.id), ())
        )

    def concerns(self, stream: LiveStream, control: ControlRecord) -> bool:
        if control.kind == "tick":
            return stream.timed
        return control.table is None or control.table == stream.plan.source.table_id

"""The exchange: groups that cross partitions, finished by the exchange partition that owns them.

`ExchangeProcessor` is a processor over `penstock.exchange` whose position is its own offset, and
which drops what a producer sends twice. What arrives there is sent by `exchange_sender`.
"""

from __future__ import annotations

import dataclasses
import io
import json

import polars as pl

from penstock import names
from penstock.errors import SchemaError
from penstock.records import ControlRecord, ExchangeRecord, decode
from penstock.runtime import traces
from penstock.sql.plan import TICKS_PER_SECOND, StreamPlan
from penstock.windows.kernel import EARLIEST, Control
from spark_jobs.history import StoredHistory, TableHistory
from spark_jobs.input import Records
from spark_jobs.processor.clocks import Clocks, told_by
from spark_jobs.processor.own_groups import OwnGroups
from spark_jobs.processor.processor import PartitionProcessor
from spark_jobs.processor.result_batcher import ResultBatcher
from spark_jobs.processor.route import Route
from spark_jobs.processor.stream import LiveStream
from spark_jobs.replay import NOTHING, Position
from spark_jobs.state import Snapshot
from spark_jobs.virtual_history import VirtualHistory
from spark_jobs.worker import Worker


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
        self._clocks = Clocks(self.pending)

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
            self._before.setdefault(
                record.producer, self.positions.seen.get(record.producer, NOTHING)
            )
            if traces.COLUMN in rows.columns:
                followed[record.stream] = str(rows[traces.COLUMN][0])
                rows = rows.drop(traces.COLUMN)
            if not self.positions.is_repeat(record.producer, record.offset, record.ordinal):
                frames.setdefault(record.stream, []).append(
                    rows.with_columns(_record=pl.lit(offset, dtype=pl.Int64))
                )
        first = int(records.offsets[0])
        last = int(records.offsets[-1])
        batcher = ResultBatcher()
        for stream_id, parts in frames.items():
            stream = self.streams.by_id.get(stream_id)
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
        stream = self.streams.by_id.get(control.stream or 0)
        if control.kind != "stream_on" or stream is None:
            return
        if control.producer is not None:
            where = control.producer.split(":", 2)[2]
            self.pending.note_begin(stream.id, where, control.offset)
        if self.pending.awaits_announcements(stream.id):
            self._hear(stream, control, offset)

    def end_stream(self, stream_id: int) -> None:
        self.pending.forget_announcements(stream_id)
        timed = (s.plan for s in self.streams.by_id.values() if s.timed)
        self._clocks.keep(set().union(*map(self._owners, timed)))

    def pass_barrier(self, control: ControlRecord, offset: int) -> None:
        """Pass a barrier when it has come from every partition of its source topic."""
        try:
            origin = json.loads(control.body)
            partitions = int(origin["partitions"])
            topic = str(origin["topic"])
        except (ValueError, KeyError, TypeError):
            return  # not one that a scan passed on
        if self.pending.hear_barrier(control.id, topic, control.producer, partitions):
            self.report_barrier(control, offset)

    def show_open_windows(self, control: ControlRecord) -> None:
        """Answer when the question has come from every partition of its source topic."""
        producer = control.producer or ""
        topic = producer.split(":", 2)[-1].rpartition(":")[0]
        partitions = self.worker.catalog.catalog.topics().get(topic, 1)
        if self.pending.hear_question(control.id, topic, producer, partitions):
            super().show_open_windows(control)

    def plans(self) -> list[StreamPlan]:
        return [s.plan for s in self.worker.catalog.catalog.streams() if s.plan.path == "exchange"]

    def outputs(self, plan: StreamPlan) -> dict[str, int]:
        table = self.worker.catalog.catalog.table_by_id(plan.target.table_id)
        target = {} if table is None else {table.topic: table.partitions}
        return {**target, names.EVENTS: names.BUILT_IN_TOPICS[names.EVENTS]}

    def begin_stream(self, stream: LiveStream, offset: int) -> None:
        """Hold a stream that fills its history until every source partition has announced it: only
        then is it known what there is to fill.
        """
        if stream.plan.fill_history:
            self.pending.await_announcements(stream.id)
            self.filler.hold(stream, offset)

    def tables(self, table_id: int) -> set[str]:
        return set()

    def inherit_state(self) -> Snapshot | None:
        return None

    def apply_generation_control(self, control: ControlRecord, offset: int) -> bool:
        """Have streams read again from another topic, if their source goes on there."""
        if control.kind != "begin":
            return False
        catalog = self.worker.catalog.catalog
        topic = control.body
        if topic not in self._turned:
            self._turned.add(topic)
            mine = [
                s
                for s in self.streams.by_id.values()
                if s.status != "failed" and topic in catalog.source_topics(s.plan)
            ]
            if mine:
                self.snapshot_if_dirty()
            for stream in mine:
                self.streams.alter(stream, stream.text)
        return True

    def _hear(self, stream: LiveStream, control: ControlRecord, offset: int) -> None:
        """Fill a stream's history, which is what lies before its announcements, once they have come
        from all source partitions.
        """
        partition = (control.producer or "").rpartition(":")[2]
        heard = self.pending.add_announcement(stream.id, partition, control.offset)
        table = self.worker.catalog.catalog.table_by_id(stream.plan.source.table_id)
        if table is not None and self.pending.count_announcements(stream.id) >= table.partitions:
            self.filler.begin(stream, json.dumps(heard), offset)
            self.pending.end_announcements(stream.id)

    def history(self, plan: StreamPlan) -> StoredHistory | None:
        def bounds(topic: str, partitions: int) -> dict[int, int]:
            producers = {
                p: names.exchange_producer(plan.stream_id, topic, p) for p in range(partitions)
            }
            seen = self.positions.seen
            positions = {
                p: self._before.get(name) or seen.get(name, NOTHING)
                for p, name in producers.items()
            }
            # of a partition that has taken the place of another and has sent nothing yet, all below
            # its beginning was in the other
            first = self.worker.catalog.catalog.begins(topic)
            return {p: max(offset + 1, first.get(p, 0)) for p, (offset, _) in positions.items()}

        def begins(topic: str) -> dict[int, int]:
            known = self.pending.begins(plan.stream_id)
            lineage = self.worker.catalog.catalog.lineage(topic)
            wheres = {p: [f"{t}:{p % n}" for t, n in lineage] for p in range(lineage[0][1])}
            return {
                p: known[next(w for w in ws if w in known)]
                for p, ws in wheres.items()
                if known.keys() & set(ws)
            }

        route = Route(plan, self.worker.kernels.tables)
        if plan.source.kind == "virtual":
            return OwnGroups(
                VirtualHistory(self.worker, plan.source, bounds, begins),
                route,
                self.place.partition,
            )
        table = self.worker.catalog.catalog.table_by_id(plan.source.table_id)
        topic, partitions = ("", 0) if table is None else (table.topic, table.partitions)
        held = self.worker.names_in_storage(plan.source.table_id)
        stored = TableHistory(
            self.worker,
            plan.source,
            topic,
            lambda: bounds(topic, partitions),
            lambda: begins(topic),
            held,
        )
        return OwnGroups(stored, route, self.place.partition)

    def source_rows(self, plan: StreamPlan) -> TableHistory | None:
        return None

    def precedes(self, control: ControlRecord, stream: LiveStream) -> bool:
        """See `PartitionProcessor`. The first source partition that announces a stream makes it
        begin here; another may still be on its way there.
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
        return wheres.isdisjoint(self.pending.begins(stream.id))

    def concerns(self, stream: LiveStream, control: ControlRecord) -> bool:
        if control.kind == "tick":
            # all streams share the exchange: others' time is no business of this one
            owner = told_by(control)
            return stream.timed and (owner is None or owner in self._owners(stream.plan))
        return control.table is None or control.table == stream.plan.source.table_id

    def hear_tick(self, control: ControlRecord) -> None:
        self._clocks.hear(control)

    def kernel_control(self, control: ControlRecord, plan: StreamPlan) -> Control:
        made = super().kernel_control(control, plan)
        if control.kind != "tick" or not control.body:
            return made
        come = self._clocks.lowest(self._owners(plan))
        per_second = TICKS_PER_SECOND[plan.source.precision]
        settled = come if come == EARLIEST else come * per_second // 1000
        return dataclasses.replace(made, settled=settled)

    def _owners(self, plan: StreamPlan) -> set[int]:
        """Return the ids of the databases and tables that a stream's source topics were made for,
        which are the same for all generations of a topic.
        """
        catalog = self.worker.catalog.catalog
        return {catalog.topic_owner(topic) for topic in catalog.source_topics(plan)}

"""The scan of an ingestion topic's partition: rows of its tables, decoded once, to every stream
over them. Records that no stream reads are deferred and checked together.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from penstock import names
from penstock.coordination import redis_link
from penstock.errors import StateError
from penstock.records import ControlRecord
from penstock.rows.partition import partition as place
from penstock.sql.plan import StreamPlan
from spark_jobs.history import StoredHistory, TableHistory
from spark_jobs.input import Records
from spark_jobs.processor.deferred import Deferred
from spark_jobs.processor.exchange_sender import ExchangeSender
from spark_jobs.processor.generation import inherit
from spark_jobs.processor.intake import Intake, distinct
from spark_jobs.processor.processor import PartitionProcessor
from spark_jobs.processor.result_batcher import ResultBatcher
from spark_jobs.processor.route import newest
from spark_jobs.processor.stream import LiveStream
from spark_jobs.state import Snapshot, StateFiles
from spark_jobs.worker import Worker

#: deferred records that are worked on together at the latest, and their bytes: with many streams
#: most are of tables of their own
_MOST_DEFERRED = 512
_MOST_DEFERRED_BYTES = 8 << 20
#: how long the catalog may be behind the topic that it names
_CATALOG_PATIENCE = 20.0


class ScanProcessor(PartitionProcessor):
    """All streams over the tables of one topic, on one partition."""

    reader = "scan"

    def __init__(
        self,
        worker: Worker,
        directory: str,
        topic: str,
        topic_id: int,
        partition: int,
        first_time: int,
    ) -> None:
        #: by table and the columns that a plan knows of it: a table may have got others since
        self._histories: dict[Hashable, TableHistory] = {}
        self._deferred = Deferred()
        #: under which key, and at which offset, to say that the partition has ended
        self._ending: tuple[str, int] | None = None
        super().__init__(worker, directory, topic, topic_id, partition, first_time)
        self._intake = Intake(self)
        self._sender = ExchangeSender(self)

    # ---------------------------------------------------------------- data

    def process_records(self, records: Records) -> None:
        read = {
            table
            for stream in self.streams.by_id.values()
            for table in stream.plan.source.table_ids
        }
        present = distinct(records.ids)
        unread = [schema_id for schema_id in present if self._is_unread(schema_id, read)]
        if unread and not self.suspects(int(records.offsets[0])):
            if len(unread) == len(present):
                self._deferred.add(records)
                return
            deferred = np.isin(records.ids, unread)
            self._deferred.add(records.choose(np.flatnonzero(deferred).tolist()))
            records = records.choose(np.flatnonzero(~deferred).tolist())
        if len(records):
            self._compute(records)

    def _is_unread(self, schema_id: int, read: set[int]) -> bool:
        """Return True if records under *schema_id* are of a table that is known and none of
        *read*.
        """
        found = self.worker.catalog.catalog.schema(schema_id)
        return found is not None and found[0].id not in read

    @property
    def has_deferred_enough(self) -> bool:
        deferred = self._deferred
        return deferred.count >= _MOST_DEFERRED or deferred.size >= _MOST_DEFERRED_BYTES

    def process_deferred(self) -> None:
        """Look into the records that no stream reads, most of them the processor's own streams'
        results on their way to the store.

        Alone a record costs as much as dozens do together, and for these nobody waits. But what is
        wrong with them has to be told, and how far their producers are has to be known, before a
        control changes who reads and before a state says that they are done.
        """
        if self._deferred.count:
            records = self._deferred.take()
            with self.at_work(int(records.offsets[0]), int(records.offsets[-1])):
                self.worker.failpoints.reach("mid_settle")
                if not self._intake.check_only(records):
                    self._compute(records)

    def _compute(self, records: Records) -> None:
        """Feed the streams with the rows of *records* and publish what comes of them."""
        taken = self._intake.take(records)
        first = int(records.offsets[0])
        last = int(records.offsets[-1])
        streams = [s for s in self.streams.by_id.values() if s.status != "failed"]
        batcher = ResultBatcher()
        for part in taken:
            readers = _readers(streams, part.table_id)
            reading = [s for s in readers if not s.take_few(part.given, first, last)]
            if reading:
                with self.worker.kernels.answers.among(part.rows, len(reading)):
                    for stream in reading:
                        stream.apply(part.rows, first, last, batcher, newest([part]))
        batcher.flush()
        for stream in streams:
            if stream.plan.path == "exchange":
                self._sender.rows(stream, taken, first, last)

    # ---------------------------------------------------------------- generations

    def inherit_state(self) -> Snapshot | None:
        """Return the part of the state of an earlier generation's partition that belongs to this
        one.
        """
        if names.generation(self.place.topic) == 1:
            return None
        self.worker.await_catalog(lambda c: bool(c.begins(self.place.topic)), _CATALOG_PATIENCE)
        catalog = self.worker.catalog.catalog
        home = catalog.database_of_topic(self.place.topic)
        begins = catalog.begins(self.place.topic)
        if home is None or self.place.partition not in begins:
            raise StateError(
                f"{self.place.topic}[{self.place.partition}]: the catalog does not say"
                " what it took the place of"
            )
        (_, partitions), (former, number) = catalog.lineage(self.place.topic)[:2]
        directory = names.state_directory(
            self.worker.settings.state_dir, str(home.id), former, self.place.partition % number
        )
        parent = StateFiles(directory).load()
        if parent is None:
            self.log.error(
                "the state to go on with is gone: restore it, or create the streams again",
                former=former,
            )
            return None
        counts = self.place.partition < number
        made = inherit(
            parent,
            self.worker.plan,
            self.place.partition,
            partitions,
            begins[self.place.partition],
            counts=counts,
        )
        self.log.info("state taken over", former=former, next=made.next)
        return made

    def apply_generation_control(self, control: ControlRecord, offset: int) -> bool:
        # what an earlier database of this name has left there is not about this one
        own = control.id == names.move(self.place.topic_id, names.generation(self.place.topic) + 1)
        if control.kind == "close" and own:
            self.pending.close(offset)
        elif control.kind == "end" and own:
            self._ending = (control.id, self.pending.end(offset))
        elif control.kind == "begin":
            self._begin(offset)
            self._sender.control(control, offset)
        # what a closed partition may still do is to let results through, and barriers behind them
        return control.kind in ("close", "end", "begin") or (
            self.pending.closed and control.kind != "barrier"
        )

    def _begin(self, offset: int) -> None:
        """Report all streams live here, and what the old partition said of them as this one's."""
        former, number = self.worker.catalog.catalog.lineage(self.place.topic)[1]
        for stream in self.streams.by_id.values():
            self.report_live(stream.id, offset)
            self.worker.report_streams([stream.progress()])
            if self.place.partition < number:
                key = names.stream_status(stream.id)
                field = f"{names.STATS}{former}:{self.place.partition}"
                self.worker.report(lambda r, k=key, f=field: r.hdel(k, f))  # type: ignore[misc]

    def finish_chunk(self) -> None:
        if self._ending is not None:
            (key, offset), self._ending = self._ending, None
            self.keep()
            self.worker.report_ended(key, f"{self.reader}:{self.place.partition}", offset)

    # ------------------------------------------------------------ the rest of a processor's answers

    def forward(self, control: ControlRecord, offset: int) -> None:
        self._sender.control(control, offset)

    def pass_barrier(self, control: ControlRecord, offset: int) -> None:
        self._sender.control(control, offset)
        self.report_barrier(control, offset)

    def plans(self) -> list[StreamPlan]:
        tables = {t.id for t in self.worker.catalog.catalog.tables_of_topic(self.place.topic)}
        return [
            s.plan
            for s in self.worker.catalog.catalog.streams()
            if tables.intersection(s.plan.source.table_ids)
        ]

    def outputs(self, plan: StreamPlan) -> dict[str, int]:
        if plan.path == "exchange":
            return {names.EXCHANGE: names.BUILT_IN_TOPICS[names.EXCHANGE]}
        table = self.worker.catalog.catalog.table_by_id(plan.target.table_id)
        target = {} if table is None else {table.topic: table.partitions}
        return {**target, names.EVENTS: names.BUILT_IN_TOPICS[names.EVENTS]}

    def begin_stream(self, stream: LiveStream, offset: int) -> None:
        if not stream.plan.fill_history:
            return
        if stream.history is not None:
            self.filler.hold(stream, offset)
            self.filler.begin(stream, stream.history.mark(), offset)
        else:
            self._sender.announce_history(stream, offset)

    def tables(self, table_id: int) -> set[str]:
        found = {
            str(n) for n, _ in redis_link.hash_items(self.worker.redis, names.children(table_id))
        }
        partitions = self.worker.catalog.catalog.topics().get(self.place.topic, 1)
        mine = {n for n in found if place(n, partitions) == self.place.partition}
        return mine | self._intake.placement.tables_of(table_id)

    def end_stream(self, stream_id: int) -> None:
        """Histories are of tables, not of streams: they stay."""

    def history(self, plan: StreamPlan) -> StoredHistory | None:
        return None if plan.path == "exchange" else self.source_rows(plan)

    def source_rows(self, plan: StreamPlan) -> TableHistory | None:
        source = plan.source
        if source.kind == "virtual":
            return None
        key = (source.table_id, source.columns, source.tags)
        if key not in self._histories:
            held = self.worker.names_in_storage(source.table_id)
            self._histories[key] = TableHistory(
                self.worker,
                source,
                self.place.topic,
                lambda: {self.place.partition: self.positions.next},
                stored=held,
            )
        return self._histories[key]

    def concerns(self, stream: LiveStream, control: ControlRecord) -> bool:
        if control.kind == "tick":
            return stream.timed and stream.plan.path == "scan"
        return control.table is None or control.table == stream.plan.source.table_id


def _readers(streams: Sequence[LiveStream], table_id: int) -> list[LiveStream]:
    """Return those of *streams* whose kernels are here and read a table."""
    return [s for s in streams if s.plan.path == "scan" and s.plan.source.table_id == table_id]

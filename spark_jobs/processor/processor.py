"""A partition processor: the records of one topic-partition in offset order, its streams, its
state, its outputs.

Records are worked on in chunks (see `cutter`). The processor's own position is the truth: what lies
below it is skipped, what is missing above it is read from the log. It does not go on past a gap
that the log cannot fill.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from penstock import names
from penstock.errors import SchemaError
from penstock.records import ControlRecord, DeadLetter, decode, encode
from penstock.runtime import log
from penstock.sql.plan import StreamPlan
from penstock.windows.kernel import Control
from spark_jobs.history import StoredHistory, TableHistory
from spark_jobs.input import Records
from spark_jobs.output import Outbox
from spark_jobs.poison import Poison
from spark_jobs.processor.controls import apply_control, to_kernel_control
from spark_jobs.processor.cutter import cut
from spark_jobs.processor.gap import read_gap
from spark_jobs.processor.history_filler import HistoryFiller
from spark_jobs.processor.pending import Pending
from spark_jobs.processor.place import ProcessorPlace
from spark_jobs.processor.positions import Positions
from spark_jobs.processor.published import find_published
from spark_jobs.processor.snapshots import Snapshots
from spark_jobs.processor.stream import LiveStream
from spark_jobs.processor.streams import Streams
from spark_jobs.replay import Published, Replay
from spark_jobs.state import Snapshot, StateFiles
from spark_jobs.worker import Worker


class PartitionProcessor(ABC):
    """Work of one topic-partition from its first record in a task to the task's end."""

    #: name in barriers and dead letters
    reader: str

    def __init__(
        self,
        worker: Worker,
        directory: str,
        topic: str,
        topic_id: int,
        partition: int,
        first_time: int,
    ) -> None:
        self.worker = worker
        self.place = ProcessorPlace(topic, topic_id, partition)
        self.log = log.get(__name__, topic=topic, partition=partition)
        files = StateFiles(directory, worker.failpoints)
        owner = uuid.uuid4().hex
        self._poison = Poison(
            worker.settings.scratch_dir / "poison" / f"{topic}-{partition}", worker.driver
        )
        known = files.load() or self.inherit_state()
        state = known or Snapshot(-1)
        self.positions = Positions(state.next, state.time, state.seen)
        self.pending = Pending(state.waiting)
        clean = files.claim(owner, state.next) and known is not None
        found = [] if clean else self._find_published(state, first_time)
        self._replay = Replay([*state.pending, *found], max(state.next, 0))
        self.outbox = Outbox(worker.publisher, self._replay, worker.guard.enforce)
        self._snapshots = Snapshots(files, owner, self.outbox, state.ends)
        self.streams = Streams(worker, self.outbox, topic, partition, self.history)
        self.filler = HistoryFiller(
            worker,
            self.outbox,
            self.pending,
            topic,
            partition,
            self.place.forwarder,
            self.streams.touch,
        )
        self.streams.restore(state)
        if found or not clean:
            self.log.info(
                "partition processor opened",
                next=state.next,
                replay_until=self._replay.until,
                found=len(found),
            )

    # -------------------------------------------- what scans and exchange processors do differently

    @abstractmethod
    def process_records(self, records: Records) -> None:
        """Work on a run of data records."""

    @abstractmethod
    def forward(self, control: ControlRecord, offset: int) -> None:
        """Pass a control record on to whoever comes behind this processor."""

    @abstractmethod
    def pass_barrier(self, control: ControlRecord, offset: int) -> None:
        """Pass a barrier: all before it has been computed."""

    @abstractmethod
    def plans(self) -> list[StreamPlan]:
        """Return the plans in the catalog whose outputs this processor may have published."""

    @abstractmethod
    def outputs(self, plan: StreamPlan) -> dict[str, int]:
        """Return the topics that the processor writes for a stream, with their partitions."""

    @abstractmethod
    def history(self, plan: StreamPlan) -> StoredHistory | None:
        """Return what the stream's kernel may read again; None when it has no kernel in this
        processor.
        """

    @abstractmethod
    def tables(self, table_id: int) -> set[str]:
        """Return the tables of a supertable that this processor is known to hold rows of."""

    @abstractmethod
    def inherit_state(self) -> Snapshot | None:
        """Return the state to begin in if this processor takes the place of another, else None."""

    @abstractmethod
    def apply_generation_control(self, control: ControlRecord, offset: int) -> bool:
        """Return True if nothing else is to be done for a control: it is about the topic's
        generations, or of no effect because of one that was.
        """

    @abstractmethod
    def begin_stream(self, stream: LiveStream, offset: int) -> None:
        """Do what a stream's beginning here at *offset* asks for."""

    @abstractmethod
    def source_rows(self, plan: StreamPlan) -> TableHistory | None:
        """Return the rows of the source as this processor has them, for a stream that it passes on;
        None where it has none.
        """

    @abstractmethod
    def end_stream(self, stream_id: int) -> None:
        """Forget what is kept of a stream that was dropped."""

    @abstractmethod
    def concerns(self, stream: LiveStream, control: ControlRecord) -> bool:
        """Return True if a delete, or a control without a stream id, is for this stream."""

    def hear_tick(self, control: ControlRecord) -> None:
        """Take note of a tick; there is nothing to note where one partition tells the time."""
        return

    def kernel_control(self, control: ControlRecord, plan: StreamPlan) -> Control:
        """Return a control record as the kernel of *plan* takes it."""
        return to_kernel_control(control, plan)

    def precedes(self, control: ControlRecord, stream: LiveStream) -> bool:
        """Return True if a delete comes from before the stream's beginning, though it is heard
        after it.
        """
        return False

    @property
    def has_deferred_enough(self) -> bool:
        """So many records are deferred that they should be worked on."""
        return False

    def process_deferred(self) -> None:
        """Work on the records that `process_records` has deferred."""
        return

    def finish_chunk(self) -> None:
        """Do what had to wait until a chunk counted as taken in."""
        return

    # ---------------------------------------------------------------- records

    def feed(self, records: Records) -> None:
        """Work on the records that have not been worked on yet."""
        positions = self.positions
        if not len(records):
            return
        if positions.next < 0:
            positions.next = self._beginning(int(records.offsets[0]))
        skip = int(records.offsets.searchsorted(positions.next))
        if skip:
            records = records.slice(skip, len(records))
        if not len(records):
            return
        if int(records.offsets[0]) > positions.next:
            self._fill_gap(int(records.offsets[0]))
        for chunk in cut(records, self._replay, self._poison):
            self._process(chunk)
        self.outbox.check()

    def _beginning(self, first: int) -> int:
        """Return where a processor without state begins: at the log's start, though Spark's offsets
        are further when only the state was lost.
        """
        if not first:
            return 0
        place = (self.place.topic, self.place.partition)
        return min(first, self.worker.admin.start_offsets([place])[place])

    def _fill_gap(self, until: int) -> None:
        """Work on what lies between the own position and *until* in the log."""
        start = self.positions.next
        self.log.warning("reading a gap from the log", next=start, until=until)
        parts = read_gap(self.worker, self.place.topic, self.place.partition, start, until)
        for part in parts:
            # what the log has no record for (a transaction's marker) is no gap
            self.positions.next = int(part.offsets[0])
            self.feed(part)
        self.positions.next = until

    def _process(self, chunk: Records) -> None:
        first = int(chunk.offsets[0])
        is_control = bool(chunk.ids[0] == names.CONTROL_SCHEMA_ID)
        self.outbox.time = max(self.outbox.time, int(chunk.timestamps[-1]))
        if self._poison.is_given_up(first):
            self._give_up(chunk, is_control)
            return
        if is_control:
            self.process_deferred()
        with self.at_work(first, int(chunk.offsets[-1])):
            self.worker.failpoints.scan(chunk.values)
            if is_control:
                self._process_control(first, chunk)
            else:
                self.process_records(chunk)
            if self._replay:
                self.worker.failpoints.reach("mid_replay")
        self._advance(chunk)
        if self.has_deferred_enough:
            self.process_deferred()
        self.worker.failpoints.reach("after_produce", self.outbox.wait)

    def _advance(self, chunk: Records) -> None:
        self.positions.advance(chunk)
        self._replay.forget_below(self.positions.next)
        self.finish_chunk()

    @contextmanager
    def at_work(self, first: int, last: int) -> Iterator[None]:
        """Count a death inside for the records first..last."""
        self._poison.begin(first, last)
        yield
        self._poison.clear()

    def suspects(self, offset: int) -> bool:
        """Return True if the record is one of those of which one may have killed a predecessor."""
        return self._poison.suspects(offset)

    def _give_up(self, chunk: Records, is_control: bool) -> None:
        """Bury a record that kills; a stretch of history that does is given up with its stream."""
        self.bury(chunk, 0, "E_POISON", "the operator died three times at this record")
        if is_control:
            control = decode(ControlRecord, chunk.values[0])
            stream = self.streams.by_id.get(control.stream or 0)
            if control.kind == "fill" and stream is not None:
                self.filler.abandon(stream)
        self._advance(chunk)
        self.snapshot()

    def bury(self, records: Records, index: int, code: str, reason: str) -> None:
        """Send a record that cannot be used to the dead letters."""
        self.post(DeadLetter.of(records, index, self.reader, code, reason))

    def post(self, dead_letter: DeadLetter) -> None:
        """Send a dead letter."""
        self.outbox.post(names.DEAD_LETTER, encode(dead_letter), partition=0)

    # ---------------------------------------------------------------- controls and streams

    def _process_control(self, offset: int, chunk: Records) -> None:
        try:
            control = decode(ControlRecord, chunk.values[0])
        except SchemaError as error:
            self.bury(chunk, 0, error.code, str(error))
            return
        if not self.positions.is_repeat(control.producer, control.offset, control.ordinal):
            apply_control(self, control, offset)

    def drop_stream(self, stream_id: int) -> None:
        """Forget a stream."""
        self.streams.drop(stream_id)
        self.pending.end_filling(stream_id)
        self.end_stream(stream_id)

    def report_live(self, stream_id: int, offset: int) -> None:
        """Say that a stream is live here from *offset* on."""
        self.worker.report_stream(stream_id, str(self.place), offset)

    def report_barrier(self, control: ControlRecord, offset: int) -> None:
        """Say that a barrier was passed, once all before it is in the log."""
        field = f"{self.reader}:{self.place}"
        self.outbox.then(lambda _: self.worker.report_barrier(control.id, field, offset))

    def show_open_windows(self, control: ControlRecord) -> None:
        """Answer with the windows of a stream that are open at this place of the log."""
        stream = self.streams.by_id.get(control.stream or 0)
        if stream is not None and (stream.route is None or self.reader == "exchange"):
            self.worker.report_open(control.id, str(self.place), stream.open_windows())

    # ---------------------------------------------------------------- state

    @property
    def due(self) -> float | None:
        """Seconds until a snapshot is wanted; None when nothing has changed."""
        if not self.positions.dirty:
            return None
        return self._snapshots.due(self.worker.settings.snapshot_seconds)

    def snapshot_if_due(self) -> None:
        """Take a snapshot when it is time."""
        self._snapshots.check()
        if self.due == 0.0:
            self.snapshot()

    def snapshot_if_dirty(self) -> None:
        """Take a snapshot if anything has changed since the last one."""
        if self.positions.dirty:
            self.snapshot()

    def keep(self) -> None:
        """Take the state as it is now, and wait until it is written."""
        self.snapshot()
        self._snapshots.wait()

    def snapshot(self) -> None:
        """Take the state as it is now; it is written once everything published up to here is in the
        log.
        """
        self.process_deferred()
        self._snapshots.wait()
        full = self._snapshots.full_due
        state = Snapshot(
            self.positions.next,
            self.positions.time,
            seen=self.positions.take_changes(full=full),
            pending=self._replay.pending(),
            waiting=self.pending.to_state(),
        )
        saved = self.streams.save(state, full=full)
        self._snapshots.take(
            state, full=full, written=lambda: self._report_saved(state.next, saved)
        )

    def _report_saved(self, next_offset: int, saved: Sequence[LiveStream]) -> None:
        """Report the position that was saved, and the counters of streams."""
        key = names.query_progress(self.place.topic)
        progress: Any = {
            str(self.place.partition): next_offset,
            names.TOPIC_ID: self.place.topic_id,
        }
        self.worker.report(lambda r: r.hset(key, mapping=progress))
        # not before their results are in the log: how long that took is among what they report
        self.worker.report_streams(
            [s.progress() for s in saved if self.streams.by_id.get(s.id) is s]
        )

    def close(self) -> None:
        """End with the input: save everything, and leave the partition to whoever comes next."""
        self.outbox.wait()
        self.snapshot_if_dirty()
        self._snapshots.wait()
        # in mid-replay outputs above the own position are in the log: whoever comes next has to
        # look for them again
        if self.positions.next >= 0 and not self._replay:
            self._snapshots.release(self.positions.next)
        self._snapshots.close()
        self._poison.close()

    def _find_published(self, state: Snapshot, first_time: int) -> list[Published]:
        """Return what a predecessor has published behind what *state* knows of."""
        plans = {p.stream_id: p for p in self.plans()}
        for stored in state.streams.values():
            if stored is not None:
                plan = self.worker.plan(stored[0])
                plans.setdefault(plan.stream_id, plan)
        topic = self.place.topic
        partition = self.place.partition
        producers = {names.stream_producer(p, topic, partition) for p in plans}
        producers |= {names.exchange_producer(p, topic, partition) for p in plans}
        outputs = {
            (output, i): state.ends.get(f"{output}:{i}", 0)
            for plan in plans.values()
            for output, partitions in self.outputs(plan).items()
            for i in range(partitions)
        }
        since = state.time if state.time >= 0 else first_time
        return find_published(self.worker, producers | {self.place.forwarder}, outputs, since)

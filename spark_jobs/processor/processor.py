"""A partition processor: the records of one topic-partition in offset order, its streams, its
state, its outputs.

Records are worked on in chunks, runs of data records or a single control record; a chunk is the
grain of positions, of replay and of snapshots. The processor's own position is the truth: what lies
below it is skipped, what is missing above it is read from the log. Refused: going on past a gap
that the log cannot fill.
"""

from __future__ import annotations

import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

from penstock import log, names
from penstock.bus import Reader
from penstock.codec import schema_ids
from penstock.errors import PenstockError, SchemaError, StateError
from penstock.records import DROPPED, ControlRecord, DeadLetter, decode, encode
from penstock.sql.plan import StreamPlan
from penstock.windows.kernel import LATEST, Control
from spark_jobs.filling import Filling
from spark_jobs.history import StoredHistory, TableHistory
from spark_jobs.input import Records
from spark_jobs.output import Ends, Outbox, Stamp, published
from spark_jobs.poison import Poison
from spark_jobs.processor.published import positions_of
from spark_jobs.processor.stream import LiveStream
from spark_jobs.replay import Position, Published, Replay
from spark_jobs.state import Snapshot, StateFiles
from spark_jobs.worker import Worker

_PATIENCE = 30.0
#: how long a stream's catalog entry may be behind the control record that points at it
_CATALOG_PATIENCE = 20.0
_KERNEL_CONTROLS = ("pause", "resume", "resume_skip", "flush", "recalculate")


def _filling(stream_id: int) -> str:
    return f"filling {stream_id}"


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
        self.topic = topic
        self.topic_id = topic_id
        self.partition = partition
        #: who controls come from that are passed on: no topic of the same name before or after has
        #: this id
        self.forwarder = names.exchange_producer(topic_id, topic, partition)
        self.settings = worker.settings
        self.log = log.get(__name__, topic=topic, partition=partition)
        self._files = StateFiles(directory, worker.failpoints)
        self._owner = uuid.uuid4().hex
        self._poison = Poison(
            self.settings.scratch_dir / "poison" / f"{topic}-{partition}", worker.driver
        )
        state = self._files.load() or self.inherited()
        self._known = state is not None
        state = state or Snapshot(-1)
        self.next = state.next
        self._time = state.time
        self._seen = state.seen
        self._waiting: dict[str, list[str]] = state.waiting
        self._ends = state.ends
        clean = self._files.claim(self._owner, self.next) and self._known
        found = [] if clean else self._published(state, first_time)
        self._replay = Replay([*state.pending, *found], max(self.next, 0))
        self.outbox = Outbox(worker.publisher, self._replay, worker.guard.enforce)
        self.streams: dict[int, LiveStream] = {}
        gone = worker.dropped(i for i, stored in state.streams.items() if stored is not None)
        for stream_id, stored in state.streams.items():
            if stored is not None and stream_id not in gone:
                self._open(stream_id, *stored, state)
        self._fresh_seen: dict[str, Position] = {}
        # one that was dropped while nothing ran (safe mode) must not see the records before its
        # `stream_off`
        self._touched: dict[int, LiveStream | None] = dict.fromkeys(gone)
        self._dirty = False
        self._saved_at = time.monotonic()
        self._saving: Future[None] | None = None
        self._saver = ThreadPoolExecutor(1, "snapshots")
        if found or not clean:
            self.log.info(
                "partition processor opened",
                next=self.next,
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
    def barrier(self, control: ControlRecord, offset: int) -> None:
        """A barrier arrived: all before it has been computed."""

    @abstractmethod
    def plans(self) -> list[StreamPlan]:
        """Plans in the catalog whose outputs this processor may have published."""

    @abstractmethod
    def outputs(self, plan: StreamPlan) -> dict[str, int]:
        """Topics that the processor writes for a stream, and how many partitions each has."""

    @abstractmethod
    def history(self, plan: StreamPlan) -> StoredHistory | None:
        """What the stream's kernel may read again; None when it has no kernel in this processor."""

    @abstractmethod
    def tables(self, table_id: int) -> set[str]:
        """Tables of a supertable that this processor is known to hold rows of."""

    @abstractmethod
    def inherited(self) -> Snapshot | None:
        """The state in which a processor begins that takes the place of another."""

    @abstractmethod
    def turned(self, control: ControlRecord, offset: int) -> bool:
        """Whether the control is about the topic's generations, or of no effect because of one that
        was; then all is done.
        """

    @abstractmethod
    def begun(self, stream: LiveStream, offset: int) -> None:
        """A stream has begun here."""

    @abstractmethod
    def stored(self, plan: StreamPlan) -> TableHistory | None:
        """Rows of the source as this processor has them, for a stream that it passes on."""

    @abstractmethod
    def ended(self, stream_id: int) -> None:
        """A stream was dropped."""

    @abstractmethod
    def concerns(self, stream: LiveStream, control: ControlRecord) -> bool:
        """Whether a delete, or a control without a stream id, is for this stream."""

    def precedes(self, control: ControlRecord, stream: LiveStream) -> bool:
        """Whether a delete comes from before the stream's beginning, though it is heard after
        it.
        """
        return False

    # ---------------------------------------------------------------- records

    def feed(self, records: Records) -> None:
        """Work on the records that have not been worked on yet."""
        if not len(records):
            return
        if self.next < 0:
            self.next = self._beginning(int(records.offsets[0]))
        skip = int(records.offsets.searchsorted(self.next))
        if skip:
            records = records.slice(skip, len(records))
        if not len(records):
            return
        if int(records.offsets[0]) > self.next:
            self._fill_gap(int(records.offsets[0]))
        at = 0
        for control in [
            *np.flatnonzero(records.ids == names.CONTROL_SCHEMA_ID).tolist(),
            len(records),
        ]:
            while at < control:
                at = self._run(records, at, control)
            if control < len(records):
                at = self._run(records, control, control + 1)
        self.outbox.check()

    def _beginning(self, first: int) -> int:
        """Where a processor without state begins: at the log's start, though Spark's offsets are
        further when only the state was lost.
        """
        if not first:
            return 0
        return min(
            first,
            self.worker.admin.start_offsets([(self.topic, self.partition)])[
                self.topic, self.partition
            ],
        )

    def _run(self, records: Records, start: int, stop: int) -> int:
        """Work on one chunk that begins at *start* and ends at *stop* or before; returns where it
        ended.
        """
        first = int(records.offsets[start])
        last = self._replay.limit(first, int(records.offsets[stop - 1]))
        bound = self._replay.published_within(first, last)
        last = (
            first
            if self._poison.alone(first, bound=bound)
            else self._poison.limit(first, last, bound=bound)
        )
        end = max(int(records.offsets.searchsorted(last, side="right")), start + 1)
        chunk = records.slice(start, end)
        last = int(records.offsets[end - 1])
        is_control = bool(chunk.ids[0] == names.CONTROL_SCHEMA_ID)
        if self._poison.given_up(first):
            self.bury(chunk, 0, "E_POISON", "the operator died three times at this record")
            if is_control:
                self._abandon(chunk)
            self._advance(chunk)
            self.snapshot()
            return end
        if is_control:
            self.process_deferred()
        with self.at_work(first, last):
            self.worker.failpoints.scan(chunk.values)
            if is_control:
                self._process_control(first, chunk)
            else:
                self.process_records(chunk)
            if self._replay:
                self.worker.failpoints.reach("mid_replay")
        self._advance(chunk)
        if self.deferred_enough:
            self.process_deferred()
        self.worker.failpoints.reach("after_produce", self.outbox.wait)
        return end

    @contextmanager
    def at_work(self, first: int, last: int) -> Iterator[None]:
        """What is done inside is done to the records first..last: a death there counts for them."""
        self._poison.begin(first, last)
        yield
        self._poison.clear()

    def suspicious(self, offset: int) -> bool:
        """Whether the record is one of those of which one may have killed a predecessor."""
        return self._poison.suspects(offset)

    @property
    def deferred_enough(self) -> bool:
        """Whether records that are put off have become so many that they should be worked on."""
        return False

    def process_deferred(self) -> None:
        """Work on the records that `process_records` has put off."""
        return

    def _advance(self, chunk: Records) -> None:
        self.next = int(chunk.offsets[-1]) + 1
        self._time = max(self._time, int(chunk.timestamps[-1]))
        self._replay.passed(self.next)
        self._dirty = True

    def _fill_gap(self, until: int) -> None:
        """Read what lies between the own position and *until* from the log."""
        start = self.worker.admin.start_offsets([(self.topic, self.partition)])[
            self.topic, self.partition
        ]
        if start > self.next:
            raise StateError(
                f"{self.topic}[{self.partition}]: records {self.next}..{start - 1} are needed but"
                " no longer in the log",
                hint="restore a newer state, or drop and create the streams again",
            )
        self.log.warning("reading a gap from the log", next=self.next, until=until)
        silent = 0.0
        with Reader(
            self.settings.kafka_bootstrap,
            {(self.topic, self.partition): self.next},
            client_id="penstock-gap",
            max_wait_ms=20,
        ) as reader:
            while self.next < until and silent < _PATIENCE:
                batches = reader.read(self.settings.unit_records, 1.0)
                silent = 0 if batches else silent + 1
                for batch in batches:
                    stop = int(batch.offsets.searchsorted(until))
                    if stop:
                        # what the log has no record for (a transaction's marker) is no gap
                        self.next = int(batch.offsets[0])
                        values = batch.values[:stop]
                        times = batch.timestamps[:stop]
                        self.feed(
                            Records(
                                self.topic,
                                self.partition,
                                batch.offsets[:stop],
                                times,
                                values,
                                schema_ids(values),
                            )
                        )
                    if stop < len(batch):
                        self.next = until
        if self.next < until:
            raise StateError(
                f"{self.topic}[{self.partition}]: records {self.next}..{until - 1} cannot be read"
            )

    def repeated(self, producer: str | None, offset: int, ordinal: int) -> bool:
        """Whether a record of a producer was had already; notes it when not."""
        if producer is None:
            return False
        if (offset, ordinal) <= self._seen.get(producer, (-1, -1)):
            return True
        self._seen[producer] = self._fresh_seen[producer] = (offset, ordinal)
        return False

    def bury(self, records: Records, index: int, code: str, reason: str) -> None:
        """Send a record that cannot be used to the dead letters."""
        self.post(DeadLetter.of(records, index, self.reader, code, reason))

    def post(self, dead_letter: DeadLetter) -> None:
        """Send a dead letter."""
        self.outbox.post(names.DEAD_LETTER, encode(dead_letter), partition=0)

    # ---------------------------------------------------------------- controls

    def _process_control(self, offset: int, chunk: Records) -> None:
        try:
            control = decode(ControlRecord, chunk.values[0])
        except SchemaError as error:
            self.bury(chunk, 0, error.code, str(error))
            return
        if self.repeated(control.producer, control.offset, control.ordinal):
            return
        if self.turned(control, offset):
            return
        if control.kind == "barrier":
            self.barrier(control, offset)
            return
        if control.kind == "stream_on" and control.stream is not None:
            self._stream_on(control.stream, control.body, offset)
        elif control.kind in ("fill", "filled"):
            self._fill(control, offset)
            return
        elif control.kind == "stream_off" and control.stream is not None:
            if self.streams.pop(control.stream, None) is not None:
                self._touched[control.stream] = None
                self._waiting.pop(_filling(control.stream), None)
                self.ended(control.stream)
        elif control.kind == "alter" and control.stream in self.streams:
            self._alter(self.streams[control.stream], control.body)
        elif control.kind == "stop" and control.stream in self.streams:
            self._stop(self.streams[control.stream], control.body)
        elif control.kind == "open_windows":
            self.show(control)
        elif control.kind in ("tick", "delete", *_KERNEL_CONTROLS):
            for stream in self.streams.values():
                if self.precedes(control, stream):
                    continue
                if (
                    control.body == DROPPED
                    and control.table is not None
                    and stream.sever(control.table, control.tables or ())
                ):
                    self.touch(stream)
                wanted = (
                    stream.id == control.stream
                    if control.stream is not None
                    else self.concerns(stream, control)
                )
                if wanted:
                    stream.control(self._kernel_control(control, stream.plan), offset)
                    if (
                        control.kind in ("pause", "resume", "resume_skip")
                        and stream.status != "failed"
                    ):
                        stream.status = "paused" if control.kind == "pause" else "running"
                    self.touch(stream)
        self.forward(control, offset)

    @staticmethod
    def _kernel_control(control: ControlRecord, plan: StreamPlan) -> Control:
        ticks = control.time * {"ms": 1, "us": 1_000, "ns": 1_000_000}[plan.source.precision]
        return Control(control.kind, ticks, control.tables, control.low, control.high)

    def _stream_on(self, stream_id: int, text: str, offset: int) -> None:
        """Begin a stream at this offset; a repeat, and a stream that is in the catalog no more,
        change nothing.
        """
        known = self.streams.get(stream_id)
        if known is None:
            # ids grow, and a stream has the highest of its commit: one below the next is there or
            # is dropped
            self.worker.await_catalog(lambda c: c.next_id > stream_id, _CATALOG_PATIENCE)
            if self.worker.catalog.catalog.stream_by_id(stream_id) is None:
                return
            known = self._open(stream_id, text, "running", Snapshot(0))
            self.touch(known)
            self.begun(known, offset)
        if _filling(stream_id) not in self._waiting:
            self.report_live(stream_id, offset)

    def report_live(self, stream_id: int, offset: int | str) -> None:
        self.worker.report_stream(stream_id, f"{self.topic}:{self.partition}", offset)

    def _open(self, stream_id: int, text: str, status: str, state: Snapshot) -> LiveStream:
        saved = state.deltas.get(stream_id, [])
        history = self.history(self.worker.plan(text))
        stream = LiveStream(
            self.worker, self.outbox, self.topic, self.partition, text, status, history, saved
        )
        self.streams[stream_id] = stream
        return stream

    def _alter(self, stream: LiveStream, text: str) -> None:
        """Go on with another plan: what has changed is saved under the old one first, because the
        kernel is made anew from its state.
        """
        if stream.text != text and stream.status != "failed":
            if self._dirty:
                self.snapshot()
            stream.alter(text, self.history(self.worker.plan(text)))
            self.touch(stream)

    def _stop(self, stream: LiveStream, reason: str) -> None:
        """End a stream that is over its quota."""
        if stream.status != "failed":
            stream.fail(reason)
            self.touch(stream)

    def show(self, control: ControlRecord) -> None:
        """Answer with the windows of a stream that are open at this place of the log."""
        stream = self.streams.get(control.stream or 0)
        if stream is not None and (stream.route is None or self.reader == "exchange"):
            self.worker.report_open(
                control.id, f"{self.topic}:{self.partition}", stream.open_windows()
            )

    # ---------------------------------------------------------------- history

    def hold(self, stream: LiveStream, offset: int) -> None:
        """The stream is live when its history is filled; until then what comes for it waits."""
        self._waiting[_filling(stream.id)] = [str(offset)]
        self._report_filling(stream.id, 0)
        stream.control(Control("fill"), offset)

    def begin_history(self, stream: LiveStream, until: str, offset: int) -> None:
        """Have computed what the source held at the mark *until*, stretch by stretch."""
        history = stream.history
        if history is None:
            self._end_filling(stream.id)
            return

        def begin() -> None:
            history.at(until)
            try:
                # events of a window are told once: they can't be told of a part of it
                whole = stream.plan.notify is not None and stream.plan.notify.history
                ends = [LATEST] if whole else history.stretches(self.settings.history_rows)
            finally:
                history.at("")
            self._step(stream.id, Filling(until, tuple(ends), len(ends)), offset)

        stream.guard(begin, offset, offset)
        if stream.status == "failed":
            self._end_filling(stream.id)

    def _step(self, stream_id: int, task: Filling, offset: int) -> None:
        """Have the next stretch computed at a place of its own in the log."""
        control = encode(task.control(stream_id, self.forwarder, offset))
        self.outbox.send(self.forwarder, self.topic, self.partition, offset, 0, control)

    def _fill(self, control: ControlRecord, offset: int) -> None:
        """Compute a stretch, or end the filling."""
        stream = self.streams.get(control.stream or 0)
        if stream is None or _filling(stream.id) not in self._waiting:
            return
        task = Filling.read(control)
        if task.ends:
            stream.fill_history(task.until, task.low, task.ends[0], offset)
        else:
            stream.control(Control("filled"), offset)
        self.touch(stream)
        if not task.ends or stream.status == "failed":
            self._end_filling(stream.id)
            return
        self._report_filling(stream.id, task.rest.percent)
        self._step(stream.id, task.rest, offset)
        # what is published must not pile up while the next stretch is read
        self.outbox.wait()

    def _report_filling(self, stream_id: int, percent: int) -> None:
        self.worker.report_stream(stream_id, names.filling(self.topic, self.partition), percent)

    def _end_filling(self, stream_id: int) -> None:
        """History is filled, or never will be."""
        begun = self._waiting.pop(_filling(stream_id), None)
        key = names.stream_status(stream_id)
        field = names.filling(self.topic, self.partition)
        self.worker.report(lambda r: r.hdel(key, field))
        if begun:
            self.report_live(stream_id, begun[0])

    def _abandon(self, chunk: Records) -> None:
        """A stretch of history that kills the operator is given up, and the stream with it."""
        control = decode(ControlRecord, chunk.values[0])
        stream = self.streams.get(control.stream or 0)
        if control.kind == "fill" and stream is not None:
            stream.fail("the operator died three times while it filled the stream's history")
            self.touch(stream)
            self._end_filling(stream.id)

    # ---------------------------------------------------------------- state

    def touch(self, stream: LiveStream) -> None:
        """The next snapshot has to hold this stream's entry."""
        self._touched[stream.id] = stream

    @property
    def due(self) -> float | None:
        """Seconds until a snapshot is wanted; None when nothing has changed."""
        if not self._dirty:
            return None
        if self._saving is not None and not self._saving.done():
            return 0.05
        return max(self._saved_at + self.settings.snapshot_seconds - time.monotonic(), 0.0)

    def snapshot_if_due(self) -> None:
        """Take a snapshot when it is time."""
        if self._saving is not None and self._saving.done():
            self._saving.result()
        if self._dirty and self.due == 0.0:
            self.snapshot()

    def keep(self) -> None:
        """Take the state as it is now, and wait until it is written."""
        self.snapshot()
        if self._saving is not None:
            self._saving.result(_PATIENCE)

    def snapshot(self) -> None:
        """Take the state as it is now; it is written once everything published up to here is in the
        log.
        """
        self.process_deferred()
        if self._saving is not None:
            self._saving.result(_PATIENCE)
        full = self._files.full_due
        state = Snapshot(
            self.next,
            self._time,
            seen=dict(self._seen if full else self._fresh_seen),
            pending=self._replay.pending(),
        )
        state.waiting = {k: list(v) for k, v in self._waiting.items()}
        told: list[LiveStream] = []
        for stream in self.streams.values():
            if full or stream.changed:
                delta = stream.delta(full)
                if delta is not None:
                    told.append(stream)
                state.deltas[stream.id] = [] if delta is None else [delta]
                self.touch(stream)
        entries = {s: self.streams.get(s) for s in (self.streams if full else self._touched)}
        state.streams = {i: None if s is None else (s.text, s.status) for i, s in entries.items()}
        self._fresh_seen = {}
        self._touched = {}
        self._dirty = False
        self._saved_at = time.monotonic()
        written: Future[None] = Future()
        self._saving = written

        def write(ends: Ends) -> None:
            state.ends = {**self._ends, **ends} if full else dict(ends)
            self._saver.submit(self._write, state, full, told, written)

        self.outbox.then(write)

    def _write(
        self, state: Snapshot, full: bool, told: Sequence[LiveStream], written: Future[None]
    ) -> None:
        try:
            self._files.save(state, full=full)
            key = names.query_progress(self.topic)
            field = str(self.partition)
            position = str(state.next)
            self.worker.report(lambda r: r.hset(key, field, position))
            # not before their results are in the log: how long that took is among what they report
            self.worker.report_streams([s.progress() for s in told if self.streams.get(s.id) is s])
            written.set_result(None)
        except BaseException as error:  # noqa: B036  told to the main loop
            written.set_exception(error)

    def close(self) -> None:
        """The input has ended: save everything, and leave the partition to whoever comes next."""
        self.outbox.wait()
        if self._dirty:
            self.snapshot()
        if self._saving is not None:
            self._saving.result(_PATIENCE)
        # in mid-replay outputs above the own position are in the log: whoever comes next has to
        # look for them again
        if self.next >= 0 and not self._replay:
            self._files.release(self._owner, self.next)
        self._saver.shutdown()
        self._poison.close()

    # --------------------------------------------------------------- what the predecessor published

    def _published(self, state: Snapshot, first_time: int) -> list[Published]:
        plans = {p.stream_id: p for p in self.plans()}
        for stored in state.streams.values():
            if stored is not None:
                plan = self.worker.plan(stored[0])
                plans.setdefault(plan.stream_id, plan)
        producers = {names.stream_producer(p, self.topic, self.partition) for p in plans}
        producers |= {names.exchange_producer(p, self.topic, self.partition) for p in plans} | {
            self.forwarder
        }
        outputs = {
            (t, i): state.ends.get(f"{t}:{i}", 0)
            for p in plans.values()
            for t, n in self.outputs(p).items()
            for i in range(n)
        }
        since = state.time if state.time >= 0 else first_time

        def stamps(topic: str, values: Sequence[bytes | None]) -> list[Stamp]:
            return [s for s in positions_of(self.worker, topic, values) if s[0] in producers]

        try:
            return published(
                self.worker.admin, self.settings.kafka_bootstrap, outputs, since, stamps
            )
        except PenstockError as error:
            raise StateError("cannot learn what was published", detail=str(error)) from error

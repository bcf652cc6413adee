"""The streams of a partition processor, and what of them the next snapshot has to hold."""

from __future__ import annotations

from collections.abc import Callable

from penstock.sql.plan import StreamPlan
from spark_jobs.history import StoredHistory
from spark_jobs.output import Outbox
from spark_jobs.processor.stream import LiveStream
from spark_jobs.state import Snapshot
from spark_jobs.worker import Worker


class Streams:
    """Streams that are on in one topic-partition, by id."""

    def __init__(
        self,
        worker: Worker,
        outbox: Outbox,
        topic: str,
        partition: int,
        history: Callable[[StreamPlan], StoredHistory | None],
    ) -> None:
        """*history*: what the kernel of a stream may read again; None where it has no kernel."""
        self._worker = worker
        self._outbox = outbox
        self._topic = topic
        self._partition = partition
        self._history = history
        self.by_id: dict[int, LiveStream] = {}
        #: streams whose entries the next snapshot has to hold; None: it was dropped
        self._touched: dict[int, LiveStream | None] = {}

    def restore(self, state: Snapshot) -> None:
        """Open all streams that *state* holds."""
        stored = {i: entry for i, entry in state.streams.items() if entry is not None}
        gone = self._worker.find_dropped(stored)
        for stream_id, (text, status) in stored.items():
            if stream_id not in gone:
                self.open(stream_id, text, status, state)
        # one that was dropped while nothing ran (safe mode) must not see the records before its
        # `stream_off`
        self._touched = dict.fromkeys(gone)

    def open(
        self, stream_id: int, text: str, status: str = "running", state: Snapshot | None = None
    ) -> LiveStream:
        """Have a stream with the plan *text* (JSON) run, from what *state* holds of it."""
        saved = state.deltas.get(stream_id, []) if state is not None else []
        history = self._history(self._worker.plan(text))
        stream = LiveStream(
            self._worker, self._outbox, self._topic, self._partition, text, status, history, saved
        )
        self.by_id[stream_id] = stream
        return stream

    def alter(self, stream: LiveStream, text: str) -> None:
        """Have a stream go on with the plan *text* (JSON)."""
        stream.alter(text, self._history(self._worker.plan(text)))
        self.touch(stream)

    def drop(self, stream_id: int) -> None:
        """Forget a stream."""
        del self.by_id[stream_id]
        self._touched[stream_id] = None

    def touch(self, stream: LiveStream) -> None:
        """Have the next snapshot hold this stream's entry."""
        self._touched[stream.id] = stream

    def save(self, state: Snapshot, *, full: bool) -> list[LiveStream]:
        """Put into *state* what has changed of the streams, or all of them; return those of which
        it holds anything.
        """
        saved: list[LiveStream] = []
        for stream in self.by_id.values():
            if full or stream.changed:
                delta = stream.delta(full)
                if delta is not None:
                    saved.append(stream)
                state.deltas[stream.id] = [] if delta is None else [delta]
                self.touch(stream)
        entries = {s: self.by_id.get(s) for s in (self.by_id if full else self._touched)}
        state.streams = {i: None if s is None else (s.text, s.status) for i, s in entries.items()}
        self._touched = {}
        return saved

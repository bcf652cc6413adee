"""Fills the history of a processor's streams, stretch by stretch (see `spark_jobs.filling`)."""

from __future__ import annotations

from collections.abc import Callable

from penstock import names
from penstock.records import ControlRecord, encode
from penstock.windows.kernel import LATEST, Control
from spark_jobs.filling import Filling
from spark_jobs.output import Outbox
from spark_jobs.processor.pending import Pending
from spark_jobs.processor.stream import LiveStream
from spark_jobs.worker import Worker


class HistoryFiller:
    """Histories of the streams of one topic-partition."""

    def __init__(
        self,
        worker: Worker,
        outbox: Outbox,
        pending: Pending,
        topic: str,
        partition: int,
        producer: str,
        touch: Callable[[LiveStream], None],
    ) -> None:
        """
        Args:
            producer: id under which the processor writes controls to its own partition.
            touch: has the next snapshot hold a stream's entry.
        """
        self._worker = worker
        self._outbox = outbox
        self._pending = pending
        self._topic = topic
        self._partition = partition
        self._producer = producer
        self._touch = touch

    def hold(self, stream: LiveStream, offset: int) -> None:
        """Have what comes for a stream wait until its history is filled."""
        self._pending.begin_filling(stream.id, offset)
        self._report_percent(stream.id, 0)
        stream.control(Control("fill"), offset)

    def begin(self, stream: LiveStream, until: str, offset: int) -> None:
        """Have computed what the source held at the mark *until*, stretch by stretch."""
        history = stream.history
        if history is None:
            self.end(stream.id)
            return

        def cut() -> None:
            history.at(until)
            try:
                # events of a window are told once: they can't be told of a part of it
                whole = stream.plan.notify is not None and stream.plan.notify.history
                most = self._worker.settings.history_rows
                ends = [LATEST] if whole else history.stretches(most)
            finally:
                history.at("")
            self._write_step(stream.id, Filling(until, tuple(ends), len(ends)), offset)

        stream.guard(cut, offset, offset)
        if stream.status == "failed":
            self.end(stream.id)

    def fill(self, stream: LiveStream, control: ControlRecord, offset: int) -> None:
        """Compute a stretch, or end the filling."""
        if not self._pending.is_filling(stream.id):
            return
        task = Filling.read(control)
        if task.ends:
            stream.fill_history(task.until, task.low, task.ends[0], offset)
        else:
            stream.control(Control("filled"), offset)
        self._touch(stream)
        if not task.ends or stream.status == "failed":
            self.end(stream.id)
            return
        self._report_percent(stream.id, task.rest.percent)
        self._write_step(stream.id, task.rest, offset)
        # what is published must not pile up while the next stretch is read
        self._outbox.wait()

    def abandon(self, stream: LiveStream) -> None:
        """Give up a history of which a stretch kills the operator, and the stream with it."""
        stream.fail("the operator died three times while it filled the stream's history")
        self._touch(stream)
        self.end(stream.id)

    def end(self, stream_id: int) -> None:
        """Report a stream live: its history is filled, or never will be."""
        begun = self._pending.end_filling(stream_id)
        key = names.stream_status(stream_id)
        field = names.filling(self._topic, self._partition)
        self._worker.report(lambda r: r.hdel(key, field))
        if begun:
            self._worker.report_stream(stream_id, f"{self._topic}:{self._partition}", begun)

    def _write_step(self, stream_id: int, task: Filling, offset: int) -> None:
        """Have the next stretch computed at a place of its own in the log."""
        control = encode(task.control(stream_id, self._producer, offset))
        self._outbox.send(self._producer, self._topic, self._partition, offset, 0, control)

    def _report_percent(self, stream_id: int, percent: int) -> None:
        field = names.filling(self._topic, self._partition)
        self._worker.report_stream(stream_id, field, percent)

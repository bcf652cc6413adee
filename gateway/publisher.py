"""Rows on their way to Kafka: gathers writes, has row batches made of them and answers when Kafka
has them.

Owns one thread that prepares and encodes, so the event loop stays free and order is kept without a
lock per table. A write is acked when every record of
its flush is on all replicas. Writes are refused when Kafka is known to be down or memory is short;
what was queued when Kafka went down fails after the delivery timeout, and then its outcome is
unknown: an idempotency key makes the retry safe.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import threading
from collections.abc import Callable, Sequence

from gateway import notices, write_spans
from gateway.coalescer import PendingWrite
from gateway.confirmed import ConfirmedRows
from gateway.flush import RowFlush, WriteOutcome
from gateway.idempotency import Ledger, Receipt
from gateway.layout import RowLayout
from gateway.row_batches import RowBatches, internal_error
from gateway.write_queue import WriteQueue
from penstock.bus import Publisher as Bus
from penstock.catalog.view import Catalog
from penstock.errors import BusError, PenstockError
from penstock.repartition.write_gate import Gate
from penstock.runtime import log, vital
from penstock.runtime.clock import Clock

_log = log.get("gateway.publisher")


class RowPublisher:
    """`write` from the event loop; everything else happens in the thread `rows`."""

    def __init__(
        self,
        bus: Bus,
        batches: RowBatches,
        ledger: Ledger,
        catalog: Callable[[], Catalog],
        gate: Gate,
        *,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        max_bytes: int,
        max_writes: int,
    ) -> None:
        """
        Args:
            gate: what it lets not through is held until it does.
            max_bytes, max_writes: what may wait or be under way at once.
        """
        self._gate = gate
        self._bus = bus
        self._batches = batches
        self._ledger = ledger
        self._catalog = catalog
        self._loop = loop
        self._clock = clock
        self._queue = WriteQueue(clock, max_bytes, max_writes)
        self._busy_since: float | None = None
        #: why Kafka cannot be reached; None while it can, as far as is known
        self.down: str | None = None
        self.confirmed = ConfirmedRows()
        self._thread = threading.Thread(target=self._run, name="rows", daemon=True)
        self._thread.start()

    def write(self, write: PendingWrite) -> asyncio.Future[Receipt]:
        """Queue one write. Raises OverloadError or BusError at once when it cannot be taken."""
        if self.down is not None:
            raise BusError(
                "Kafka cannot be reached",
                code="E_KAFKA_DOWN",
                detail=self.down,
                hint="try again later",
                retryable=True,
            )
        self._queue.put(write)
        return write.done

    @property
    def pending(self) -> tuple[int, int]:
        """Return (writes, bytes) waiting or under way."""
        return self._queue.pending

    def silence(self) -> float:
        """Return infinity when the thread is gone, without which nothing is written; else 0."""
        return 0.0 if self._thread.is_alive() or self._queue.closing else float("inf")

    def busy(self) -> float:
        """Return the seconds that the thread has worked on the group of writes it has now."""
        since = self._busy_since
        return self._clock.monotonic() - since if since is not None else 0.0

    def look_again(self) -> None:
        """Try what is held again: the catalog has changed."""
        self._queue.look_again()

    def close(self) -> None:
        """Send what was taken in, then stop the thread."""
        self._queue.close()
        self._thread.join()

    # ---------------------------------------------------------------- the thread

    @vital.run
    def _run(self) -> None:
        groups = self._queue.take()
        while groups is not None:
            for group in groups:
                self._busy_since = self._clock.monotonic()
                self._attempt(group)
            self._busy_since = None
            groups = self._queue.take()
        stopped = BusError(
            "the gateway stops while partitions change",
            code="E_MOVING",
            hint="send it again",
            retryable=True,
        )
        self._finish([(w, stopped) for w in self._queue.held])

    def _attempt(self, group: list[PendingWrite]) -> None:
        """Publish a group; where a fault is nobody's, its writes go one by one, and only the one to
        blame is refused.
        """
        try:
            self._publish(group)
        except PenstockError as error:
            self._finish([(w, error) for w in group])
        except vital.FAULTS as bug:
            _log.exception("a flush failed", rows=sum(w.rows for w in group))
            if len(group) > 1:
                for write in group:
                    self._attempt([write])
                return
            self._finish([(w, internal_error(bug)) for w in group])

    def _publish(self, group: list[PendingWrite]) -> None:
        catalog = self._catalog()
        layout = _with_present_topic(group[0].layout, catalog)
        if not self._gate.enter(layout.topic):
            self._queue.hold(group)
            return
        try:
            self._publish_to(layout, group, catalog)
        except BaseException:
            self._gate.leave(layout.topic)
            raise

    def _publish_to(self, layout: RowLayout, group: list[PendingWrite], catalog: Catalog) -> None:
        rows = self._batches.check(group, self._clock.now(), catalog)
        writes = rows.writes
        # nothing is told before all is encoded: a group that fails until then is tried again write
        # by write
        records = self._batches.encode(layout, rows, catalog) if writes else []
        notes = notices.of_writes(layout, rows.frame, writes, rows.counts) if writes else []
        for write, _ in rows.refused:
            if write.claim is not None:
                self._ledger.release(write.claim)
        self._finish(rows.refused)
        if writes:
            answers = [Receipt(n, told) for n, told in zip(rows.counts, notes, strict=True)]
            self._send(layout.topic, records, list(zip(writes, answers, strict=True)))
        else:
            self._gate.leave(layout.topic)

    def _send(
        self,
        topic: str,
        records: Sequence[tuple[int, bytes]],
        receipts: list[tuple[PendingWrite, WriteOutcome]],
    ) -> None:
        if not records:
            self._gate.leave(topic)
            self._settle(receipts)
            return
        sent = self._clock.monotonic()

        def settle(outcomes: list[tuple[PendingWrite, WriteOutcome]]) -> None:
            self._gate.leave(topic)
            self.confirmed.on_seconds(self._clock.monotonic() - sent)
            self._settle(outcomes)

        places = write_spans.places_of([write for write, _ in receipts])
        flush = RowFlush(len(records), receipts, settle, self.confirmed.offsets, places)
        for partition, value in records:
            try:
                self._bus.send(topic, value, partition=partition, on_delivery=flush.count)
            except BusError as error:
                flush.count(error)

    def _settle(self, outcomes: list[tuple[PendingWrite, WriteOutcome]]) -> None:
        """Answer the writes of a flush whose records have all come back (in the bus's thread)."""
        for write, outcome in outcomes:
            self.confirmed.rows += outcome.rows if isinstance(outcome, Receipt) else 0
            if write.claim is not None and isinstance(outcome, Receipt):
                self._ledger.finish(write.claim, write.digest, outcome)
        self._finish(outcomes)

    def _finish(self, outcomes: Sequence[tuple[PendingWrite, WriteOutcome]]) -> None:
        self._queue.release(write for write, _ in outcomes)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(_resolve, outcomes)


def _resolve(outcomes: Sequence[tuple[PendingWrite, WriteOutcome]]) -> None:
    for write, outcome in outcomes:
        if write.done.done():
            continue
        if isinstance(outcome, Receipt):
            write.done.set_result(outcome)
        else:
            write.done.set_exception(outcome)


def _with_present_topic(layout: RowLayout, catalog: Catalog) -> RowLayout:
    """Return *layout* with the topic that its table has now: its partitions may have changed while
    rows waited.
    """
    table = catalog.table_by_id(layout.table_id)
    if table is None or table.topic == layout.topic:
        return layout
    return dataclasses.replace(layout, topic=table.topic, partitions=table.partitions)

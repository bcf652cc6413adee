"""Rows on their way to Kafka: gathers writes, makes row batches of them and answers when Kafka has
them.

Owns one thread that prepares and encodes (so the event loop stays free and order is kept without a
lock per table) and the memory that waiting writes may take. A write is acked when every record of
its flush is on all replicas. Refuses when Kafka is known to be down or memory is short; what was
queued when Kafka went down fails after the delivery timeout, and then its outcome is unknown: an
idempotency key makes the retry safe.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import threading
from collections.abc import Callable, Mapping, Sequence

import polars as pl
import pyarrow as pa

from gateway import named_nulls, notices, rows
from gateway.children import Children
from gateway.coalescer import Coalescer, Write
from gateway.idempotency import Ledger, Receipt
from gateway.rows import Layout
from penstock import log, traces, vital
from penstock.bus import Delivery
from penstock.bus import Publisher as Bus
from penstock.catalog.view import Catalog
from penstock.clock import Clock
from penstock.codec import TableCodec
from penstock.errors import BusError, CatalogError, PenstockError, SchemaError
from penstock.gate import Gate
from penstock.sql.plan import TICKS_PER_SECOND

_log = log.get("gateway.publisher")
#: a record of rows stays below this; single rows are at most a quarter of it
RECORD_BYTES = 256 * 1024
_IDLE_S = 3600.0
_NOTHING = pl.DataFrame()

Outcome = Receipt | PenstockError


class Publisher:
    """`write` from the event loop; everything else happens in the thread `rows`."""

    def __init__(
        self,
        bus: Bus,
        children: Children,
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
        self._held: list[list[Write]] = []
        self._look = False
        self._bus = bus
        self._children = children
        self._ledger = ledger
        self._catalog = catalog
        self._loop = loop
        self._clock = clock
        self._box = Coalescer(max_bytes, max_writes)
        self._wake = threading.Condition()
        self._closing = False
        self._busy_since: float | None = None
        self._codecs: dict[tuple[int, int], TableCodec] = {}
        #: why Kafka cannot be reached; None: it can, as far as is known
        self.down: str | None = None
        #: (topic, partition) → offset of the newest record acked here: what a read of one's own
        #: writes waits for
        self.acked: dict[tuple[str, int], int] = {}
        #: counts acked rows; for metrics
        self.rows = 0
        #: told how many seconds Kafka took to confirm what was sent together
        self.on_confirmed: Callable[[float], object] = _ignored
        self._thread = threading.Thread(target=self._run, name="rows", daemon=True)
        self._thread.start()

    def write(self, write: Write) -> asyncio.Future[Receipt]:
        """Queue one write. Raises OverloadError or BusError at once when it cannot be taken."""
        if self.down is not None:
            raise BusError(
                "Kafka cannot be reached",
                code="E_KAFKA_DOWN",
                detail=self.down,
                hint="try again later",
                retryable=True,
            )
        now = self._clock.monotonic()
        with self._wake:
            first = self._box.empty
            self._box.offer(write, now)
            # a thread that lingers for more wakes by itself: waking it for each write would cost
            # more than the write
            if first or self._box.wait(now) == 0.0:
                self._wake.notify()
        return write.done

    @property
    def pending(self) -> tuple[int, int]:
        """(writes, bytes) waiting or under way."""
        return self._box.pending

    def ended(self) -> float:
        """Return infinity when the thread is gone, without which nothing is written; else 0."""
        return 0.0 if self._thread.is_alive() or self._closing else float("inf")

    def busy(self) -> float:
        """Return the seconds that the thread has worked on the group of writes it has now."""
        since = self._busy_since
        return self._clock.monotonic() - since if since is not None else 0.0

    def look_again(self) -> None:
        """The catalog has changed: what is held may go now."""
        with self._wake:
            self._look = True
            self._wake.notify()

    def close(self) -> None:
        """Send what was taken in, then stop the thread."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join()

    # ---------------------------------------------------------------- the thread

    @vital.run
    def _run(self) -> None:
        while True:
            with self._wake:
                while (
                    (wait := self._box.wait(self._clock.monotonic())) != 0.0
                    and not self._closing
                    and not self._look
                ):
                    self._wake.wait(_IDLE_S if wait is None else wait)
                if self._closing and wait is None:
                    break
                groups = [*self._held, *self._box.take(self._clock.monotonic())]
                self._held = []
                self._look = False
            for group in groups:
                self._busy_since = self._clock.monotonic()
                self._attempt(group)
            self._busy_since = None
        stopped = BusError(
            "the gateway stops while partitions change",
            code="E_MOVING",
            hint="send it again",
            retryable=True,
        )
        self._finish([(w, stopped) for group in self._held for w in group])

    def _attempt(self, group: list[Write]) -> None:
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
            internal = BusError(
                "the rows could not be written", code="E_INTERNAL", detail=type(bug).__name__
            )
            self._finish([(w, internal) for w in group])

    def _publish(self, group: list[Write]) -> None:
        catalog = self._catalog()
        layout = _present(group[0].layout, catalog)
        if not self._gate.enter(layout.topic):
            with self._wake:
                self._held.append(group)
            return
        try:
            self._publish_to(layout, group, catalog)
        except BaseException:
            self._gate.leave(layout.topic)
            raise

    def _publish_to(self, layout: Layout, group: list[Write], catalog: Catalog) -> None:
        now = self._clock.now()
        frame, writes, counts, refused = self._prepare(group, now, catalog)
        # nothing is told before all is encoded: a group that fails until then is tried again write
        # by write
        records = self._encoded(layout, frame, writes, counts, catalog) if writes else []
        notes = notices.of_writes(layout, frame, writes, counts) if writes else []
        for write, _ in refused:
            if write.claim is not None:
                self._ledger.release(write.claim)
        self._finish(refused)
        if writes:
            self._send(
                layout.topic,
                records,
                writes,
                [Receipt(n, told) for n, told in zip(counts, notes, strict=True)],
            )
        else:
            self._gate.leave(layout.topic)

    def _encoded(
        self,
        layout: Layout,
        frame: pl.DataFrame,
        writes: list[Write],
        counts: list[int],
        catalog: Catalog,
    ) -> Sequence[tuple[int, bytes]]:
        """The records of good writes, with their partitions."""
        codec = self._codec(layout, catalog)
        claim = writes[0].claim
        mark = claim.trace if claim else ""
        trace = traces.stamp(
            next((w.trace for w in reversed(writes) if w.trace is not None), None), mark
        )
        # records are cut as if nobody followed them: a retry may come without a trace
        room = RECORD_BYTES + len(trace or "") - len(mark)
        partitions = (
            claim.partitions if claim is not None and claim.partitions else layout.partitions
        )
        versions, sizes = named_nulls.spelled_out(frame, layout.values, counts)
        records = codec.encode_partitioned(
            versions, partitions, writes=sizes, trace=trace, max_bytes=room
        )
        if claim is not None:
            records = claim.rest(records)
        if partitions != layout.partitions:
            # the first try was cut for the partitions that there were then
            left = codec.decode([value for _, value in records]).rows.drop("_record", "_write")
            records = codec.encode_partitioned(left, layout.partitions, trace=trace, max_bytes=room)
        return records

    def _prepare(
        self, group: list[Write], now: int, catalog: Catalog
    ) -> tuple[pl.DataFrame, list[Write], list[int], list[tuple[Write, Outcome]]]:
        """The rows of the good writes, these and how many rows each has, and the errors of the
        others.

        All at once when all are good; one by one to find the bad ones.
        """
        try:
            frame, counts = self._frame(group, now, catalog)
            return frame, group, counts, []
        except PenstockError as error:
            if len(group) == 1:
                return _NOTHING, [], [], [(group[0], error)]
        except vital.FAULTS:
            if len(group) == 1:
                raise
        frames: list[pl.DataFrame] = []
        good: list[Write] = []
        bad: list[tuple[Write, Outcome]] = []
        for write in group:
            try:
                frames.append(self._frame([write], now, catalog)[0])
                good.append(write)
            except PenstockError as error:
                bad.append((write, error))
            except vital.FAULTS as bug:
                _log.exception("a write failed", rows=write.rows)
                bad.append(
                    (
                        write,
                        BusError(
                            "the rows could not be written",
                            code="E_INTERNAL",
                            detail=type(bug).__name__,
                        ),
                    )
                )
        whole = pl.concat(frames, how="diagonal") if frames else _NOTHING
        return whole, good, [f.height for f in frames], bad

    def _frame(
        self, group: list[Write], now: int, catalog: Catalog
    ) -> tuple[pl.DataFrame, list[int]]:
        """The rows of all writes, and how many each has."""
        layout = group[0].layout
        objects = [w for w in group if isinstance(w.body, list)]
        plain = len(objects) == len(group) and all(
            (w.child, w.tz) == (group[0].child, group[0].tz) for w in group
        )
        if plain and len(group) > 1:
            bodies = [_body_rows(w.body) for w in group]
            whole = rows.from_objects(
                layout,
                [row for body in bodies for row in body],
                child=group[0].child,
                tz=group[0].tz,
            )
            counts = [len(body) for body in bodies]
        else:
            parts = [frame_of(layout, w) for w in group]
            whole = pl.concat(parts, how="diagonal") if len(parts) > 1 else parts[0]
            counts = [p.height for p in parts]
        rows.check(layout, whole, now * TICKS_PER_SECOND[layout.precision] // 10**9)
        return self._children.settle(layout, whole, catalog), counts

    def _codec(self, layout: Layout, catalog: Catalog) -> TableCodec:
        codec = self._codecs.get((layout.table_id, layout.schema_id))
        if codec is None:
            table = catalog.table_by_id(layout.table_id)
            if table is None:
                raise CatalogError(f'table "{layout.table}" was dropped', code="E_NO_TABLE")
            codec = self._codecs[layout.table_id, layout.schema_id] = TableCodec(
                table, layout.schema_id
            )
        return codec

    def _send(
        self,
        topic: str,
        records: Sequence[tuple[int, bytes]],
        writes: list[Write],
        answers: list[Receipt],
    ) -> None:
        receipts: list[tuple[Write, Outcome]] = list(zip(writes, answers, strict=True))
        if not records:
            self._gate.leave(topic)
            self._settle(receipts)
            return
        sent = self._clock.monotonic()

        def settle(outcomes: list[tuple[Write, Outcome]]) -> None:
            self._gate.leave(topic)
            self._confirmed(sent, outcomes)

        flush = _Flush(len(records), receipts, settle, self.acked)
        for partition, value in records:
            try:
                self._bus.send(topic, value, partition=partition, on_delivery=flush.delivered)
            except BusError as error:
                flush.delivered(error)

    def _confirmed(self, sent: float, outcomes: list[tuple[Write, Outcome]]) -> None:
        self.on_confirmed(self._clock.monotonic() - sent)
        self._settle(outcomes)

    def _settle(self, outcomes: list[tuple[Write, Outcome]]) -> None:
        """All records of a flush have come back (in the bus's thread)."""
        for write, outcome in outcomes:
            self.rows += outcome.rows if isinstance(outcome, Receipt) else 0
            if write.claim is not None and isinstance(outcome, Receipt):
                self._ledger.finish(write.claim, write.digest, outcome)
        self._finish(outcomes)

    def _finish(self, outcomes: Sequence[tuple[Write, Outcome]]) -> None:
        with self._wake:
            for write, _ in outcomes:
                self._box.finished(write)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(_resolve, outcomes)


def _ignored(_: float) -> None:
    return


class _Flush:
    """Counts the deliveries of one flush; the last one settles its writes."""

    def __init__(
        self,
        records: int,
        receipts: list[tuple[Write, Outcome]],
        settle: Callable[[list[tuple[Write, Outcome]]], None],
        acked: dict[tuple[str, int], int],
    ) -> None:
        self._left = records
        self._receipts = receipts
        self._settle = settle
        self._acked = acked
        self._failed: BusError | None = None
        self._lock = threading.Lock()

    def delivered(self, result: Delivery | BusError) -> None:
        with self._lock:
            if isinstance(result, BusError):
                self._failed = self._failed or result
            else:
                at = (result.topic, result.partition)
                self._acked[at] = max(self._acked.get(at, 0), result.offset)
            self._left -= 1
            if self._left:
                return
        if self._failed is None:
            self._settle(self._receipts)
        else:
            error = self._failed
            self._settle([(w, error) for w, _ in self._receipts])


def _resolve(outcomes: Sequence[tuple[Write, Outcome]]) -> None:
    for write, outcome in outcomes:
        if write.done.done():
            continue
        if isinstance(outcome, Receipt):
            write.done.set_result(outcome)
        else:
            write.done.set_exception(outcome)


def _present(layout: Layout, catalog: Catalog) -> Layout:
    """*layout* with the topic that its table has now: its partitions may have changed while rows
    waited.
    """
    table = catalog.table_by_id(layout.table_id)
    if table is None or table.topic == layout.topic:
        return layout
    return dataclasses.replace(layout, topic=table.topic, partitions=table.partitions)


def frame_of(layout: Layout, write: Write) -> pl.DataFrame:
    """The rows of a write. Raises SchemaError."""
    body = write.body
    if isinstance(body, pl.DataFrame):
        return body
    try:
        if isinstance(body, pa.Table):
            return rows.from_arrow(layout, body, child=write.child)
        return rows.from_objects(layout, list(body), child=write.child, tz=write.tz)
    except PenstockError:
        raise
    except vital.FAULTS as wrong:
        _log.exception("rows could not be read", table=f"{layout.database}.{layout.table}")
        raise SchemaError(
            "the rows cannot be read", code="E_BODY", detail=type(wrong).__name__
        ) from None


def _body_rows(body: object) -> list[Mapping[str, object]]:
    assert isinstance(body, list)
    return body

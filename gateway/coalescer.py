"""Which writes leave together, and when: the decisions behind one row batch for many clients.

A write that finds the gateway idle leaves at once. While others are on their way, writes gather and
leave together after at most `MAX_LINGER_S`; how long depends on how many came together last time,
so a single client that waits for each ack is never held back. Order is kept: what was offered first
leaves first. Raises OverloadError for what does not fit in the memory it was given.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import Any

import polars as pl
import pyarrow as pa

from gateway.idempotency import Claim, Receipt
from gateway.layout import RowLayout
from penstock.errors import OverloadError
from penstock.telemetry.span import Span

MAX_LINGER_S = 0.01
_LINGER_PER_WRITE_S = 0.0004
#: rows of one record, about
ROWS_PER_RECORD = 1_000


@dataclass(eq=False)
class PendingWrite:
    """One client write: rows of one table as JSON objects, as an Arrow table or as a frame in the
    table's own layout.
    """

    layout: RowLayout
    body: Sequence[Mapping[str, Any]] | pa.Table | pl.DataFrame
    rows: int
    size: int
    done: asyncio.Future[Receipt]
    child: str | None = None
    tz: tzinfo = UTC
    #: the right to write under an idempotency key; such a write leaves in records of its own
    claim: Claim | None = None
    digest: str = ""
    #: id under which its rows are followed
    trace: str | None = None
    #: its own span, if it is sampled
    span: Span | None = None
    #: its client hears of notices
    told: bool = False
    #: notices that are known already
    notices: tuple[str, ...] = ()


@dataclass
class Coalescer:
    """Not thread-safe: its user holds a lock. Times are seconds of a monotonic clock."""

    max_bytes: int
    max_writes: int
    _queue: deque[tuple[float, PendingWrite]] = field(default_factory=deque)
    _bytes: int = 0
    _writes: int = 0
    _queued_rows: int = 0
    _together: int = 0
    _flushed: float = float("-inf")

    def offer(self, write: PendingWrite, now: float) -> None:
        """Take a write in. Raises OverloadError."""
        if self._bytes + write.size > self.max_bytes or self._writes >= self.max_writes:
            raise OverloadError(
                "too many rows are waiting to be written",
                hint="wait a second and send again",
                detail=f"{self._bytes} bytes, {self._writes} writes",
            )
        self._bytes += write.size
        self._writes += 1
        self._queued_rows += write.rows
        self._queue.append((now, write))

    def wait(self, now: float) -> float | None:
        """Return seconds until writes should leave; None without writes."""
        if not self._queue:
            return None
        if self._queued_rows >= ROWS_PER_RECORD or now - self._flushed > MAX_LINGER_S:
            return 0.0
        linger = min(MAX_LINGER_S, (self._together - 1) * _LINGER_PER_WRITE_S)
        return max(0.0, self._queue[0][0] + linger - now)

    def take(self, now: float) -> list[list[PendingWrite]]:
        """Return the writes that leave now, grouped by table version; one with an idempotency key
        stands alone.
        """
        groups: dict[tuple[Any, ...], list[PendingWrite]] = {}
        service: dict[tuple[Any, ...], int] = {}
        taken = 0
        while self._queue:
            write = self._queue[0][1]
            group: tuple[Any, ...] = (
                write.layout.table_id,
                write.layout.schema_id,
                id(write) if write.claim else None,
            )
            left = service.get(group, ROWS_PER_RECORD * write.layout.partitions)
            if group in groups and left < write.rows:
                break
            self._queue.popleft()
            groups.setdefault(group, []).append(write)
            service[group] = left - write.rows
            self._queued_rows -= write.rows
            taken += 1
        self._together = taken
        self._flushed = now
        return list(groups.values())

    def release(self, write: PendingWrite) -> None:
        """Free the memory of a write that was acked or refused."""
        self._bytes -= write.size
        self._writes -= 1

    @property
    def empty(self) -> bool:
        """Tell whether no write waits to leave."""
        return not self._queue

    @property
    def pending(self) -> tuple[int, int]:
        """Return (writes, bytes) not yet finished."""
        return self._writes, self._bytes

"""What every window kernel is: rows in, emissions out, state that can be saved in pieces.

A kernel interprets one `StreamPlan` for one ordered input (a source topic-partition, or an exchange
partition). It does no I/O; what it may need to read again it asks of a `History`. It is
deterministic: the same rows and controls in the same order give the same emissions, however they
were cut into `apply` calls (up to upserts that a later one in the same call replaces).

Input frame (`rows` of `apply`), one line per row, in offset order:
    _step    UInt32  number of the client write the row came with, non-decreasing within the call;
    rows of one number are one write _offset  Int64   offset of the record in the source partition
    _now     Int64   append time of that record, ticks _op      Int8    0 upsert, 1 delete of
    (tbname, ts), 2 merge: NULL columns keep their earlier value tbname   String  child table (or
    the plain table's own name) …        source columns and tags under their own names; TIMESTAMP as
    Int64 ticks _late    Boolean, only behind the exchange: the row is out of order for its own
    table, as its scan saw it
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import polars as pl

#: before and after every time
EARLIEST = -(1 << 62)
LATEST = 1 << 62
#: live rows that a kernel keeps in memory though their windows are over, where it may read older
#: ones again
ROOM = 200_000


@dataclass(frozen=True)
class Control:
    """A control record that concerns a kernel; `kind` is one of those in `schemas/control.avsc`.

    - tick: `time` = processing time (ticks); never goes back (a lower one is ignored). `settled` =
      the moment before which all rows have come (None: `time`): a silence is counted up to it.
    - delete: rows of `tables` (None: all) with low <= ts <= high, both ends included.
    - flush: close every open window now.
    - pause / resume / resume_skip: PAUSE STREAM, RESUME STREAM, RESUME STREAM … IGNORE UNTREATED.
    - recalculate: recompute windows that touch low..high.
    - fill / filled: history is being computed, and what comes meanwhile waits; it has been, and
      what waits is worked on.
    """

    kind: str
    time: int = 0
    tables: tuple[str, ...] | None = None
    low: int = 0
    high: int = 0
    settled: int | None = None

    @property
    def heard_until(self) -> int:
        """The moment before which whoever has not been heard of has been silent."""
        return self.time if self.settled is None else self.settled


@dataclass
class Emission:
    """Output of one call of a kernel. A frame that would be empty is None.

    Attributes:
        rows: the target table's rows: `tbname` (target child), `_op` (UPSERT or DELETE), then the
            target's columns and tags under their own names. At most one line per (tbname, ts[, key
            column]), in a deterministic order.
        events: window events in order, each a dict of the notification's fields
            (docs/notifications.md).
        late: source rows dropped as expired, in the input layout.
        failed: source rows on which an expression failed, with a `_reason` column.
        hashes: hash of each row's `tbname` (`penstock.rows.partition.hashes`), which decides its
            partition, where the kernel knows it.
    """

    rows: pl.DataFrame | None = None
    events: list[dict[str, object]] = field(default_factory=list)
    late: pl.DataFrame | None = None
    failed: pl.DataFrame | None = None
    hashes: pl.Series | None = None

    def __bool__(self) -> bool:
        return (
            self.rows is not None
            or bool(self.events)
            or self.late is not None
            or self.failed is not None
        )


@dataclass(frozen=True)
class Delta:
    """A piece of kernel state: named frames. `full` starts afresh; otherwise it is applied on top
    of the ones before it.

    By convention a frame `x` holds lines to put (replacing those with the same key columns) and
    `x.gone` keys to remove.
    """

    frames: dict[str, pl.DataFrame]
    full: bool


def since_full(deltas: Iterable[Delta]) -> list[Delta]:
    """Return the last full one of *deltas* and those after it; those before it are of no use."""
    chain: list[Delta] = []
    for delta in deltas:
        if delta.full:
            chain.clear()
        chain.append(delta)
    return chain


class History(Protocol):
    """Rows of the source table as the kernel's input has left it: everything applied before the
    present call, nothing of it.

    One whose `since_begin` is true gives rows from before the stream a negative `_offset`, because
    its input has several partitions and no offset says where the stream began in all of them.
    """

    def fetch(self, low: int, high: int, tables: Sequence[str] | None = None) -> pl.DataFrame:
        """Live rows (upserts merged, deletes gone) with low <= ts <= high, in the input layout,
        sorted by (tbname, ts).
        """
        ...

    def fetch_versions(
        self, low: int, high: int, tables: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """All versions that were written of the live rows of `fetch`, older ones first: `_op`
        UPSERT or MERGE, as they were written.
        """
        ...


@runtime_checkable
class Rewindable(Protocol):
    """A history that can be asked as it was at an earlier time of the kernel's input."""

    def mark(self) -> str:
        """The present time, as text that can be saved."""
        ...

    def at(self, mark: str) -> None:
        """From now on everything is as it was at *mark*; empty: as it is."""
        ...


class Kernel(Protocol):
    def apply(self, rows: pl.DataFrame) -> Emission: ...

    def control(self, control: Control) -> Emission: ...

    def skip(self, rows: pl.DataFrame) -> None:
        """Leave *rows* out for good: they are in the source and never count, also where windows are
        computed from it again.
        """
        ...

    def delta(self, full: bool = False) -> Delta:
        """State changed since the last call (all of it when *full*); marks it as saved."""
        ...

    def restore(self, deltas: Iterable[Delta]) -> None:
        """Take over what `delta` gave, oldest first. For a kernel that has had no rows yet."""
        ...

    def open_windows(self) -> pl.DataFrame:
        """Result rows of the windows not closed yet, in the layout of `Emission.rows` without
        `_op`, and `plan.OPEN_SPAN` in ticks of the source.
        """
        ...

    def load_history(self, low: int = EARLIEST, high: int = LATEST) -> Emission:
        """FILL_HISTORY: process what `History` holds from *low* to *high* as AT_ONCE with nothing
        expired.

        All of it in one call, or in stretches from the earliest to the latest: the results come out
        the same.
        """
        ...

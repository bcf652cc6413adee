"""Rows in order → windows: the cut of every window kind, vectorised over all partitions at once.

Rows come sorted by (partition, time, [composite key], arrival). A cutter adds what it needs to know
per row (`expressions`, evaluated once), labels rows with their window (`_w`; rows in no window are
left out, rows in several appear several times) and describes the windows:

    _g _wstart    partition and start, the window's identity _wend         the end that is shown
    _stop         the last tick that belongs to the window: a window closes when `_stop < T` _sseq
    _lseq   arrival numbers of its first and last row, which break ties of equal times _n
    number of rows;  _done: whether it counts as a window yet (end row found, TRUE_FOR reached)
    _ends_it      whether its last row is an end row (EVENT_WINDOW; elsewhere true)
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from penstock.sql.plan import Count, Event, Interval, Session, State
from penstock.windows.assign.boundaries import Grid
from penstock.windows.clocks.ticks import ALWAYS, NEVER
from penstock.windows.rows.scope import Scope

Numbers = npt.NDArray[np.int64]


class Cutter(Protocol):
    """What every window kind knows."""

    expressions: list[pl.Expr]
    #: columns of a described window beyond the common ones, with their types
    extra: dict[str, pl.DataType]

    def label(self, rows: pl.DataFrame) -> pl.DataFrame: ...

    def describe(self, labelled: pl.DataFrame) -> pl.DataFrame: ...

    def completed(self) -> pl.Expr:
        """`_done` of described windows."""
        ...


def _starts(rows: pl.DataFrame) -> npt.NDArray[np.bool_]:
    """Whether each row is the first of its partition."""
    groups = rows.get_column("_g").to_numpy()
    first = np.empty(len(groups), bool)
    first[:1] = True
    np.not_equal(groups[1:], groups[:-1], out=first[1:])
    return first


def _labels(first: npt.NDArray[np.bool_]) -> pl.Series:
    return pl.Series("_w", np.cumsum(first, dtype=np.int64))


class _ByRows:
    """Windows made of rows: start and end are those of the first and last row."""

    def __init__(self, scope: Scope) -> None:
        self.time = scope.plan.source.time_column
        self.expressions: list[pl.Expr] = []
        self.extra: dict[str, pl.DataType] = {}
        self.true_for = 0

    def more(self) -> list[pl.Expr]:
        """Aggregations of `_ends_it` and `extra`."""
        return [pl.lit(True).alias("_ends_it")]

    def wend(self) -> pl.Expr:
        return pl.col("_stop")

    def completed(self) -> pl.Expr:
        return self.done().alias("_done")

    def done(self) -> pl.Expr:
        return (
            pl.col("_stop") - pl.col("_wstart") >= self.true_for if self.true_for else pl.lit(True)
        )

    def describe(self, labelled: pl.DataFrame) -> pl.DataFrame:
        """One line per window, in order of label."""
        made = labelled.group_by("_w", maintain_order=True).agg(
            pl.col("_g").first(),
            pl.col(self.time).first().alias("_wstart"),
            pl.col(self.time).last().alias("_stop"),
            pl.col("_seq").first().alias("_sseq"),
            pl.col("_seq").last().alias("_lseq"),
            pl.len().cast(pl.Int64).alias("_n"),
            *self.more(),
        )
        return made.with_columns(self.wend().alias("_wend"), self.done().alias("_done"))


class SessionCutter(_ByRows):
    """A gap longer than the tolerance begins a new window."""

    def __init__(self, scope: Scope, window: Session) -> None:
        super().__init__(scope)
        self.tolerance = window.tolerance.ticks(scope.plan.source.precision)

    def wend(self) -> pl.Expr:
        return pl.col("_stop") + self.tolerance

    def label(self, rows: pl.DataFrame) -> pl.DataFrame:
        first = _starts(rows)
        times = rows.get_column(self.time).to_numpy()
        first[1:] |= times[1:] - times[:-1] > self.tolerance
        return rows.with_columns(_labels(first))


class StateCutter(_ByRows):
    """Runs of one state; rows without a state are in no window and end none."""

    def __init__(self, scope: Scope, window: State) -> None:
        super().__init__(scope)
        self.expressions = [scope.over_rows(window.sql).expr.alias("_state")]
        self.extra = {"_state": window.type.polars()}
        self.true_for = window.true_for.ticks(scope.plan.source.precision) if window.true_for else 0

    def more(self) -> list[pl.Expr]:
        return [*super().more(), pl.col("_state").first()]

    def label(self, rows: pl.DataFrame) -> pl.DataFrame:
        if rows.get_column("_state").null_count():
            rows = rows.filter(pl.col("_state").is_not_null())
        states = rows.get_column("_state")
        first = _starts(rows)
        first |= (states != states.shift(1)).fill_null(True).to_numpy()
        return rows.with_columns(_labels(first))


class EventCutter(_ByRows):
    """From the first start row outside a window to the next end row.

    After an end row one is always outside, whatever came before. So the rows from behind one end
    row up to the next are cut on their own: the window begins at the first start row among them.
    """

    def __init__(self, scope: Scope, window: Event) -> None:
        super().__init__(scope)
        plan = scope.plan
        self.expressions = [
            scope.over_rows(window.start_sql).expr.fill_null(False).alias("_begins"),
            scope.over_rows(window.end_sql).expr.fill_null(False).alias("_ends"),
        ]
        self.true_for = window.true_for.ticks(plan.source.precision) if window.true_for else 0
        types = {c.name: c.type.polars() for c in (*plan.source.columns, *plan.source.tags)}
        self._fields: dict[str, tuple[str, ...]] = {}
        if plan.notify is not None:
            self._fields = {"_opened": window.start_columns, "_closed_by": window.end_columns}
            self.extra = {
                name: pl.Struct({c: types[c] for c in columns})
                for name, columns in self._fields.items()
                if columns
            }

    def more(self) -> list[pl.Expr]:
        made = [pl.col("_ends").last().alias("_ends_it")]
        for name in self.extra:
            value = pl.struct(*self._fields[name])
            made.append((value.first() if name == "_opened" else value.last()).alias(name))
        return made

    def done(self) -> pl.Expr:
        return pl.col("_ends_it") & super().done()

    def label(self, rows: pl.DataFrame) -> pl.DataFrame:
        if not rows.height:
            return rows.with_columns(pl.lit(0, dtype=pl.Int64).alias("_w"))
        begins = rows.get_column("_begins").to_numpy()
        ends = rows.get_column("_ends").to_numpy()
        segment = _starts(rows)
        segment[1:] |= ends[:-1]
        number = np.cumsum(segment, dtype=np.int64) - 1
        at = np.flatnonzero(begins)
        opening = np.full(number[-1] + 1, len(rows), np.int64)
        np.minimum.at(opening, number[at], at)
        inside = np.arange(len(rows)) >= opening[number]
        return rows.with_columns(pl.Series("_w", number)).filter(pl.Series(inside))


class CountCutter(_ByRows):
    """Windows of n rows that start at every k-th row."""

    def __init__(self, scope: Scope, window: Count) -> None:
        super().__init__(scope)
        self.size = window.size
        self.sliding = window.sliding

    def label(self, rows: pl.DataFrame) -> pl.DataFrame:
        first = _starts(rows)
        position = np.arange(len(rows))
        nth = position - np.maximum.accumulate(np.where(first, position, 0))
        last = nth // self.sliding
        # windows are numbered apart per partition: a label is the position of the partition's first
        # row plus the window's number
        base = position - nth
        if self.size == self.sliding:
            return rows.with_columns(pl.Series("_w", base + last))
        earliest = np.maximum((nth - self.size) // self.sliding + 1, 0)
        counts = last - earliest + 1
        index = np.repeat(position, counts)
        offset = np.arange(len(index)) - np.repeat(np.cumsum(counts) - counts, counts)
        label = base[index] + earliest[index] + offset
        return rows[index].with_columns(pl.Series("_w", label)).sort("_w", maintain_order=True)

    def label_after(self, rows: pl.DataFrame, counts: Numbers) -> pl.DataFrame:
        """Labels of rows that come behind *counts* rows per partition in windows that do not
        overlap.
        """
        first = _starts(rows)
        position = np.arange(len(rows))
        base = np.maximum.accumulate(np.where(first, position, 0))
        earlier = counts[rows.get_column("_g").to_numpy()] % self.size
        return rows.with_columns(pl.Series("_w", base + (position - base + earlier) // self.size))


class IntervalCutter:
    """The windows of the grid that hold a row. It counts only in those that reach up to its
    `_floor` and not up to its `_ceiling`.
    """

    def __init__(self, scope: Scope, window: Interval) -> None:
        plan = scope.plan
        self.grid = Grid(window, plan.source.precision, plan.timezone)
        self.time = plan.source.time_column
        self.expressions: list[pl.Expr] = []
        self.extra: dict[str, pl.DataType] = {}

    def label(self, rows: pl.DataFrame) -> pl.DataFrame:
        made = self.grid.label(rows, self.time)
        if (
            not self.grid.tumbling
            and "_floor" in rows.columns
            and (rows.get_column("_floor").max() or NEVER) != NEVER
        ):
            made = made.filter(pl.col("_wend") > pl.col("_floor"))
        if (
            not self.grid.tumbling
            and "_ceiling" in rows.columns
            and (rows.get_column("_ceiling").min() or ALWAYS) != ALWAYS
        ):
            made = made.filter(pl.col("_wend") <= pl.col("_ceiling"))
        if not self.grid.tumbling:
            made = made.sort("_g", "_wstart", maintain_order=True)
        first = _starts(made)
        starts = made.get_column("_wstart").to_numpy()
        first[1:] |= starts[1:] != starts[:-1]
        return made.with_columns(_labels(first))

    def completed(self) -> pl.Expr:
        return pl.lit(True).alias("_done")

    def describe(self, labelled: pl.DataFrame) -> pl.DataFrame:
        """One line per window, in order of label."""
        made = labelled.group_by("_w", maintain_order=True).agg(
            pl.col("_g").first(),
            pl.col("_wstart").first(),
            (pl.col("_wend").first() - 1).alias("_stop"),
            pl.col("_seq").first().alias("_sseq"),
            pl.col("_seq").last().alias("_lseq"),
            pl.len().cast(pl.Int64).alias("_n"),
            pl.col("_wend").first(),
        )
        return made.with_columns(_done=pl.lit(True), _ends_it=pl.lit(True))


def make_cutter(scope: Scope) -> Cutter:
    """The cutter of the plan's window clause."""
    window = scope.plan.window
    if isinstance(window, Interval):
        return IntervalCutter(scope, window)
    if isinstance(window, Session):
        return SessionCutter(scope, window)
    if isinstance(window, State):
        return StateCutter(scope, window)
    if isinstance(window, Event):
        return EventCutter(scope, window)
    if isinstance(window, Count):
        return CountCutter(scope, window)
    raise ValueError("a stream without a window has nothing to cut")

"""Values at points in time, from rows before, at and behind them: FILL of interp().

Knows nothing of SQL. Rows are in groups (`_g`), and times (`_t`) are ticks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from penstock.windows.emit.fill import between

Mask: TypeAlias = npt.NDArray[np.bool_]
Ticks: TypeAlias = npt.NDArray[np.int64]
Mode = Literal["none", "null", "value", "prev", "next", "linear", "near"]
GROUP = "_g"
TIME = "_penstock_time"
FILLED = "_isfilled"


@dataclass(frozen=True)
class Points:
    """Points in time from `start` to `end`, `step` apart, in ticks; with `around`, only rows that
    are at most so far from a point count for it.
    """

    start: int
    end: int
    step: int
    around: int | None = None

    @property
    def count(self) -> int:
        return (self.end - self.start) // self.step + 1


@dataclass(frozen=True)
class Filled:
    """A column to be read at points. `value` stands where `value` or no near row is asked for."""

    name: str
    ignore_null: bool = False
    value: Any = None


def interpolate(
    rows: pl.DataFrame, points: Points, mode: Mode, columns: Sequence[Filled], *, given: bool
) -> pl.DataFrame:
    """Return `_g`, `_t`, `_isfilled` and *columns* at the points where any column has an answer, in
    the order of time and groups.

    Args:
        rows: sorted by time; of rows of one group and time the first counts.
        given: whether PREV, NEXT and NEAR have a value for where no row is near.
    """
    groups = rows.select(GROUP).unique().sort(GROUP)
    times = points.start + np.arange(points.count, dtype=np.int64) * points.step
    grid = pl.DataFrame({TIME: times}).join(groups, how="cross")
    parts = [_Reader(rows, grid, points, c).read(mode, given=given) for c in columns]
    found = grid.select(GROUP, TIME).with_columns(
        pl.Series(FILLED, ~np.logical_or.reduce([part.exact for part in parts])),
        *(part.values.alias(c.name) for part, c in zip(parts, columns, strict=True)),
    )
    answered = np.logical_or.reduce([part.answered for part in parts])
    return found.filter(pl.Series(answered))


@dataclass(frozen=True)
class _Answer:
    values: pl.Series
    #: where a row has the very time
    exact: Mask
    answered: Mask


class _Reader:
    """Reads one column at the points of a grid."""

    def __init__(
        self, rows: pl.DataFrame, grid: pl.DataFrame, points: Points, column: Filled
    ) -> None:
        self._column = column
        self._around = points.around
        known = rows.select(GROUP, TIME, pl.col(column.name).alias("_v"))
        if column.ignore_null:
            known = known.filter(_has_value(known.get_column("_v")))
        known = known.unique([GROUP, TIME], keep="first", maintain_order=True)
        known = known.with_columns(pl.col(TIME).alias("_at"))
        self._times = grid.get_column(TIME).to_numpy()
        self._before = self._nearest(grid, known, "backward")
        self._behind = self._nearest(grid, known, "forward")

    def _nearest(self, grid: pl.DataFrame, known: pl.DataFrame, side: Any) -> pl.DataFrame:
        """Return the value and the time of the nearest row on one side of each point; at the point
        itself it is on both sides.
        """
        near = grid.join_asof(known, on=TIME, by=GROUP, strategy=side, check_sortedness=False)
        if self._around is None:
            return near
        close = (pl.col("_at") - pl.col(TIME)).abs() <= self._around
        return near.with_columns(pl.when(close).then(pl.col(c)).alias(c) for c in ("_v", "_at"))

    def read(self, mode: Mode, *, given: bool) -> _Answer:
        before = self._before.get_column("_at")
        exact = (before == self._before.get_column(TIME)).fill_null(False).to_numpy()
        values, there = self._make_up(mode)
        if mode in ("prev", "next", "near") and given:
            values = values.zip_with(pl.Series(there), self._constant(len(values)))
            there = np.ones(len(there), dtype=bool)
        own = self._before.get_column("_v")
        return _Answer(own.zip_with(pl.Series(exact), values), exact, exact | there)

    def _make_up(self, mode: Mode) -> tuple[pl.Series, Mask]:
        """Return the values where no row has the very time, and where there are any."""
        before, behind = self._before, self._behind
        has_before = before.get_column("_at").is_not_null().to_numpy()
        has_behind = behind.get_column("_at").is_not_null().to_numpy()
        count = len(self._times)
        if mode == "prev":
            return before.get_column("_v"), has_before
        if mode == "next":
            return behind.get_column("_v"), has_behind
        if mode == "near":
            closer = self._is_closer_before(has_before, has_behind)
            chosen = before.get_column("_v").zip_with(pl.Series(closer), behind.get_column("_v"))
            return chosen, has_before | has_behind
        if mode == "linear":
            return self._line(has_before & has_behind), has_before & has_behind
        if mode == "none":
            return self._constant(count), np.zeros(count, dtype=bool)
        return self._constant(count), np.ones(count, dtype=bool)

    def _is_closer_before(
        self,
        has_before: Mask,
        has_behind: Mask,
    ) -> Mask:
        """Tell where the row before is the nearer one; of two equally near ones it is."""
        passed = self._times - self._at(self._before)
        left = self._at(self._behind) - self._times
        closer: Mask = has_before & (~has_behind | (passed <= left))
        return closer

    def _line(self, there: Mask) -> pl.Series:
        """Return what lies on straight lines between neighbours."""
        low = self._before.get_column("_v")
        high = self._behind.get_column("_v")
        kind = low.dtype
        if kind.is_temporal():
            low, high = low.cast(pl.Int64), high.cast(pl.Int64)
        passed = np.where(there, self._times - self._at(self._before), 0)
        length = np.where(there, self._at(self._behind) - self._at(self._before), 1)
        values = between(low, high, passed, length)
        if values.dtype.is_float():
            # what overflows or was no number is unknown
            values = values.to_frame("v").select(pl.when(pl.col("v").is_finite()).then("v"))["v"]
        return values.cast(kind, strict=False)

    def _at(self, near: pl.DataFrame) -> Ticks:
        """Return times of near rows; 0 where there is none."""
        return near.get_column("_at").fill_null(0).to_numpy()

    def _constant(self, count: int) -> pl.Series:
        kind = self._before.schema["_v"]
        one = pl.Series("_v", [self._column.value]).cast(kind, strict=False)
        return one.extend_constant(one[0], count).head(count) if count else one.clear()


def _has_value(values: pl.Series) -> pl.Series:
    known = values.is_not_null()
    return known & values.is_not_nan() if values.dtype.is_float() else known

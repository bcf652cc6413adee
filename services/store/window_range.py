"""The range of times that WHERE leaves of a window select: FILL reaches to its ends, `AUTO` and
`_qstart` begin there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from sqlglot import exp

from penstock.sql.compile import compile_expression
from penstock.sql.compile.constants import ticks_of
from penstock.sql.plan import Duration, Interval, StreamPlan
from penstock.sql.source_names import TIME_ALIASES
from penstock.windows.assign.boundaries import Grid
from services.store.conditions import SWAPPED, conditions
from services.store.window_source import WindowSource

#: names of the range's ends and of its length in ticks
RANGE_NAMES = ("_qstart", "_qend", "_qduration")
_TICK = {"ms": "a", "us": "u", "ns": "b"}


@dataclass(frozen=True)
class TimeRange:
    """The first and the last tick that WHERE allows; None where it names no end."""

    low: int | None = None
    high: int | None = None

    def within(self, low: int | None = None, high: int | None = None) -> TimeRange:
        """Return what of the range is between two ticks."""
        lows = [tick for tick in (self.low, low) if tick is not None]
        highs = [tick for tick in (self.high, high) if tick is not None]
        return TimeRange(max(lows, default=None), min(highs, default=None))

    @property
    def ends(self) -> tuple[int, int] | None:
        """Both ends, if there are both and something is between them."""
        if self.low is None or self.high is None or self.low > self.high:
            return None
        return self.low, self.high

    @property
    def duration(self) -> int | None:
        """The length in ticks."""
        return None if self.low is None or self.high is None else self.high - self.low


def range_of(source: WindowSource, timezone: str, moment: int) -> TimeRange:
    """Return the range that WHERE of a window select names, at *moment* in nanoseconds."""
    where = source.select.args.get("where")
    found = TimeRange()
    if where is None:
        return found
    reader = _Reader(source, timezone, moment)
    for condition in conditions(where.this):
        found = reader.apply(condition, found)
    return found


class _Reader:
    """Reads conditions on the time column."""

    def __init__(self, source: WindowSource, timezone: str, moment: int) -> None:
        self._precision = source.precision
        self._timezone = timezone
        self._now = source.ticks(moment)
        own = {c.name.lower() for c in source.columns}
        self._times = {source.time_column.lower()} | (set(TIME_ALIASES) - own)

    def apply(self, condition: exp.Expr, found: TimeRange) -> TimeRange:
        """Return what is left of the range *found* where *condition* is true."""
        if isinstance(condition, exp.Between):
            if not self._is_time(condition.this):
                return found
            low = self._ticks(condition.args["low"])
            return found.within(low, self._ticks(condition.args["high"]))
        kind = type(condition)
        if kind not in SWAPPED:
            return found
        time, value = condition.this, condition.expression
        if not self._is_time(time):
            time, value, kind = value, time, SWAPPED[kind]
        ticks = self._ticks(value) if self._is_time(time) else None
        return found if ticks is None else self._compare(kind, ticks, found)

    def _compare(self, kind: type[exp.Expr], ticks: int, found: TimeRange) -> TimeRange:
        if kind is exp.EQ:
            return found.within(ticks, ticks)
        if kind in (exp.GT, exp.GTE):
            return found.within(low=ticks + (kind is exp.GT))
        return found.within(high=ticks - (kind is exp.LT))

    def _is_time(self, node: exp.Expr) -> bool:
        return isinstance(node, exp.Column) and node.name.lower() in self._times

    def _ticks(self, node: exp.Expr) -> int | None:
        """Return the ticks of what is the same for all rows."""
        if node.find(exp.Column, exp.Query) is not None:
            return None
        if isinstance(node, exp.Literal) and node.is_string:
            return ticks_of(str(node.this), self._precision, self._timezone)
        value = compile_expression(
            node.copy(), {}, precision=self._precision, timezone=self._timezone
        )
        if value.type.kind != "TIMESTAMP" and not value.type.integer:
            return None
        ticks = pl.DataFrame({"_now": [self._now]}).select(value.expr).item()
        return None if ticks is None else int(ticks)


def start_with(plan: StreamPlan, found: TimeRange) -> StreamPlan:
    """Return *plan* with INTERVAL windows that begin where the range does."""
    if found.low is None or not isinstance(plan.window, Interval):
        return plan
    grid = Grid(plan.window, plan.source.precision, plan.timezone)
    start = grid.start(grid.last(np.array([found.low])))[0]
    offset = Duration(found.low - int(start), _TICK[plan.source.precision])  # type: ignore[arg-type]
    return replace(plan, window=replace(plan.window, offset=offset if offset.value else None))

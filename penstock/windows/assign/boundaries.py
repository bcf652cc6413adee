"""The grid of INTERVAL windows: which windows hold a time, where they start and end.

Windows are numbered by a whole number that grows with time, so "the window before" is `index - 1`
in every unit:

* b u a s m h: multiples of SLIDING from Unix 0;
* d w: multiples from local midnight of the stream's time zone; weeks count from the epoch and so
  begin on a Thursday. A window runs from midnight to midnight, so one with a change of the clocks
  in it is an hour longer or shorter;
* n y: calendar months in local time, counted from 1900-01 and divided by SLIDING, so `3n` are
  quarters.

`start(i)` is the grid point `i` plus the offset, `end(i)` (exclusive) is the grid point plus the
interval plus the offset. `WallClock` says what local time is. Everything is vectorised over numpy
Int64 ticks.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from penstock.sql.plan import TICKS_PER_SECOND, Duration, Interval
from penstock.windows.assign.wall_clock import WallClock
from penstock.windows.clocks.ticks import Ticks

#: lengths that many grids are made of, in seconds
_ROUND_SECONDS = (86_400, 3_600, 600, 60, 10, 1)
_Family = Literal["fixed", "local", "calendar"]


class Grid:
    """The windows of one INTERVAL clause in one time zone and precision."""

    def __init__(self, window: Interval, precision: str, timezone: str) -> None:
        self._precision = precision
        self._wall = WallClock(precision, timezone)
        self._step = window.sliding
        self._size = window.size
        self._family: _Family = self._family_of(window.sliding)
        self._size_family: _Family = self._family_of(window.size)
        self._offset_ticks = window.offset.ticks(precision) if window.offset else 0
        #: whether each time is in exactly one window
        self.tumbling = window.size == window.sliding or (
            self._family == self._size_family != "calendar"
            and window.size.ticks(precision) == window.sliding.ticks(precision)
        )
        #: length in ticks when all windows are equally long, else 0
        self.length = (
            window.size.ticks(precision) if self._family == self._size_family == "fixed" else 0
        )
        self._step_ticks = window.sliding.ticks(precision)

    @property
    def unit(self) -> int:
        """A length in ticks of which windows begin and end at whole multiples only; 0: there is
        none. Round where it can be, so that many grids have the same.
        """
        if not self.length:
            return 0
        common = math.gcd(self._step_ticks, self.length, self._offset_ticks)
        second = TICKS_PER_SECOND[self._precision]
        return next((s * second for s in _ROUND_SECONDS if not common % (s * second)), common)

    def _family_of(self, duration: Duration) -> _Family:
        if duration.natural:
            return "calendar"
        return "local" if duration.unit in ("d", "w") and not self._wall.utc else "fixed"

    # ---------------------------------------------------------------- the grid

    def last(self, times: Ticks) -> Ticks:
        """Index of the latest window that starts at or before each time."""
        if self._family == "fixed":
            return (times - self._offset_ticks) // self._step_ticks
        if self._family == "local":
            index = self._wall.to_local(times - self._offset_ticks) // self._step_ticks
        else:
            index = self._wall.month_of(times - self._offset_ticks) // self._step_months(self._step)
        # the offset counts elapsed time from a local grid point: a change of the clocks in between
        # may be off by one
        index = np.where(self.start(index) > times, index - 1, index)
        return np.where(self.start(index + 1) <= times, index + 1, index)

    def place(self, time: int) -> int:
        """`last` of one time, in a grid whose windows are equally long."""
        return (time - self._offset_ticks) // self._step_ticks

    def begins(self, index: int) -> int:
        """`start` of one window of such a grid."""
        return index * self._step_ticks + self._offset_ticks

    def ends(self, index: int) -> int:
        """Last tick of one window of such a grid."""
        return self.begins(index) + self.length - 1

    def start(self, index: Ticks) -> Ticks:
        """First tick of each window."""
        return self._add(self._point(index), None)

    def end(self, index: Ticks) -> Ticks:
        """First tick after each window."""
        return self._add(self._point(index), self._size)

    def first(self, times: Ticks) -> Ticks:
        """Index of the earliest window that holds each time; above `last` when SLIDING leaves none
        (never with sliding <= size).
        """
        index = self.last(times)
        if self.tumbling:
            return index
        if self.length:
            return (times - self._offset_ticks - self.length) // self._step_ticks + 1
        while True:
            earlier = self.end(index - 1) > times
            if not earlier.any():
                return index
            index = np.where(earlier, index - 1, index)

    def assign(self, times: Ticks) -> tuple[npt.NDArray[np.int64], Ticks]:
        """All (position in *times*, window index) pairs, windows of a time ascending, in order of
        *times*.
        """
        last = self.last(times)
        positions = np.arange(len(times))
        if self.tumbling:
            return positions, last
        first = self.first(times)
        counts = last - first + 1
        positions = np.repeat(positions, counts)
        nth = np.arange(len(positions)) - np.repeat(np.cumsum(counts) - counts, counts)
        return positions, first[positions] + nth

    def label(self, rows: pl.DataFrame, time: str) -> pl.DataFrame:
        """*rows* once per window that holds them, with `_wstart` and `_wend` (exclusive)."""
        positions, index = self.assign(rows.get_column(time).to_numpy())
        starts, ends = self.bounds(index)
        rows = rows if self.tumbling else rows[positions]
        return rows.with_columns(
            pl.Series("_wstart", starts, dtype=pl.Int64), pl.Series("_wend", ends, dtype=pl.Int64)
        )

    def bounds(self, index: Ticks) -> tuple[Ticks, Ticks]:
        """First tick and first tick after each window; calendars are asked once per distinct
        window.
        """
        if self.length:
            start = index * self._step_ticks + self._offset_ticks
            return start, start + self.length
        known, inverse = np.unique(index, return_inverse=True)
        return self.start(known)[inverse], self.end(known)[inverse]

    def stops(self, index: Ticks) -> Ticks:
        """Last tick of each window."""
        if self.length:
            return index * self._step_ticks + (self._offset_ticks + self.length - 1)
        return self.bounds(index)[1] - 1

    # ---------------------------------------------------------------- units

    def _step_months(self, duration: Duration) -> int:
        return duration.value * (12 if duration.unit == "y" else 1)

    def _point(self, index: Ticks) -> Ticks:
        """Grid point: local wall-clock ticks for local and calendar steps, UTC ticks otherwise."""
        if self._family == "calendar":
            return self._wall.first_of_month(index * self._step_months(self._step))
        return index * self._step_ticks

    def _add(self, points: Ticks, size: Duration | None) -> Ticks:
        """UTC ticks of grid *points* moved on by *size*, plus the offset."""
        local = self._family != "fixed"
        if size is not None:
            if self._size_family == "calendar":
                points = self._wall.add_months(
                    points if local else self._wall.to_local(points), self._step_months(size)
                )
                local = True
            elif self._size_family == "local" or self._family == "fixed":
                points = points + size.ticks(self._precision)
            else:
                points = self._wall.to_utc(points) if local else points
                points = points + size.ticks(self._precision)
                local = False
        return (self._wall.to_utc(points) if local else points) + self._offset_ticks

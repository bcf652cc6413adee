"""Event time of a kernel: how far each partition of the stream and each table has come, and which
rows come too late.

T of a partition is its latest event time minus WATERMARK (or what FLUSH and the idle time-out
raised it to); it never goes back. A row is out of order when it lies below its own table's latest
time. Both look at what came before the row's own write: the frame's `_step` says where writes
begin. Refuses to know windows: whether a window is overdue is asked with its last tick.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from penstock.windows.steps import previous_max

Ticks = npt.NDArray[np.int64]
#: before and after every time; far enough from the ends of Int64 for sums with durations
NEVER = -(1 << 62)
ALWAYS = 1 << 62


class Highest:
    """The highest value seen per number, as an array that grows."""

    def __init__(self) -> None:
        self.values: Ticks = np.full(64, NEVER, np.int64)
        self._touched = np.zeros(64, np.bool_)

    def reserve(self, size: int) -> None:
        """Make room for numbers below *size*."""
        if size > len(self.values):
            room = max(size, 2 * len(self.values))
            values = np.full(room, NEVER, np.int64)
            touched = np.zeros(room, np.bool_)
            values[: len(self.values)] = self.values
            touched[: len(self._touched)] = self._touched
            self.values = values
            self._touched = touched

    def raise_to(self, numbers: Ticks, values: Ticks) -> None:
        """Take the maximum with *values* at *numbers* (which may repeat)."""
        if len(numbers):
            self.reserve(int(numbers.max()) + 1)
            np.maximum.at(self.values, numbers, values)
            self._touched[numbers] = True

    def put(self, numbers: Ticks, values: Ticks) -> None:
        """Set *values* at *numbers*, lower ones too."""
        if len(numbers):
            self.reserve(int(numbers.max()) + 1)
            self.values[numbers] = values
            self._touched[numbers] = True

    def before(
        self, numbers: Ticks, steps: Ticks, values: Ticks, counts: npt.NDArray[np.bool_]
    ) -> Ticks:
        """Per line: the highest value of its number before the line's step; only lines with
        *counts* raise it.
        """
        self.reserve(int(numbers.max()) + 1 if len(numbers) else 0)
        known: Ticks = self.values[numbers]
        if len(steps) == 0 or steps[0] == steps[-1]:
            return known
        return previous_max(numbers, np.where(counts, values, NEVER), steps, known)

    def delta(self, full: bool) -> pl.DataFrame:
        """Numbers and values raised since the last call."""
        numbers = np.flatnonzero(self.values != NEVER if full else self._touched)
        self._touched[:] = False
        return pl.DataFrame(
            {"n": numbers.astype(np.int64), "value": self.values[numbers]},
            schema={"n": pl.Int64, "value": pl.Int64},
        )

    def restore(self, frame: pl.DataFrame) -> None:
        """Take over what `delta` gave."""
        self.raise_to(frame.get_column("n").to_numpy(), frame.get_column("value").to_numpy())
        self._touched[:] = False


class Timeline:
    """Event time per partition (`groups`) and per table."""

    def __init__(self, watermark: int) -> None:
        self.watermark = watermark
        self.groups = Highest()
        self.tables = Highest()
        self.floors = Highest()
        #: append time of the latest row per partition
        self.heard = Highest()

    def reserve(self, groups: int) -> None:
        """Make room for *groups* partitions."""
        self.groups.reserve(groups)
        self.floors.reserve(groups)
        self.heard.reserve(groups)

    def hear(self, live: pl.DataFrame, time: str, *, tables: bool, idle: bool) -> None:
        """Move event time on to what *live* rows say.

        *time*: their time column. *tables*, *idle*: event time of tables, and when a partition was
        heard of, are of interest.
        """
        numbers = live.get_column("_g").to_numpy()
        times = live.get_column(time).to_numpy()
        self.groups.raise_to(numbers, times)
        if tables:
            self.tables.raise_to(live.get_column("_tab").to_numpy(), times)
        if idle:
            self.heard.raise_to(numbers, live.get_column("_now").to_numpy())

    def delta(self, full: bool) -> dict[str, pl.DataFrame]:
        """Frames of what moved since the last call."""
        return {
            f"t.{name}": getattr(self, name).delta(full)
            for name in ("groups", "tables", "floors", "heard")
        }

    def restore(self, frames: dict[str, pl.DataFrame]) -> None:
        """Apply what `delta` gave."""
        for name in ("groups", "tables", "floors", "heard"):
            if f"t.{name}" in frames:
                getattr(self, name).restore(frames[f"t.{name}"])

    def t(self, numbers: Ticks) -> Ticks:
        """T of each partition; NEVER before its first row."""
        highest = self.groups.values[numbers]
        return np.maximum(
            np.where(highest == NEVER, NEVER, highest - self.watermark), self.floors.values[numbers]
        )

    def all_t(self) -> Ticks:
        """T of all partitions by number."""
        size = min(len(self.groups.values), len(self.floors.values))
        return self.t(np.arange(size))

    def t_before(
        self, numbers: Ticks, steps: Ticks, times: Ticks, counts: npt.NDArray[np.bool_]
    ) -> Ticks:
        """T of each row's partition before the row's step."""
        highest = self.groups.before(numbers, steps, times, counts)
        self.floors.reserve(len(self.groups.values))
        return np.maximum(
            np.where(highest == NEVER, NEVER, highest - self.watermark), self.floors.values[numbers]
        )

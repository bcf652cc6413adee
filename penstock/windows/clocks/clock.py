"""What time it is: for the groups of a stream, for its source tables, and for the stream itself.

T of a group is its highest event time less the watermark, or the floor that FLUSH and the idle
time-out set under it. It never goes back; a window that ends before T is over. A row is out of
order when it lies below the highest time of its own table. Both are judged by what came before the
row's client write: a write is one step, and its rows know nothing of each other. The time of the
stream is the processing time that ticks tell.

Nothing depends on how writes were put together into calls. Does not know windows: callers compare T
with a window's last tick.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from penstock.sql.plan import StreamPlan
from penstock.windows.clocks.ticks import NEVER, Highest, Mask, Ticks, previous_max
from penstock.windows.groups.key_index import Numbers
from penstock.windows.groups.table_names import TableNames
from penstock.windows.rows import columnwise


class TableClock:
    """The highest event time of every child table, and which rows are out of order for theirs."""

    def __init__(self, names: TableNames) -> None:
        """*names*: numbers the tables."""
        self._names = names
        self._highest = Highest()

    def late(self, tables: Numbers, times: Ticks, steps: Ticks, among: Mask | None = None) -> Mask:
        """Tell which rows lie below what their table had before the row's write; asked before
        `advance`.

        Args:
            among: the rows for which the answer matters; others get False. None: all.
        """
        self._reserve()
        result = np.zeros(len(tables), np.bool_)
        if among is None:
            where = np.arange(len(tables))
        else:
            asked = np.zeros(len(self._highest.values), np.bool_)
            asked[tables[among]] = True
            where = np.flatnonzero(asked[tables])
        keys = tables[where]
        result[where] = times[where] < previous_max(
            keys, times[where], steps[where], self._highest.values[keys]
        )
        return result if among is None else result & among

    def behind(self, tables: Numbers, times: Ticks) -> Mask:
        """Tell which rows' tables may have had a row of that time before, in earlier calls or
        earlier in this one.
        """
        self._reserve()
        known = self._highest.values[tables]
        before = previous_max(tables, times, np.arange(len(tables)), known)
        return times <= before

    def advance(self, tables: Numbers, times: Ticks) -> None:
        """Take rows of *tables* into account."""
        self._reserve()
        self._highest.raise_to(tables, times)

    def _reserve(self) -> None:
        self._highest.reserve(len(self._names))

    def delta(self, full: bool = False) -> pl.DataFrame:
        """Return `tbname, ts` of the tables that moved since the last call (all when *full*)."""
        moved = self._highest.delta(full)
        names = self._names.names(moved.get_column("n").to_numpy())
        return names.to_frame().with_columns(moved.get_column("value").alias("ts"))

    def restore(self, moved: pl.DataFrame) -> None:
        """Take over what `delta` gave."""
        tables = self._names.numbers(moved)
        self._highest.put(tables, moved.get_column("ts").to_numpy())
        self._highest.mark_saved()


class GroupClock:
    """How far each group has come.

    A call first makes room for the groups that there are (`reserve`), then says what has come.
    """

    def __init__(self, watermark: int, idle: int = 0) -> None:
        """
        Args:
            watermark: in ticks.
            idle: ticks without rows after which a group is silent; 0: none ever is.
        """
        self._watermark = watermark
        self.idle = idle
        self._count = 0
        #: the highest event time
        self.times = Highest()
        #: below which T does not lie
        self._floors = Highest()
        #: append time of the latest row
        self._heard = Highest()
        #: what ends before this was closed by history, and is in storage only
        self._released = Highest()
        #: whether any floor is set
        self.raised = False
        #: whether any group has windows in storage only
        self.releases = False

    @classmethod
    def of(cls, plan: StreamPlan) -> GroupClock:
        """Return the clock of the groups of *plan*."""
        precision = plan.source.precision
        idle = plan.idle_timeout.ticks(precision) if plan.idle_timeout else 0
        return cls(plan.watermark.ticks(precision), idle)

    @property
    def highest(self) -> Ticks:
        """The highest event time by group, for at least as many as there are."""
        return self.times.values

    @property
    def released(self) -> Ticks:
        """The time by group before which windows are in storage only."""
        return self._released.values

    def reserve(self, groups: int) -> None:
        """Make room for *groups* groups."""
        self._count = groups
        if groups > len(self.times.values):
            for series in (self.times, self._floors, self._heard, self._released):
                series.reserve(groups)

    def advance(self, groups: Numbers, times: Ticks, heard: Ticks | None) -> None:
        """Take rows into account.

        Args:
            groups, times: of each row, or of all rows of a group the highest.
            heard: append times of the same; None where silence does not matter.
        """
        self.times.raise_to(groups, times)
        if heard is not None:
            self._heard.raise_to(groups, heard)

    def advance_one(self, group: int, time: int) -> None:
        """Take rows of one group into account, the latest of *time*, where silence does not
        matter.
        """
        highest = self.times
        highest.values[group] = max(time, highest.values.item(group))
        highest.moved[group] = True

    def raise_floor(self, groups: Numbers, floors: Ticks) -> None:
        """Make T of *groups* at least *floors* from now on."""
        if len(groups):
            self.raised = True
            self._floors.raise_to(groups, floors)

    def release(self, groups: Numbers) -> None:
        """Note that what T of *groups* has passed is in storage only."""
        if len(groups):
            self.releases = True
            self._released.put(groups, self.t(groups))

    def silent(self, now: int) -> Numbers:
        """Return the groups that have had rows, the last of them `idle` ticks before *now* or
        earlier.
        """
        heard = self._heard.values[: self._count]
        return np.flatnonzero((heard != NEVER) & (heard <= now - self.idle))

    def latest(self) -> int:
        """Return the highest event time of all groups."""
        return int(self.highest[: self._count].max()) if self._count else NEVER

    # ---------------------------------------------------------------- T

    def t(self, groups: Numbers) -> Ticks:
        """Return T of each group; long past before its first row."""
        return self.t_of(self.highest.take(groups), groups)

    def all_t(self) -> Ticks:
        """Return T by group, for at least as many as there are; a copy."""
        t: Ticks = self.highest - self._watermark
        return np.maximum(t, self._floors.values) if self.raised else t

    def t_of(self, highest: Ticks, groups: Numbers) -> Ticks:
        """Return T of each group if its highest time is *highest*."""
        if self._watermark:
            highest = highest - self._watermark
        return np.maximum(highest, self._floors.values.take(groups)) if self.raised else highest

    def t_before(self, groups: Numbers, steps: Ticks, times: Ticks, counts: Mask) -> Ticks:
        """Return T of each row's group before the row's write; only rows that *counts* raise
        it.
        """
        return self.t_of(self.times.before(groups, steps, times, counts), groups)

    def reaches(self, highest: int) -> int:
        """Return what `t_of` does for one group without a floor."""
        return highest - self._watermark

    def reached(self, groups: Numbers) -> Ticks:
        """Return T of each group by its rows alone: what ends before it can get no row that is in
        order.
        """
        reached: Ticks = self.highest.take(groups) - self._watermark
        return reached

    # ---------------------------------------------------------------- state

    def delta(self, full: bool) -> pl.DataFrame:
        """Return a line for each group that moved since the last call (all when *full*)."""
        each = self._lines()
        if full:
            moved = np.arange(self._count)
        else:
            any_of = np.logical_or.reduce([series.moved[: self._count] for series in each.values()])
            moved = np.flatnonzero(any_of)
        for series in each.values():
            series.mark_saved()
        columns = [pl.Series(name, series.values[moved]) for name, series in each.items()]
        return columnwise.beside([pl.Series("_g", moved), *columns])

    def restore(self, moved: pl.DataFrame) -> None:
        """Take over what `delta` gave."""
        groups = moved.get_column("_g").to_numpy()
        for name, series in self._lines().items():
            if name in moved.columns:  # states of earlier versions have released nothing
                series.put(groups, moved.get_column(name).to_numpy())
            series.mark_saved()
        self._look()

    def _lines(self) -> dict[str, Highest]:
        return {
            "highest": self.times,
            "floor": self._floors,
            "heard": self._heard,
            "released": self._released,
        }

    def frames(self, full: bool) -> dict[str, pl.DataFrame]:
        """Return what moved since the last call in frames of their own, which hold less where
        floors are rare; for streams that release nothing.
        """
        return {name: series.delta(full) for name, series in self._frames().items()}

    def restore_frames(self, frames: dict[str, pl.DataFrame]) -> None:
        """Take over what `frames` gave, as far as it is there."""
        for name, series in self._frames().items():
            if name in frames:
                series.restore(frames[name])
        self._look()

    def _frames(self) -> dict[str, Highest]:
        return {"t.groups": self.times, "t.floors": self._floors, "t.heard": self._heard}

    def _look(self) -> None:
        self.raised = bool((self._floors.values != NEVER).any())
        self.releases = bool((self._released.values != NEVER).any())


class StreamClock:
    """The processing time of one stream, as ticks tell it; it never goes back."""

    def __init__(self) -> None:
        #: of the latest tick; NEVER before the first
        self.time = NEVER
        #: of the first tick
        self.start = NEVER
        #: append time of the latest row, or the latest tick if that is later
        self.now = 0

    def hear(self, appended: int) -> None:
        """Take a row that was *appended* then into account."""
        self.now = max(self.now, appended)

    def begin(self, time: int) -> bool:
        """Take the first tick; False: it has come before, and nothing was done."""
        if self.start != NEVER:
            return False
        self.start = self.time = time
        return True

    def is_due(self, time: int, every: int) -> bool:
        """Tell whether what happens *every* so many ticks (0: never) since the first tick happens
        between the latest tick and one of *time*.
        """
        if not every:
            return False
        return (time - self.start) // every > (self.time - self.start) // every

    def advance(self, time: int) -> None:
        """Take a tick; one of an earlier time changes nothing."""
        if time > self.time:
            self.time = time
            self.hear(time)

    def delta(self) -> pl.DataFrame:
        """Return all of it in one line."""
        return pl.DataFrame({"clock": [self.time], "start": [self.start], "now": [self.now]})

    def restore(self, line: pl.DataFrame) -> None:
        """Take over what `delta` gave."""
        self.time, self.start, self.now = line.row(0)

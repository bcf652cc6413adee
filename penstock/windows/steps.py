"""What came before a write: running maxima that honour the borders of client writes.

A write is one step: its rows are judged by what was there before it, whatever order they have
inside it. Everything works on dense keys (numpy indices) and whole calls at once; nothing depends
on how writes were put together into calls.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from penstock.windows import columnwise
from penstock.windows.key_index import Numbers
from penstock.windows.table_names import TableNames

#: before every time; far enough from the end of Int64 for sums with durations
NEVER = -(1 << 62)
Ticks = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def grown(array: npt.NDArray[np.generic], size: int, fill: object) -> npt.NDArray[np.generic]:
    """*array* with room for at least *size* items, new ones set to *fill*; grows by doubling."""
    if size <= len(array):
        return array
    bigger = np.full(max(size, 2 * len(array), 64), fill, array.dtype)
    bigger[: len(array)] = array
    return bigger


def previous_max(keys: Numbers, values: Ticks, steps: Ticks, before: Ticks) -> Ticks:
    """For each row the highest value of its key in earlier steps, or *before* (per row: what the
    key had before the call).

    *steps* never goes down along the rows.
    """
    n = len(keys)
    if not n:
        return np.empty(0, np.int64)
    order = np.argsort(keys, kind="stable")
    key = keys[order]
    value = values[order]
    step = steps[order]
    first_of_key = np.concatenate(([True], key[1:] != key[:-1]))
    first_of_step = first_of_key | np.concatenate(([True], step[1:] != step[:-1]))
    starts = np.flatnonzero(first_of_step)
    highest = np.maximum.reduceat(value, starts)  # of each (key, step)
    opens = first_of_key[starts]
    previous = np.empty(len(starts), np.int64)
    previous[1:] = highest[:-1]
    previous[opens] = before[order][starts[opens]]
    _segmented_cummax(previous, opens)
    result = np.empty(n, np.int64)
    result[order] = np.repeat(previous, np.diff(np.append(starts, n)))
    return result


def _segmented_cummax(values: Ticks, opens: Mask) -> None:
    """Running maximum in place, starting afresh where *opens*."""
    segment = np.cumsum(opens)
    longest = int(np.bincount(segment).max())
    distance = 1
    while distance < longest:
        same = segment[distance:] == segment[:-distance]
        values[distance:] = np.where(
            same, np.maximum(values[distance:], values[:-distance]), values[distance:]
        )
        distance *= 2


class TableClock:
    """The highest time of every child table, and which rows are out of order for theirs: one Int64
    per table.
    """

    def __init__(self, names: TableNames) -> None:
        """*names*: numbers the tables."""
        self._names = names
        self._highest: Ticks = np.full(64, NEVER, np.int64)
        self._changed: Mask = np.zeros(64, np.bool_)

    def reserve(self) -> None:
        """Make room for all tables that have numbers."""
        self._highest = grown(self._highest, len(self._names), NEVER)  # type: ignore[assignment]
        self._changed = grown(self._changed, len(self._names), False)  # type: ignore[assignment]

    def late(self, tables: Numbers, times: Ticks, steps: Ticks, among: Mask | None = None) -> Mask:
        """Whether each row lies below what its table had before the row's write; asked before
        `advance`.

        *among*: only these rows need a right answer (the others: False).
        """
        self.reserve()
        result = np.zeros(len(tables), np.bool_)
        if among is None:
            where = np.arange(len(tables))
        else:
            asked = np.zeros(len(self._highest), np.bool_)
            asked[tables[among]] = True
            where = np.flatnonzero(asked[tables])
        keys = tables[where]
        result[where] = times[where] < previous_max(
            keys, times[where], steps[where], self._highest[keys]
        )
        return result if among is None else result & among

    def behind(self, tables: Numbers, times: Ticks) -> Mask:
        """Whether each row's table may have had a row of that time before, in earlier calls or
        earlier in this one.
        """
        self.reserve()
        before = previous_max(tables, times, np.arange(len(tables)), self._highest[tables])
        return times <= before

    def advance(self, tables: Numbers, times: Ticks) -> None:
        self.reserve()
        np.maximum.at(self._highest, tables, times)
        self._changed[tables] = True

    def delta(self, full: bool = False) -> pl.DataFrame:
        """`tbname, ts` of the tables that moved since the last call (all when *full*)."""
        moved = np.flatnonzero(self._highest != NEVER) if full else np.flatnonzero(self._changed)
        self._changed[:] = False
        return (
            self._names.names(moved).to_frame().with_columns(pl.Series("ts", self._highest[moved]))
        )

    def restore(self, moved: pl.DataFrame) -> None:
        tables = self._names.numbers(moved)
        self.reserve()
        self._highest[tables] = moved.get_column("ts").to_numpy()


class GroupClock:
    """How far each group has come: T is its highest time minus the watermark, or the floor that was
    set under it.
    """

    def __init__(self, watermark: int) -> None:
        self._watermark = watermark
        self.highest: Ticks = np.full(64, NEVER, np.int64)
        self._floor: Ticks = np.full(64, NEVER, np.int64)
        self._heard: Ticks = np.full(64, NEVER, np.int64)  # append time of the latest row
        #: what ends before this was closed by history, and is in storage only
        self.released: Ticks = np.full(64, NEVER, np.int64)
        self.releases = False  # whether any group has such windows
        self._moved: Mask = np.zeros(64, np.bool_)
        self.raised = False  # whether any floor is set
        self._count = 0

    def reserve(self, groups: int) -> None:
        """Make room for *groups* groups."""
        self._count = groups
        if groups > len(self.highest):
            self.highest = grown(self.highest, groups, NEVER)  # type: ignore[assignment]
            self._floor = grown(self._floor, groups, NEVER)  # type: ignore[assignment]
            self._heard = grown(self._heard, groups, NEVER)  # type: ignore[assignment]
            self.released = grown(self.released, groups, NEVER)  # type: ignore[assignment]
            self._moved = grown(self._moved, groups, False)  # type: ignore[assignment]

    def advance(self, groups: Numbers, times: Ticks, heard: Ticks | None) -> None:
        """Rows of *groups* have come; *heard*: their append times, where silence matters."""
        np.maximum.at(self.highest, groups, times)
        self._moved[groups] = True
        if heard is not None:
            np.maximum.at(self._heard, groups, heard)

    def advance_one(self, group: int, time: int) -> None:
        """Rows of a group have come, the latest of *time*; nobody asks when it was heard of."""
        self.highest[group] = max(time, self.highest.item(group))
        self._moved[group] = True

    def raise_floor(self, groups: Numbers, floors: Ticks) -> None:
        """T of *groups* is at least *floors* from now on."""
        if len(groups):
            self.raised = True
            np.maximum.at(self._floor, groups, floors)
            self._moved[groups] = True

    def release(self, groups: Numbers) -> None:
        """What T of *groups* has passed is in storage only."""
        if len(groups):
            self.releases = True
            self.released[groups] = self.t(groups)
            self._moved[groups] = True

    def silent(self, since: int) -> Numbers:
        """Groups that have had rows, none of them after *since*."""
        heard = self._heard[: self._count]
        return np.flatnonzero((heard != NEVER) & (heard <= since))

    def latest(self) -> int:
        """Highest time of all groups."""
        return int(self.highest[: self._count].max()) if self._count else NEVER

    def t(self, groups: Numbers) -> Ticks:
        """T of each group; long past before its first row."""
        return self.t_of(self.highest.take(groups), groups)

    def t_of(self, highest: Ticks, groups: Numbers) -> Ticks:
        """T of each group if its highest time is *highest*."""
        if self._watermark:
            highest = highest - self._watermark
        return np.maximum(highest, self._floor.take(groups)) if self.raised else highest

    def reaches(self, highest: int) -> int:
        """`t_of` for one group without a floor."""
        return highest - self._watermark

    def reached(self, groups: Numbers) -> Ticks:
        """T of each group by its rows alone: what ends before it can get no row that is in
        order.
        """
        reached: Ticks = self.highest.take(groups) - self._watermark
        return reached

    def delta(self, full: bool) -> pl.DataFrame:
        """Groups that moved since the last call (all when *full*)."""
        moved = np.arange(self._count) if full else np.flatnonzero(self._moved[: self._count])
        self._moved[:] = False
        arrays = {
            "highest": self.highest,
            "floor": self._floor,
            "heard": self._heard,
            "released": self.released,
        }
        return columnwise.beside(
            [
                pl.Series("_g", moved),
                *(pl.Series(name, array[moved]) for name, array in arrays.items()),
            ]
        )

    def restore(self, moved: pl.DataFrame) -> None:
        groups = moved.get_column("_g").to_numpy()
        for name, array in (
            ("highest", self.highest),
            ("floor", self._floor),
            ("heard", self._heard),
        ):
            array[groups] = moved.get_column(name).to_numpy()
        if "released" in moved.columns:  # states of earlier versions have released nothing
            self.released[groups] = moved.get_column("released").to_numpy()
        self.raised, self.releases = (
            bool((self._floor != NEVER).any()),
            bool((self.released != NEVER).any()),
        )
        self._moved[:] = False

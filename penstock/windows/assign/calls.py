"""The rows of a call by the windows they lie in: found once, for all streams that ask the same of
them.

A `Call` is what INTERVAL windows need to know of some rows: the distinct (key, window) pairs among
them, which of these each row is in, and what each pair's rows add up to. A kernel then works on
pairs, of which there are far fewer than rows. Nothing in a call depends on what a kernel has had
before, so all streams of a context with the same source, conditions, keys and windows are given the
same one: a hundred of them go through the rows once. Does not judge rows, and does not know the
numbers of groups, which are each kernel's own.

Arrays and frames of a call are read by many and written by nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from penstock import tuning
from penstock.windows.assign.boundaries import Grid
from penstock.windows.clocks.ticks import NEVER, Mask, Ticks, previous_max
from penstock.windows.groups.key_index import Numbers
from penstock.windows.rows import columnwise

Array = npt.NDArray[Any]
T = TypeVar("T")
#: streams whose groups came at different times may have had different sums before; so many of these
#: are remembered
_STARTS = 4


class Answered:
    """What has been found out about something that does not change."""

    def __init__(self) -> None:
        self._known: dict[object, Any] = {}

    def once(self, question: object, answer: Callable[[], T]) -> T:
        """*answer*, worked out by who asks first."""
        if question not in self._known:
            self._known[question] = answer()
        return self._known[question]  # type: ignore[no-any-return]


class Call(Answered):
    """Prepared rows, and the windows they lie in.

    keys, key_of: the distinct keys, ascending, and of each row its place among them.
    owner, index, stops: of each pair its key's place, its window's number in the grid and last
        tick; by key and window.
    positions, place: of each (row, window) the row's position (None: each row is in just one
        window) and its pair's place.
    tables: of each row its table's number in `TableNames`.
    """

    def __init__(
        self, rows: pl.DataFrame, time: str, tables: Numbers, keys: Numbers, grid: Grid
    ) -> None:
        """*keys*: the key of each row, a number that is not negative."""
        self.rows = rows
        self.tables = tables
        self._time = time
        self._grid = grid
        self.keys, self.key_of = distinct(keys)
        if grid.tumbling:
            self._pair(None, grid.last(self.row_times))
        else:
            self._pair(*grid.assign(self.row_times))

    def _pair(self, positions: Numbers | None, indexes: Ticks) -> None:
        super().__init__()
        self.positions = positions
        owners = self.key_of if positions is None else self.key_of.take(positions)
        windows, window_of = distinct(indexes)
        if len(windows) == 1:
            self.place, pairs = _renumber(owners, len(self.keys))
            self.owner = pairs
            self.index = windows.repeat(len(pairs))
        else:
            codes, self.place = distinct(owners * len(windows) + window_of)
            self.owner = codes // len(windows)
            self.index = windows.take(codes - self.owner * len(windows))
        self.stops = self._grid.stops(self.index)
        self._sums: dict[tuple[int, object], list[tuple[Array, Array]]] = {}

    def without(self, dropped: Mask) -> Call:
        """The call as it is if these (row, window) had not come."""
        made = object.__new__(Call)
        made.rows = self.rows
        made.tables = self.tables
        made._time = self._time
        made._grid = self._grid
        made.keys = self.keys
        made.key_of = self.key_of
        made._pair(self.rows_of()[~dropped], self.index.take(self.place[~dropped]))
        return made

    def __len__(self) -> int:
        """How many pairs there are."""
        return len(self.owner)

    # ---------------------------------------------------------------- rows

    def rows_of(self) -> Numbers:
        """Of each (row, window) the row's position."""
        return np.arange(self.rows.height) if self.positions is None else self.positions

    @cached_property
    def now(self) -> int:
        """When the last row was appended."""
        return int(self.rows.get_column("_now")[-1])

    @cached_property
    def told_late(self) -> bool:
        """Whether the rows say themselves if they are late for their tables."""
        return "_late" in self.rows.columns

    @cached_property
    def row_times(self) -> Ticks:
        return self.rows.get_column(self._time).to_numpy()

    @cached_property
    def steps(self) -> Numbers:
        """The client write of each row."""
        return self.rows.get_column("_step").to_numpy()

    @cached_property
    def appeared(self) -> Numbers:
        """The places of the keys in order of their first rows."""
        first = np.empty(len(self.keys), np.int64)
        first[self.key_of[::-1]] = np.arange(len(self.key_of) - 1, -1, -1)
        return np.argsort(first)

    # ---------------------------------------------------------------- keys

    @cached_property
    def highest(self) -> Ticks:
        """The latest time of each key."""
        made = np.full(len(self.keys), NEVER, np.int64)
        np.maximum.at(made, self.key_of, self.row_times)
        return made

    @cached_property
    def heard(self) -> Ticks:
        """When the latest row of each key was appended."""
        made = np.full(len(self.keys), NEVER, np.int64)
        np.maximum.at(made, self.key_of, self.rows.get_column("_now").to_numpy())
        return made

    @cached_property
    def lowest(self) -> Ticks:
        """The earliest time of each key."""
        made = np.full(len(self.keys), -NEVER, np.int64)
        np.minimum.at(made, self.key_of, self.row_times)
        return made

    @cached_property
    def earliest(self) -> int:
        """The earliest time of all."""
        return int(self.row_times.min())

    @cached_property
    def descends(self) -> Mask:
        """Which keys have a row below what an earlier write of the call had."""
        made = np.zeros(len(self.keys), np.bool_)
        times = self.row_times
        if (times[1:] < times[:-1]).any():
            before = previous_max(
                self.key_of, times, self.steps, np.full(len(times), NEVER, np.int64)
            )
            made[self.key_of[times < before]] = True
        return made

    # ---------------------------------------------------------------- pairs

    @cached_property
    def latest_last(self) -> Numbers:
        """The pairs in order of their last rows."""
        last = np.empty(len(self), np.int64)
        last[self.place] = np.arange(len(self.place))
        is_last = np.zeros(len(self.place), np.bool_)
        is_last[last] = True
        return self.place[is_last]

    @cached_property
    def lines(self) -> pl.DataFrame:
        """The rows, once for each window."""
        return self.rows if self.positions is None else columnwise.picked(self.rows, self.positions)

    @cached_property
    def times(self) -> Ticks:
        """The time of each of the lines."""
        return self.lines.get_column(self._time).to_numpy()

    def argument(self, number: int) -> pl.Series:
        """An aggregate's argument of each of the lines."""
        return self.lines.get_column(f"_x{number}")

    def numbers(self, number: int, dtype: pl.DataType, nothing: float) -> Array:
        """An aggregate's argument of each of the lines as machine numbers, *nothing* for NULL."""
        return as_numbers(self.argument(number), dtype, nothing)

    def counts(self, number: int) -> Array:
        """How many rows of each pair have a value of the argument; -1: how many rows there are."""

        def count() -> Array:
            place = self.place
            if number >= 0 and (x := self.argument(number)).null_count():
                place = place[x.is_not_null().to_numpy()]
            return np.bincount(place, minlength=len(self))

        return self.once(("n", number), count)

    def extremes(self, number: int, dtype: pl.DataType, nothing: float, extreme: np.ufunc) -> Array:
        """The least or greatest value of the argument in each pair, as *extreme* of two says;
        *nothing* where there is none.
        """

        def find() -> Array:
            values = self.numbers(number, dtype, nothing)
            found = np.full(len(self), nothing, values.dtype)
            extreme.at(found, self.place, values)
            return found

        return self.once((extreme, number), find)

    def add_to(self, number: int, dtype: pl.DataType, before: Array) -> Array:
        """What each pair's sum becomes that is *before* when the rows' values are added one by one,
        in their order.

        The order makes a sum of floats the same to the last bit however rows were cut into calls,
        so it has to begin with what was there. Mostly that is the same for all streams.
        """
        if before.dtype.kind in "iu":
            return before + self.totals(number, dtype)
        known = self._sums.setdefault((number, before.dtype.str), [])
        for start, total in known:
            if np.array_equal(start, before):
                return total
        total = self._add(before.copy(), self.numbers(number, dtype, 0))
        if len(known) < _STARTS:
            known.append((before, total))
        return total

    def totals(self, number: int, dtype: pl.DataType) -> Array:
        """What the values of each pair add up to, in any order."""

        def add() -> Array:
            values = self.numbers(number, dtype, 0)
            return self._add(np.zeros(len(self), values.dtype), values)

        return self.once(("sum", number, dtype), add)

    def _add(self, total: Array, values: Array) -> Array:
        # What overflows is infinite, and NULL as a result.
        with np.errstate(over="ignore", invalid="ignore"):
            np.add.at(total, self.place, values)
        return total


def as_numbers(values: pl.Series, dtype: pl.DataType, nothing: float) -> Array:
    """*values* as machine numbers of a type, *nothing* for NULL."""
    if values.dtype != dtype:
        values = values.cast(dtype)
    if values.null_count():
        values = values.fill_null(pl.lit(nothing, dtype=dtype))
    return values.to_numpy()


def distinct(values: Numbers) -> tuple[Numbers, Numbers]:
    """The distinct *values*, ascending, and of each value its place among them."""
    if len(values) <= 1:
        return values.astype(np.int64), np.zeros(len(values), np.int64)
    least = int(values.min())
    most = int(values.max())
    if most - least < tuning.PLACES_PER_NUMBER * len(values) + tuning.PLACES_BESIDES:
        place, found = _renumber(values - least if least else values, most - least + 1)
        return found + least, place
    found, place = np.unique(values, return_inverse=True)
    return found, place


def _renumber(values: Numbers, bound: int) -> tuple[Numbers, Numbers]:
    """Of each value, from 0 to below *bound*, its place among the distinct ones, and those."""
    there = np.zeros(bound, np.bool_)
    there[values] = True
    found = np.flatnonzero(there)
    if len(found) == bound:
        return values, found
    places = np.empty(bound, np.int64)
    places[found] = np.arange(len(found))
    return places.take(values), found

"""Rows of a call by key and pane, a short stretch of time: what windows of many lengths and streams
of many conditions are put together from.

Rows are laid out once (`Panes`), by key and pane. A condition then chooses among them
(`ChosenRows`), and what its rows of a pane come to is worked out once for all windows that the pane
is a part of. Windows are put together from panes, of which there are far fewer than rows
(`WindowsOfPanes`). Does not know expressions, and nothing that a kernel has had before.

Arrays are read by many and written by nobody.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from penstock.windows.assign.boundaries import Grid
from penstock.windows.assign.calls import Answered, Array, distinct
from penstock.windows.clocks.ticks import NEVER, Mask, Ticks, previous_max
from penstock.windows.groups.key_index import Numbers

#: numpy sorts numbers of so many bits by counting, several times as fast as longer ones
_COUNTED = 1 << 16


class Panes(Answered):
    """Rows laid out by key and pane.

    order          : the rows by key, pane and the order in which they came
    starts         : of each pane of a key its first row there
    owner, times   : of each pane its key's place among `keys`, ascending, and its first tick
    """

    def __init__(self, times: Ticks, keys: Numbers, unit: int) -> None:
        """*unit*: how long a pane is, in ticks. *keys*: the key of each row, not negative."""
        super().__init__()
        self.unit = unit
        self.row_times = times
        self.keys, key_of = distinct(keys)
        numbers, number_of = distinct(times // unit)
        order = _stable_order(number_of, len(numbers))
        self.order = order[_stable_order(key_of.take(order), len(self.keys))]
        owners = key_of.take(self.order)
        sorted_numbers = number_of.take(self.order)
        begins = np.ones(len(order), np.bool_)
        begins[1:] = (owners[1:] != owners[:-1]) | (sorted_numbers[1:] != sorted_numbers[:-1])
        self.starts = np.flatnonzero(begins)
        self.owner = owners[self.starts]
        self.times = numbers[sorted_numbers[self.starts]] * unit
        self._owners = owners

    def __len__(self) -> int:
        """How many panes there are, each key's counted."""
        return len(self.starts)

    @cached_property
    def key_of(self) -> Numbers:
        """Of each row, in the order in which they came, its key's place."""
        made = np.empty(len(self.order), np.int64)
        made[self.order] = self._owners
        return made

    @cached_property
    def pane_of(self) -> Numbers:
        """Of each row, in the order in which they came, its pane."""
        sizes = np.diff(np.append(self.starts, len(self.order)))
        made = np.empty(len(self.order), np.int64)
        made[self.order] = np.arange(len(self.starts)).repeat(sizes)
        return made

    @cached_property
    def sorted_times(self) -> Ticks:
        """The times of the rows as they are laid out."""
        return self.row_times.take(self.order)

    @cached_property
    def descending(self) -> Mask | None:
        """Of each key whether its times go down anywhere; None: no key's do."""
        times = self.sorted_times
        falls = (times[1:] < times[:-1]) | (self.order[1:] < self.order[:-1])
        falls &= self._owners[1:] == self._owners[:-1]
        if not falls.any():
            return None
        made = np.zeros(len(self.keys), np.bool_)
        made[self._owners[1:][falls]] = True
        return made


class ChosenRows(Answered):
    """The rows that a condition lets pass, as far as they are in panes.

    counts, starts : of each pane with such rows how many there are, and the first of them
    owner, times   : of each pane as in `Panes`; `keys` are those that have such rows
    key_places     : of each of these its place among the keys in `Panes`
    """

    def __init__(self, panes: Panes, passed: Mask | None) -> None:
        """*passed*: which rows, in the order in which they came; None: all of them."""
        super().__init__()
        self.panes = panes
        self.passed = passed
        self._laid_out = None if passed is None else passed.take(panes.order)
        bounds = np.append(panes.starts, len(panes.order))
        rows = None if self._laid_out is None else np.flatnonzero(self._laid_out)
        if rows is not None:
            bounds = rows.searchsorted(bounds)
        counts = np.diff(bounds)
        self.there = np.flatnonzero(counts)
        self.counts = counts.take(self.there)
        self.starts = bounds.take(self.there)
        self.times = panes.times.take(self.there)
        owners = panes.owner.take(self.there)
        opens = np.ones(len(owners), np.bool_)
        opens[1:] = owners[1:] != owners[:-1]
        first_panes = np.flatnonzero(opens)
        self.key_places = owners.take(first_panes)
        self.owner = np.cumsum(opens) - 1
        self._firsts = self.starts.take(first_panes)
        lasts = np.append(self._firsts[1:], bounds[-1]) - 1
        #: of each key its first and last row, where they are laid out
        self._ends = (
            (self._firsts, lasts) if rows is None else (rows.take(self._firsts), rows.take(lasts))
        )

    def __len__(self) -> int:
        """How many panes have such rows."""
        return len(self.there)

    def among(self, laid_out: Array) -> Array:
        """Return those of values, one a row as they are laid out, whose rows pass."""
        return laid_out if self._laid_out is None else _where(self._laid_out, laid_out)

    def reduce(self, ufunc: np.ufunc, laid_out: Array) -> Array:
        """What the values of each pane come to; *laid_out* as for `among`."""
        found: Array = ufunc.reduceat(self.among(laid_out), self.starts)
        return found

    def of_keys(self, ufunc: np.ufunc, laid_out: Array) -> Array:
        """What the values of each key come to."""
        found: Array = ufunc.reduceat(self.among(laid_out), self._firsts)
        return found

    @cached_property
    def keys(self) -> Numbers:
        """The distinct keys, ascending."""
        return self.panes.keys.take(self.key_places)

    @cached_property
    def last(self) -> int:
        """The place, among all rows as they came, of the last one that passes."""
        every = len(self.panes.order) - 1
        return every if self.passed is None else every - int(self.passed[::-1].argmax())

    @cached_property
    def highest(self) -> Ticks:
        """The latest time of each key."""
        if self.panes.descending is not None:
            return self.of_keys(np.maximum, self.panes.sorted_times)
        return self.panes.sorted_times.take(self._ends[1])

    @cached_property
    def lowest(self) -> Ticks:
        """The earliest time of each key."""
        if self.panes.descending is not None:
            return self.of_keys(np.minimum, self.panes.sorted_times)
        return self.panes.sorted_times.take(self._ends[0])

    @cached_property
    def appeared(self) -> Numbers:
        """The places of the keys in order of their first rows."""
        return np.argsort(self.of_keys(np.minimum, self.panes.order))

    def descends(self, steps: Numbers) -> Mask:
        """Tell which keys have a row below what an earlier write had; *steps*: of all rows."""
        made = np.zeros(len(self.keys), np.bool_)
        if self.panes.descending is None:
            return made
        suspected = self.panes.descending.take(self.panes.key_of)
        chosen = np.flatnonzero(suspected if self.passed is None else suspected & self.passed)
        times = self.panes.row_times.take(chosen)
        keys = self.panes.key_of.take(chosen)
        before = previous_max(keys, times, steps.take(chosen), np.full(len(keys), NEVER, np.int64))
        falls = np.zeros(len(self.panes.keys), np.bool_)
        falls[keys[times < before]] = True
        return falls.take(self.key_places)

    @cached_property
    def pane_of(self) -> Numbers:
        """Of each row that passes, in the order in which they came, its pane's place here."""
        places = np.zeros(len(self.panes), np.int64)
        places[self.there] = np.arange(len(self.there))
        among = self.panes.pane_of
        return places.take(among if self.passed is None else _where(self.passed, among))


class WindowsOfPanes(Answered):
    """The windows of a grid that chosen rows lie in.

    owner, index, stops : of each pair of key and window as in `Call`
    """

    def __init__(self, chosen: ChosenRows, grid: Grid) -> None:
        super().__init__()
        self.chosen = chosen
        places, indexes = grid.assign(chosen.times)
        owners = chosen.owner.take(places)
        #: the panes, once for each window that they are a part of; None: just once
        self._places: Numbers | None = None
        if not grid.tumbling:
            order = np.lexsort((indexes, owners))
            self._places = places.take(order)
            owners = owners.take(order)
            indexes = indexes.take(order)
        begins = np.ones(len(owners), np.bool_)
        begins[1:] = (owners[1:] != owners[:-1]) | (indexes[1:] != indexes[:-1])
        self._starts = np.flatnonzero(begins)
        self._begins = begins
        self.owner = owners.take(self._starts)
        self.index = indexes.take(self._starts)
        self.stops = grid.stops(self.index)
        self.counts = self.reduce(np.add, chosen.counts)

    def reduce(self, ufunc: np.ufunc, of_panes: Array) -> Array:
        """What the values of panes come to in each pair."""
        values = of_panes if self._places is None else of_panes.take(self._places)
        found: Array = ufunc.reduceat(values, self._starts)
        return found

    @property
    def apart(self) -> bool:
        """Whether each row is in just one window."""
        return self._places is None

    @cached_property
    def place(self) -> Numbers:
        """Of each chosen row, in the order in which they came, its pair, if windows are apart."""
        return (np.cumsum(self._begins) - 1).take(self.chosen.pane_of)

    @cached_property
    def latest_last(self) -> Numbers:
        """The pairs in order of their last rows."""
        chosen = self.chosen
        last = chosen.once("last", lambda: chosen.reduce(np.maximum, chosen.panes.order))
        last_of_pairs = self.reduce(np.maximum, last)
        # of one row's windows the later one comes later, as pairs do
        return np.argsort(last_of_pairs, kind="stable")


def _where(mask: Mask, values: Array) -> Array:
    """Return *values* where *mask* is true; an index of bools takes three times as long."""
    return values.take(np.flatnonzero(mask))


def _stable_order(places: Numbers, bound: int) -> Numbers:
    """The order of *places*, all below *bound*; equal ones stay in theirs."""
    return np.argsort(places.astype(np.uint16) if bound <= _COUNTED else places, kind="stable")

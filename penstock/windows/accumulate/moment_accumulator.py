"""Mean and squared deviations per slot: those of a call are merged in by Chan's rule."""

from __future__ import annotations

import numpy as np
import polars as pl

from penstock.windows.assign.calls import Array, Call
from penstock.windows.clocks.ticks import grown
from penstock.windows.general.parts import Part
from penstock.windows.groups.key_index import Numbers


class Moments:
    """Number, mean and sum of squared deviations of an argument; *count* names the column with the
    number in a partial frame.
    """

    def __init__(self, part: Part, count: str) -> None:
        self._part = part
        self._count = count
        self._n: Array = np.empty(0, np.int64)
        self._mean: Array = np.empty(0, np.float64)
        self._m2: Array = np.empty(0, np.float64)
        #: what the mean is above the double in `_mean`
        self._low: Array = np.empty(0, np.float64)

    def grow(self, size: int) -> None:
        self._n = grown(self._n, size, 0)
        self._mean = grown(self._mean, size, 0)
        self._m2 = grown(self._m2, size, 0)
        self._low = grown(self._low, size, 0)

    def reset(self, slots: Numbers) -> None:
        for array in (self._n, self._mean, self._m2, self._low):
            array[slots] = 0

    def add(self, slots: Numbers, call: Call) -> None:
        n, mean, m2, low = call.once(("moments", self._part.argument), lambda: self._of(call))
        some = n > 0
        slots = slots[some]
        n = n[some]
        mean = mean[some]
        m2 = m2[some]
        low = low[some]
        before = self._n[slots]
        held = self._mean[slots]
        first = before == 0
        held[first] = mean[first]
        total = before + n
        delta = (mean - held) + (low - self._low[slots])
        self._n[slots] = total
        self._mean[slots], self._low[slots] = _two_sum(held, self._low[slots] + delta * (n / total))
        self._m2[slots] += m2 + delta**2 * (before * (n / total))

    def _of(self, call: Call) -> tuple[Array, Array, Array, Array]:
        """Number, mean, squared deviations and low part of the mean of each pair."""
        x = call.argument(self._part.argument)
        place = call.place
        size = len(call)
        if x.null_count():
            place = place[x.is_not_null().to_numpy()]
            x = x.drop_nulls()
        values = x.cast(pl.Float64).to_numpy()
        n = np.bincount(place, minlength=size)
        pivot = np.zeros(size)
        pivot[place] = values
        above = values - pivot[place]
        some = np.maximum(n, 1)
        share = np.bincount(place, above, size) / some
        apart = above - share[place]
        m2 = np.bincount(place, apart**2, size) - np.bincount(place, apart, size) ** 2 / some
        mean, low = _two_sum(pivot, share)
        return n, mean, np.maximum(m2, 0.0), low

    def put(self, slots: Numbers, partials: pl.DataFrame) -> None:
        columns = (self._count, *self._part.columns)
        for array, column in zip((self._n, self._mean, self._m2, self._low), columns, strict=True):
            array[slots] = partials.get_column(column).to_numpy()

    def read(self, slots: Numbers) -> list[pl.Series]:
        return [
            pl.Series(c, a.take(slots))
            for c, a in zip(self._part.columns, (self._mean, self._m2, self._low), strict=True)
        ]

    def compact(self, live: Numbers) -> None:
        pass


def _two_sum(large: Array, small: Array) -> tuple[Array, Array]:
    """The sum as a double, and what it is short of the exact one."""
    total = large + small
    back = total - large
    return total, (large - (total - back)) + (small - back)

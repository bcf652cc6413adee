"""Times as numbers in arrays, and the highest of them: of a number so far, and before a write.

Keys are dense numbers, which index arrays that grow; everything works on whole calls at once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from penstock.windows.groups.key_index import Numbers
from penstock.windows.rows import columnwise

Ticks = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
#: before and after every time; far enough from the ends of Int64 for sums with durations
NEVER = -(1 << 62)
ALWAYS = 1 << 62


def grown(array: npt.NDArray[np.generic], size: int, fill: object) -> npt.NDArray[np.generic]:
    """Return *array* with room for at least *size* items, new ones set to *fill*; grows by
    doubling.
    """
    if size <= len(array):
        return array
    bigger = np.full(max(size, 2 * len(array), 64), fill, array.dtype)
    bigger[: len(array)] = array
    return bigger


def previous_max(keys: Numbers, values: Ticks, steps: Ticks, before: Ticks) -> Ticks:
    """Return for each row the highest value of its key in earlier steps, or what *before* says.

    Args:
        steps: the client write of each row; never goes down along the rows.
        before: of each row the highest value that its key had before the call.
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
    """Make *values* their running maximum, which starts afresh where *opens*."""
    segment = np.cumsum(opens)
    longest = int(np.bincount(segment).max())
    distance = 1
    while distance < longest:
        same = segment[distance:] == segment[:-distance]
        values[distance:] = np.where(
            same, np.maximum(values[distance:], values[:-distance]), values[distance:]
        )
        distance *= 2


class Highest:
    """The highest value of each number, NEVER before the first; knows which moved since a save."""

    def __init__(self) -> None:
        self.values: Ticks = np.full(64, NEVER, np.int64)
        self.moved: Mask = np.zeros(64, np.bool_)

    def reserve(self, size: int) -> None:
        """Make room for numbers below *size*."""
        if size > len(self.values):
            self.values = grown(self.values, size, NEVER)  # type: ignore[assignment]
            self.moved = grown(self.moved, size, False)  # type: ignore[assignment]

    def raise_to(self, numbers: Numbers, values: Ticks) -> None:
        """Take the maximum with *values* at *numbers*, which may repeat and have room."""
        np.maximum.at(self.values, numbers, values)
        self.moved[numbers] = True

    def put(self, numbers: Numbers, values: Ticks) -> None:
        """Set *values* at *numbers*, lower ones too."""
        if len(numbers):
            self.reserve(int(numbers.max()) + 1)
            self.values[numbers] = values
            self.moved[numbers] = True

    def before(self, numbers: Numbers, steps: Ticks, values: Ticks, counts: Mask) -> Ticks:
        """Return for each row the highest value of its number, which has room, before the row's
        step; only rows that *counts* raise it.
        """
        known: Ticks = self.values[numbers]
        if len(steps) == 0 or steps[0] == steps[-1]:
            return known
        return previous_max(numbers, np.where(counts, values, NEVER), steps, known)

    def mark_saved(self) -> None:
        """Count from here what moves."""
        self.moved[:] = False

    def delta(self, full: bool) -> pl.DataFrame:
        """Return `n, value` of the numbers that moved since the last save (all when *full*)."""
        numbers = np.flatnonzero(self.values != NEVER if full else self.moved).astype(np.int64)
        self.mark_saved()
        return columnwise.beside(
            [pl.Series("n", numbers), pl.Series("value", self.values[numbers])]
        )

    def restore(self, frame: pl.DataFrame) -> None:
        """Take over what `delta` gave."""
        self.put(frame.get_column("n").to_numpy(), frame.get_column("value").to_numpy())
        self.mark_saved()

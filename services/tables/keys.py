"""Keys of a keyed stream table: which there are, and which rows of a write are taken because of
them. Pure.

Three rules. `first`: a row whose key is not there. `latest`: a row that is newer than the known one
of its key, of each write only the newest; of equal times the first stays. `changelog`: every row,
told new (N) from update (U). A key is a Python object, so here are the only loops over rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa

from penstock.catalog.model import KeyRule

#: the time of a row that has none: older than any
_NEVER = -(2**63)


@dataclass(frozen=True)
class Listed:
    """Keys of rows, and their times where the rule asks for them."""

    keys: list[Any]
    times: list[Any]


class TableKeys:
    """Of the rows that a copy has. One thread notes and forgets, under the copy's lock; anybody may
    look.
    """

    def __init__(
        self, columns: Sequence[str], rule: KeyRule = "first", times: Sequence[str] = ()
    ) -> None:
        self.columns = tuple(columns)
        self.rule = rule
        self._times_in = tuple(times)
        #: key → the newest row with it, oldest first
        self.rows: dict[Any, int] = {}
        #: key → time of that row, for rule `latest`
        self.times: dict[Any, Any] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def __contains__(self, key: Any) -> bool:
        return key in self.rows

    def list(self, batch: pa.RecordBatch) -> Listed:
        """Keys and times of the rows of *batch*."""
        keys = _values(batch, self.columns)
        times = _values(batch, self._times_in, _NEVER) if self._times_in else [None] * len(keys)
        return Listed(keys, times)

    def note(self, batch: pa.RecordBatch, first: int) -> None:
        """Rows from index *first* on are there."""
        if not self.columns:
            return
        found = self.list(batch)
        if self.rule == "first":
            self.rows.update(zip(found.keys, range(first, first + batch.num_rows), strict=True))
            return
        for row, key in enumerate(found.keys, first):
            self.rows.pop(key, None)  # so that it goes behind the older ones
            self.rows[key] = row
        if self._times_in:
            self.times.update(zip(found.keys, found.times, strict=True))

    def forget_before(self, row: int) -> None:
        """Rows with a smaller index are gone."""
        while self.rows:
            key, last = next(iter(self.rows.items()))
            if last >= row:
                return
            del self.rows[key]
            self.times.pop(key, None)

    def clear(self) -> None:
        self.rows.clear()
        self.times.clear()


class Taker:
    """A leader's decisions: to the keys of its copy come those of rows that it has sent and not
    read back yet.
    """

    def __init__(self, known: TableKeys) -> None:
        self._known = known
        #: key → time of the newest row under way
        self._under_way: dict[Any, Any] = {}
        self._sent: deque[tuple[int, Listed]] = deque()

    def take(self, listed: Listed, borders: Sequence[int]) -> tuple[list[int], list[str]]:
        """Places of the rows that are taken, which count as there from now on, and whether each
        one's key is new (N) or not (U).

        Args:
            borders: where each write's rows begin, and where the last one's end.
        """
        taken: list[int] = []
        states: list[str] = []
        latest = self._known.rule == "latest"
        for low, high in pairwise(borders):
            for i in _newest(listed, low, high) if latest else range(low, high):
                key = listed.keys[i]
                time = listed.times[i]
                there = key in self._under_way or key in self._known
                if self._known.rule == "first" and there:
                    continue
                if (
                    latest
                    and there
                    and not time > self._under_way.get(key, self._known.times.get(key, _NEVER))
                ):
                    continue
                self._under_way[key] = time
                taken.append(i)
                states.append("U" if there else "N")
        return taken, states

    def note_sent(self, number: int, listed: Listed) -> None:
        """Rows are in record *number*."""
        self._sent.append((number, listed))

    def settle(self, number: int) -> None:
        """The copy has the rows of the records up to *number*."""
        while self._sent and self._sent[0][0] <= number:
            _, listed = self._sent.popleft()
            for key, time in zip(listed.keys, listed.times, strict=True):
                if key in self._under_way and self._under_way[key] == time:
                    del self._under_way[key]


def _newest(listed: Listed, low: int, high: int) -> list[int]:
    """Of the rows with the same key the newest, the first of those of one time; in order."""
    best: dict[Any, int] = {}
    for i in range(low, high):
        known = best.get(listed.keys[i])
        if known is None or listed.times[i] > listed.times[known]:
            best[listed.keys[i]] = i
    return sorted(best.values())


def _values(batch: pa.RecordBatch, columns: Sequence[str], instead: Any = None) -> list[Any]:
    """For each row a value, or a tuple of several columns; times as ticks, and *instead* where
    there is no value.
    """
    lists = []
    for name in columns:
        array = batch.column(name)
        found = (array.view(pa.int64()) if pa.types.is_timestamp(array.type) else array).to_pylist()
        lists.append(found if instead is None else [instead if v is None else v for v in found])
    return lists[0] if len(lists) == 1 else list(zip(*lists, strict=True))

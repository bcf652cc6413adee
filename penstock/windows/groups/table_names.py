"""Child tables, numbered once for all streams that share a context."""

from __future__ import annotations

import threading
from collections import deque

import numpy as np
import polars as pl

from penstock import tuning
from penstock.windows.groups.key_index import KeyIndex, Numbers
from penstock.windows.rows import columnwise

#: names that the dictionary holds at most
_MOST_MET = 1 << 16


class TableNames:
    """Numbers of child tables; several threads may ask.

    The rows of a call go to many kernels; the numbers of the last frames asked for are kept, so the
    names are looked at once a call. Numbers are of this object only and never saved.
    """

    def __init__(self) -> None:
        self._index = KeyIndex({"tbname": pl.String()})
        self._met: dict[str, int] = {}  # names of small calls; any part of all
        self._recent: deque[tuple[pl.DataFrame, Numbers]] = deque(maxlen=4)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._index)

    def numbers(self, rows: pl.DataFrame) -> Numbers:
        """Number of the `tbname` of each row."""
        with self._lock:
            for known, numbers in self._recent:
                if known is rows:
                    return numbers
            numbers = (
                self._few(rows)
                if rows.height <= tuning.ROWS_NAMED_BY_DICTIONARY
                else self._index.numbers(rows.get_column("tbname").to_frame())
            )
            self._recent.append((rows, numbers))
            return numbers

    def _few(self, rows: pl.DataFrame) -> Numbers:
        column = rows.get_column("tbname")
        wanted = column.to_list()
        found = [self._met.get(name, -1) for name in wanted]
        if -1 not in found:
            return np.array(found, np.int64)
        if len(self._met) > _MOST_MET:
            self._met.clear()
        numbers = self._index.numbers(column.to_frame())
        self._met.update(zip(wanted, numbers.tolist(), strict=True))
        return numbers

    def met(self, name: str) -> int:
        """The table's number, if it was among the few rows of some call; else -1."""
        return self._met.get(name, -1)

    def names(self, numbers: Numbers) -> pl.Series:
        """`tbname` of each number."""
        return self._index.keys.get_column("tbname").gather(numbers)


class OneChild:
    """Picks the rows of one child table, whatever the case of its name, without looking at the
    names again.
    """

    def __init__(self, name: str, tables: TableNames) -> None:
        self._name = name.lower()
        self._tables = tables
        self._wanted = np.empty(0, np.bool_)

    def rows(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, Numbers]:
        """The child's rows and their table numbers."""
        tables = self._tables.numbers(rows)
        known = len(self._tables)
        if known > len(self._wanted):
            fresh = self._tables.names(np.arange(len(self._wanted), known))
            self._wanted = np.concatenate(
                [self._wanted, (fresh.str.to_lowercase() == self._name).to_numpy()]
            )
        mask = self._wanted.take(tables)
        return columnwise.kept(rows, mask), tables[mask]

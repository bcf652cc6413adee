"""Groups that are child tables: the numbers of tables ↔ the numbers of groups."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from penstock.windows.groups.key_index import Numbers
from penstock.windows.groups.table_names import TableNames


class TableGroups:
    """The groups of one kernel of which each is one child table, in order of appearance."""

    def __init__(self, names: TableNames) -> None:
        """*names*: numbers the child tables."""
        self._names = names
        #: number of a table → its group; -1: it has none yet
        self._own: Numbers = np.empty(0, np.int64)
        #: group → number of its table
        self._tables: Numbers = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self._tables)

    def of_rows(self, rows: pl.DataFrame) -> Numbers:
        """Return the group of each row by its `tbname`; new groups are added."""
        return self.of_tables(self._names.numbers(rows))

    def of_tables(self, tables: Numbers) -> Numbers:
        """Return the group of each table; new groups are added in the order of *tables*."""
        if len(self._names) > len(self._own):
            own = np.full(len(self._names) * 2, -1, np.int64)
            own[: len(self._own)] = self._own
            self._own = own
        found: Numbers = self._own.take(tables)
        if len(found) and found.min() < 0:
            fresh, places = np.unique(tables[found < 0], return_index=True)
            fresh = fresh[np.argsort(places)]
            self._own[fresh] = np.arange(len(self._tables), len(self._tables) + len(fresh))
            self._tables = np.concatenate([self._tables, fresh])
            found = self._own[tables]
        return found

    def of_distinct(self, tables: Numbers, appeared: Callable[[], Numbers]) -> Numbers:
        """Return the group of each of the distinct *tables*; *appeared* gives them in order of
        their first rows, in which new groups are added.
        """
        if len(self._names) > len(self._own) or self._own.take(tables).min() < 0:
            self.of_tables(appeared())
        return self._own.take(tables)

    def of_name(self, name: str) -> int:
        """Return the group of a table; -1: there is none yet, or the table was not met."""
        number = self._names.met(name)
        return self._own.item(number) if 0 <= number < len(self._own) else -1

    def names(self, groups: Numbers) -> pl.Series:
        """Return the name of each group's table."""
        return self._names.names(self._tables[groups])

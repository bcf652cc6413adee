"""Knows which child tables belong to a partition, as far as their rows have been seen."""

from __future__ import annotations

import numpy as np
import polars as pl

from penstock.catalog.model import Table
from penstock.rows.partition import partition_of
from penstock.windows.clocks.ticks import Mask, grown
from penstock.windows.groups.key_index import Numbers
from penstock.windows.groups.table_names import TableNames


class Placement:
    """Child tables of one partition of an ingestion topic."""

    def __init__(self, partition: int, names: TableNames) -> None:
        """*names*: numbers child tables."""
        self._partition = partition
        self._names = names
        #: by a child table's number: the table that it is of, where it is known to belong here
        self._home: Numbers = np.empty(0, np.int64)

    def is_home(self, name: str, table_id: int) -> bool:
        """Return True if a child table is known to be one of *table_id* that belongs here."""
        number = self._names.met(name)
        return 0 <= number < len(self._home) and self._home.item(number) == table_id

    def tables_of(self, table_id: int) -> set[str]:
        """Return the names of the child tables of *table_id* that are known to belong here."""
        return set(self._names.names(np.flatnonzero(self._home == table_id)).to_list())

    def find_misplaced(self, rows: pl.DataFrame, owners: Numbers, table: Table) -> Mask | None:
        """Return a mask of the rows that belong to another partition; None if all are in place.

        Args:
            rows: of tables of one topic.
            owners: id of each row's table.
            table: any of these tables.
        """
        if table.partitions == 1:
            return None
        numbers = self._names.numbers(rows)
        self._home = grown(self._home, len(self._names), -1)  # type: ignore[assignment]
        elsewhere = self._home.take(numbers) != owners
        if not elsewhere.any():
            return None
        unknown, first = np.unique(numbers[elsewhere], return_index=True)
        places = partition_of(self._names.names(unknown), table.partitions).to_numpy()
        here = places == self._partition
        self._home[unknown[here]] = owners[elsewhere][first[here]]
        if here.all():
            return None
        wrong: Mask = np.isin(numbers, unknown[~here])
        return wrong

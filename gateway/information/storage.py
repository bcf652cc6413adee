"""The list of what is kept of each table: how long, in how many partitions, files and bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from gateway.answers import table_of
from gateway.information import columns
from gateway.information.scope import EVERYTHING, ListScope
from gateway.information.viewer import Viewer
from penstock import names
from penstock.catalog.model import Table
from penstock.coordination.redis_link import ask

#: what the store tells of a table, in the order of the columns that show it
_TOLD = ("rows", "tail_rows", "bytes", "files")


class StorageLists:
    """Supertables and plain tables, with what the store keeps of them."""

    def __init__(self, viewer: Viewer, count_children: Callable[[Table], int]) -> None:
        self._viewer = viewer
        self._count_children = count_children

    def storage(self, scope: ListScope = EVERYTHING) -> pa.Table:
        """Return the tables of *scope*; what is not known of one is NULL. Raises BusError."""
        tables = [
            table
            for table in self._viewer.catalog.tables(scope.database)
            if scope.tables is None or table.name in scope.tables
        ]
        told = self._read_sizes(tables)
        return table_of(
            columns.STORAGE,
            [self._row(table, said) for table, said in zip(tables, told, strict=True)],
        )

    def _read_sizes(self, tables: Sequence[Table]) -> list[dict[str, int]]:
        """Return what the store tells of each table; nothing of one that the user may not read,
        since it counts rows.
        """
        if not tables:
            return []
        ids = [str(table.id) for table in tables]
        found = ask(lambda: self._viewer.redis.hmget(names.table_sizes(), ids))
        return [
            json.loads(said) if said is not None and self._viewer.may("READ", table) else {}
            for table, said in zip(tables, found, strict=True)
        ]

    def _row(self, table: Table, said: dict[str, int]) -> tuple[Any, ...]:
        virtual = "VIRTUAL_" if table.kind == "virtual" else ""
        kind = "SUPER_TABLE" if table.tags else "NORMAL_TABLE"
        return (
            table.name,
            table.database,
            f"{virtual}{kind}",
            None if virtual else table.partitions,
            None if table.keep is None else str(table.keep),
            table.options.get("comment"),
            self._count_children(table) if table.tags else None,
            *(said.get(name) for name in _TOLD),
        )

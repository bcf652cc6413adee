"""The catalog as the planner wants to see it (`penstock.sql.planning.view.SchemaView`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from penstock.catalog.model import Table
from penstock.catalog.view import Catalog
from penstock.sql.plan import Precision
from penstock.sql.planning.view import TableDef


class CatalogSchema:
    """Answers the planner's questions from one catalog."""

    def __init__(self, catalog: Catalog, find_child: Callable[[str, str], int | None] | None = None) -> None:
        """
        Args:
            catalog: what there is.
            find_child: (database, name) → id of the supertable of a child table that only rows have made known.
        """
        self._catalog, self._find_child = catalog, find_child

    def precision(self, database: str) -> Precision | None:
        found = self._catalog.database(database)
        return found.precision if found else None

    def table(self, database: str, name: str) -> TableDef | None:
        if (table := self._catalog.table(database, name)) is not None:
            return _definition(table, table.kind, None)
        child = self._catalog.child(database, name)
        stable_id = child.stable_id if child else self._find_child(database, name) if self._find_child else None
        stable = self._catalog.table_by_id(stable_id) if stable_id is not None else None
        return _definition(stable, "child", child.name if child else name) if stable else None

    def streams_into(self, database: str, table: str) -> Sequence[str]:
        found = self._catalog.table(database, table)
        return [s.name for s in self._catalog.writers_of(found.id)] if found else []


def _definition(table: Table, kind: Literal["stable", "child", "plain", "virtual"], child: str | None) -> TableDef:
    return TableDef(
        table.id, table.database, table.name, kind, table.columns, table.tags, table.precision, table.key_column, child, table.result_of
    )

"""The catalog as the planner wants to see it (`penstock.sql.planning.view.SchemaView`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from penstock.catalog.model import Table
from penstock.catalog.view import Catalog
from penstock.catalog.virtual import members
from penstock.sql.plan import Member, Precision
from penstock.sql.planning.view import TableDef
from penstock.udf.function import UserFunction


class CatalogSchema:
    """Answers the planner's questions from one catalog."""

    def __init__(
        self,
        catalog: Catalog,
        find_child: Callable[[str, str], int | None] | None = None,
        *,
        virtual_as_real: bool = False,
        find_other: Callable[[str, str], Table | None] | None = None,
    ) -> None:
        """
        Args:
            catalog: what there is.
            find_child: (database, name) → id of the supertable of a child table that only rows have
                made known.
            virtual_as_real: for queries: the rows of a virtual table are there as any other's.
            find_other: (database, name) → what else may be read as a table.
        """
        self._catalog = catalog
        self._find_child = find_child
        self._as_real = virtual_as_real
        self._find_other = find_other

    def precision(self, database: str) -> Precision | None:
        found = self._catalog.database(database)
        return found.precision if found else None

    def table(self, database: str, name: str) -> TableDef | None:
        found = self.find(database, name)
        return self._definition(*found) if found is not None else None

    def table_names(self, database: str) -> Sequence[str]:
        return [table.name for table in self._catalog.tables(database)]

    def find(self, database: str, name: str) -> tuple[Table, str | None] | None:
        """See `penstock.catalog.virtual.Find`."""
        if (table := self._catalog.table(database, name)) is not None:
            return table, None
        if self._find_other is not None and (other := self._find_other(database, name)) is not None:
            return other, None
        child = self._catalog.child(database, name)
        if child is not None:
            stable = self._catalog.table_by_id(child.stable_id)
            return (stable, child.name) if stable else None
        stable_id = self._find_child(database, name) if self._find_child else None
        stable = self._catalog.table_by_id(stable_id) if stable_id is not None else None
        return (stable, name) if stable else None

    def function(self, name: str) -> UserFunction | None:
        return self._catalog.function(name)

    def streams_into(self, database: str, table: str) -> Sequence[str]:
        found = self._catalog.table(database, table)
        return [s.name for s in self._catalog.writers_of(found.id)] if found else []

    def _definition(self, table: Table, child: str | None) -> TableDef:
        read: tuple[Member, ...] = ()
        if table.kind == "virtual" and not self._as_real:
            read = members(self._catalog, self.find, table, child)
        kind = self._kind(table, child)
        return TableDef(
            table.id,
            table.database,
            table.name,
            kind,
            table.columns,
            table.tags,
            table.precision,
            table.key_column,
            child,
            table.result_of,
            read,
        )

    def _kind(
        self, table: Table, child: str | None
    ) -> Literal["stable", "child", "plain", "virtual"]:
        if table.kind == "virtual" and not self._as_real:
            return "virtual"
        if child is not None:
            return "child"
        if table.kind == "virtual":
            return "stable" if table.tags else "plain"
        return table.kind

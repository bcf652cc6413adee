"""Child tables: CREATE TABLE … USING and SET TAG, and finding one by its name.

A child table is known from the catalog or from rows. Readers of its log hear of a change in band,
at the place where the child's rows go.
"""

from __future__ import annotations

from typing import Any

from gateway import children
from gateway.children import Children
from gateway.ddl.definer import Definer
from gateway.intake import database_of, layout_of
from gateway.layout import RowLayout
from penstock.catalog import changes
from penstock.catalog.model import Child, Table
from penstock.errors import CatalogError
from penstock.records import ControlRecord
from penstock.rows.partition import partition


class ChildTables:
    """Runs in the DDL thread."""

    def __init__(self, definer: Definer, cache: Children) -> None:
        self._definer = definer
        self._cache = cache

    def create(
        self, database: str, name: str, stable: str, values: dict[str, Any], if_not_exists: bool
    ) -> None:
        """Enter a child table into the catalog, and say so in band."""
        known = self.find(database, name)
        if known is not None and self._definer.catalog.child(database, name) is None:
            if if_not_exists:
                return
            raise CatalogError(
                f"table {database}.{known[1]} exists already",
                code="E_TABLE_EXISTS",
                detail="its rows made it known",
            )
        change = self._definer.decide(
            lambda c, i: changes.create_child(
                c, i, database, name, stable, values, if_not_exists=if_not_exists
            )
        )
        for entry in change.puts:
            if isinstance(entry, Child):
                self._tell(entry, "child")

    def set_tags(self, database: str, name: str, values: dict[str, Any]) -> None:
        """ALTER TABLE child SET TAG."""
        known = self.find(database, name)
        if known is None:
            raise CatalogError(f"there is no child table {database}.{name}", code="E_NO_TABLE")
        layout, spelling, held = known
        merged = dict(zip((t.name for t in layout.tags), held, strict=True))
        for tag, value in values.items():
            column = next((t for t in layout.tags if t.name.lower() == tag.lower()), None)
            merged[column.name if column else tag] = value
        change = self._definer.decide(
            lambda c, i: changes.set_tags(c, i, database, spelling, layout.table, merged)
        )
        for entry in change.puts:
            if isinstance(entry, Child):
                self._tell(entry, "tag")

    def find_table(self, database: str, name: str) -> tuple[Table, str | None] | None:
        """Find a table as `penstock.catalog.virtual.Find` says."""
        if self._definer.catalog.database(database) is None:
            return None
        if (table := self._definer.catalog.table(database, name)) is not None:
            return table, None
        found = self.find(database, name)
        table = self._definer.catalog.table_by_id(found[0].table_id) if found is not None else None
        return (table, found[1]) if table is not None and found is not None else None

    def stable_of(self, database: str, name: str) -> int | None:
        """Return the id of the supertable of a child table that rows have made known."""
        found = (
            self.find(database, name)
            if self._definer.catalog.database(database) is not None
            else None
        )
        return found[0].table_id if found is not None else None

    def find(self, database: str, name: str) -> tuple[RowLayout, str, tuple[Any, ...]] | None:
        """Find a child table by name: layout of its supertable, own spelling, and tags."""
        home = database_of(self._definer.catalog, database)
        for table in self._definer.catalog.tables(database):
            if table.kind != "stable":
                continue
            layout = layout_of(home, table)
            known = self._definer.catalog.child(database, name)
            if known is not None and known.stable_id != table.id:
                continue
            found = self._cache.find(layout, name, self._definer.catalog)
            if found is not None:
                return layout, found[0], found[1]
        return None

    def _tell(self, child: Child, kind: str) -> None:
        table = self._definer.catalog.table_by_id(child.stable_id)
        home = self._definer.catalog.database(child.database)
        if table is None or home is None:
            return
        layout = layout_of(home, table)
        values = (*child.tags, *(None,) * (len(table.tags) - len(child.tags)))
        control = ControlRecord(
            kind, table=table.id, tables=(child.name,), body=children.to_json(values, layout)
        )
        where = [partition(child.name, table.partitions)]
        sent = self._definer.send(table.topic, where, control)
        self._definer.note_own({(table.topic, p): offset for p, offset in sent.items()})

    def forget(self, table: Table) -> None:
        """Forget what is remembered of a supertable: it was dropped, or its tags changed."""
        self._cache.forget(table.id)

    def forget_child(self, layout: RowLayout, name: str) -> None:
        """Forget a child table that was dropped."""
        self._cache.forget_child(layout, name)

"""Lists of databases, tables, columns and tags."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from gateway.answers import table_of
from gateway.children import child_names, count_held
from gateway.information import columns
from gateway.information.viewer import Viewer
from penstock import names
from penstock.catalog.model import Child, Database, Table
from penstock.coordination.redis_link import ask

#: the database of these lists
SCHEMA = "information_schema"


class TableLists:
    """Databases and what their tables look like."""

    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer

    def databases(self, own_tables: int) -> pa.Table:
        """Return all databases, the last of them `information_schema` with *own_tables* tables."""
        catalog = self._viewer.catalog
        rows: list[tuple[Any, ...]] = []
        for d in catalog.databases():
            count = sum(self._count(t) if t.tags else 1 for t in catalog.tables(d.name))
            keep = "forever" if d.keep is None else str(d.keep)
            rows.append(
                (
                    d.name,
                    count,
                    d.partitions,
                    d.replica,
                    keep,
                    d.precision,
                    str(d.max_ahead),
                    d.topic,
                    _database_status(d),
                )
            )
        rows.append((SCHEMA, own_tables, None, None, None, None, None, None, "ready"))
        return table_of(columns.DATABASES, rows)

    def stables(self, database: str | None = None) -> pa.Table:
        """Return supertables."""
        stables = [t for t in self._viewer.catalog.tables(database) if t.tags]
        return table_of(
            columns.STABLES,
            [
                (t.name, t.database, len(t.columns), len(t.tags), t.options.get("comment"), t.topic)
                for t in stables
            ],
        )

    def tables(self, database: str | None = None) -> pa.Table:
        """Return plain and child tables."""
        rows: list[tuple[Any, ...]] = []
        for table in self._viewer.catalog.tables(database):
            virtual = "VIRTUAL_" if table.kind == "virtual" else ""
            if table.tags:
                kind = f"{virtual}CHILD_TABLE"
                rows += [
                    (n, table.database, len(table.columns), table.name, i, kind)
                    for n, i in self._list_children(table).items()
                ]
            else:
                kind = f"{virtual}NORMAL_TABLE"
                rows.append((table.name, table.database, len(table.columns), None, table.id, kind))
        return table_of(columns.TABLES, rows)

    def real_or_virtual(self, database: str, *, virtual: bool) -> pa.Table:
        """Return the tables of *database* that hold rows, or those that do not."""
        found = self.tables(database)
        kinds = found.column("type").to_pylist()
        chosen = [str(kind).startswith("VIRTUAL_") is virtual for kind in kinds]
        return found.filter(pa.array(chosen, pa.bool_()))

    def columns(self) -> pa.Table:
        """Return columns and tags of all tables."""
        rows = []
        for t in self._viewer.catalog.tables():
            kind = "SUPER_TABLE" if t.tags else "NORMAL_TABLE"
            if t.kind == "virtual":
                kind = f"VIRTUAL_{kind}"
            noted = [*((c, "") for c in t.columns), *((c, "TAG") for c in t.tags)]
            rows += [
                (t.name, t.database, kind, c.name, str(c.type), c.type.bytes(), note)
                for c, note in noted
            ]
        return table_of(columns.COLUMNS, rows)

    def tags(self) -> pa.Table:
        """Return the tag values of child tables that the catalog has."""
        rows = []
        catalog = self._viewer.catalog
        for table in catalog.tables():
            for child in catalog.children(table.id):
                values = (*child.tags, *(None,) * (len(table.tags) - len(child.tags)))
                rows += [
                    (
                        child.name,
                        table.database,
                        table.name,
                        t.name,
                        str(t.type),
                        None if v is None else str(v),
                    )
                    for t, v in zip(table.tags, values, strict=False)
                ]
        return table_of(columns.TAGS, rows)

    def _list_children(self, table: Table) -> dict[str, int]:
        """Return child tables from the catalog and from rows: name → id (0 where there is none)."""
        made: list[Child] = self._viewer.catalog.children(table.id)
        return {
            **dict.fromkeys(child_names(self._viewer.redis, table.id), 0),
            **{c.name: c.id for c in made},
        }

    def _count(self, table: Table) -> int:
        """Count child tables; Redis is asked for names of the catalog's only, some at a
        time.
        """
        made = [c.name for c in self._viewer.catalog.children(table.id)]
        held = ask(lambda: self._viewer.redis.hlen(names.children(table.id)))
        return len(made) + held - (count_held(self._viewer.redis, table.id, made) if held else 0)


def _database_status(database: Database) -> str:
    if database.move is None:
        return "ready"
    return f"moving to {database.move.partitions} partitions"

"""Lists of databases, tables and columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.answers import gather, table_of
from gateway.children import count_held
from gateway.information import columns
from gateway.information.scope import EVERYTHING, SCHEMA, ListScope, is_own
from gateway.information.viewer import Viewer
from penstock import names
from penstock.catalog.child_tags import held_children, made_children
from penstock.catalog.model import Database, Table
from penstock.coordination.redis_link import ask
from penstock.sql.plan import Column
from penstock.types import ColumnType

#: what SHOW TABLES lists, all of it or one kind; and SHOW VTABLES
KINDS = {
    "TABLES": ("NORMAL_TABLE", "CHILD_TABLE", "SYSTEM_TABLE"),
    "NORMAL TABLES": ("NORMAL_TABLE",),
    "CHILD TABLES": ("CHILD_TABLE",),
    "VTABLES": ("VIRTUAL_NORMAL_TABLE", "VIRTUAL_CHILD_TABLE"),
}


class TableLists:
    """Databases and what their tables look like."""

    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer

    def databases(self) -> pa.Table:
        """Return all databases, the last of them `information_schema`."""
        catalog = self._viewer.catalog
        rows: list[tuple[Any, ...]] = []
        for d in catalog.databases():
            count = sum(self.count_children(t) if t.tags else 1 for t in catalog.tables(d.name))
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
        rows.append((SCHEMA, len(columns.LISTS), None, None, None, None, None, None, "ready"))
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

    def tables(self, scope: ListScope = EVERYTHING) -> pa.Table:
        """Return the plain and child tables of *scope*, and the tables of this database itself."""
        mine = self._viewer.catalog.tables(scope.database)
        rows = (row for table in mine for row in self._table_rows(table, scope))
        system = (
            (name, SCHEMA, len(shown), None, 0, "SYSTEM_TABLE")
            for name, shown in columns.LISTS.items()
            if scope.database is None or is_own(scope.database)
        )
        needed = scope.cut(columns.TABLES, chain(rows, system))
        return ask(lambda: gather(columns.TABLES, needed))

    def _table_rows(self, table: Table, scope: ListScope) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a plain table, or of the child tables of a supertable."""
        virtual = "VIRTUAL_" if table.kind == "virtual" else ""
        width = len(table.columns)
        listed = scope.has_children and scope.has_stable(table.name)
        if table.tags and listed:
            for name, number in self._children(table, scope):
                yield name, table.database, width, table.name, number, f"{virtual}CHILD_TABLE"
        elif not table.tags:
            yield table.name, table.database, width, None, table.id, f"{virtual}NORMAL_TABLE"

    def table_names(self, database: str, kinds: Collection[str]) -> pa.Table:
        """Return the names of the tables of *database* that are of one of *kinds*."""
        found = self.tables(ListScope(database))
        chosen = pc.is_in(found.column("type"), pa.array(sorted(kinds), pa.string()))
        return found.filter(chosen).select(["table_name"])

    def columns(self, scope: ListScope = EVERYTHING) -> pa.Table:
        """Return the columns of all tables of *scope*, and the tags of supertables: what a child
        table has for tags is in `ins_tags`.
        """
        made = [table_of(columns.COLUMNS, [])]
        for table in self._viewer.catalog.tables(scope.database):
            virtual = "VIRTUAL_" if table.kind == "virtual" else ""
            if not table.tags:
                made.append(_columns_of(table, f"{virtual}NORMAL_TABLE"))
                continue
            made.append(_columns_of(table, f"{virtual}SUPER_TABLE", table.tags))
            children = ask(partial(self._child_names, table, scope))
            shown = _columns_of(table, f"{virtual}CHILD_TABLE")
            made.append(_repeat_for(children, shown))
        return pa.concat_tables(made)

    def _child_names(self, table: Table, scope: ListScope) -> list[str]:
        return [name for name, _ in self._children(table, scope)]

    def _children(self, table: Table, scope: ListScope) -> Iterator[tuple[str, int]]:
        """Yield the name and id (0 where there is none) of child tables from the catalog, then of
        those that only rows made known. Raises redis.RedisError.
        """
        catalog = self._viewer.catalog
        made = made_children(catalog, table, scope.tables, scope.first)
        yield from ((child.name, child.id) for child in made)
        for name, _ in held_children(catalog, self._viewer.redis, table, scope.tables):
            yield name, 0

    def count_children(self, table: Table) -> int:
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


def _columns_of(table: Table, kind: str, tags: Sequence[Column] = ()) -> pa.Table:
    """Return a row for each column of *table*, then for each of *tags*."""
    noted = [*((c, "") for c in table.columns), *((t, "TAG") for t in tags)]
    return table_of(
        columns.COLUMNS,
        [
            (table.name, table.database, kind, c.name, _type_name(c.type), _size(c.type), note)
            for c, note in noted
        ],
    )


def _type_name(kind: ColumnType) -> str:
    """Return a type as TDengine's drivers read it here: the length of bytes is beside it only."""
    return kind.kind if kind.kind == "VARBINARY" else str(kind)


def _size(kind: ColumnType) -> int:
    """Return the bytes that TDengine counts for a value: of a text four for each character of an
    NCHAR, and two more for its length, which drivers take off again.
    """
    if not kind.sized:
        return kind.bytes()
    return kind.length * (4 if kind.kind == "NCHAR" else 1) + 2


def _repeat_for(children: Sequence[str], shown: pa.Table) -> pa.Table:
    """Return the rows of *shown* once for each child table, under its name. There may be 200,000:
    Arrow repeats them.
    """
    rows = np.tile(np.arange(shown.num_rows), len(children))
    owners = np.repeat(np.arange(len(children)), shown.num_rows)
    owned = pa.array(children, pa.string()).take(pa.array(owners))
    at = shown.schema.get_field_index("table_name")
    return shown.take(pa.array(rows)).set_column(at, shown.schema.field(at), owned)

"""Virtual tables: origins of their columns, and the members that a stream reads of them.

A virtual table joins columns of several tables by time. The catalog keeps origins by name, so a
query reads whoever bears the name now; a stream is given ids (`members`), so it never reads a table
that was made later under an old name. Origins that have several timelines or another clock are
errors, and so are changes of what a stream reads.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence

from penstock.catalog import changes
from penstock.catalog.changes import Change, NewId
from penstock.catalog.model import Child, Table, VirtualColumn
from penstock.catalog.view import Catalog
from penstock.errors import CatalogError
from penstock.sql.plan import Column, Member, Origin
from penstock.types import ColumnType

#: (database, name) → the supertable or plain table, and the spelling of the child table when the
#: name is one's
Find = Callable[[str, str], tuple[Table, str | None] | None]


def create_table(
    catalog: Catalog,
    new_id: NewId,
    find: Find,
    database: str,
    name: str,
    columns: Sequence[Column],
    origins: Iterable[VirtualColumn],
    *,
    tags: Sequence[Column] = (),
    comment: str = "",
    if_not_exists: bool = False,
) -> Change:
    """CREATE VTABLE of its own, or with *tags* CREATE VIRTUAL STABLE."""
    made = changes.create_table(
        catalog,
        new_id,
        database,
        name,
        columns,
        tags,
        kind="virtual",
        comment=comment,
        if_not_exists=if_not_exists,
    )
    if not made.puts:
        return made
    table = made.puts[0]
    assert isinstance(table, Table)
    origins = tuple(origins)
    if tags and origins:
        raise _wrong(
            f"{name} is a virtual supertable: its child tables say where columns come from",
            "CREATE VTABLE … USING it",
        )
    return Change((dataclasses.replace(table, origins=_check_origins(table, origins, find)),))


def create_child(
    catalog: Catalog,
    new_id: NewId,
    find: Find,
    database: str,
    name: str,
    stable: str,
    tags: Mapping[str, object],
    origins: Iterable[VirtualColumn],
    *,
    if_not_exists: bool = False,
) -> Change:
    """CREATE VTABLE name (column FROM table.column, …) USING stable TAGS (…)."""
    parent = catalog.table(database, stable)
    if parent is not None and (parent.kind != "virtual" or not parent.tags):
        raise CatalogError(
            f"{stable} is no virtual supertable",
            code="E_NOT_A_STABLE",
            hint="CREATE VIRTUAL STABLE makes one",
        )
    made = changes.create_child(
        catalog, new_id, database, name, stable, tags, if_not_exists=if_not_exists
    )
    if not made.puts:
        return made
    child = made.puts[0]
    assert isinstance(child, Child) and parent is not None
    return Change(
        (dataclasses.replace(child, origins=_check_origins(parent, tuple(origins), find)),)
    )


def set_origin(
    catalog: Catalog,
    find: Find,
    database: str,
    name: str,
    column: str,
    origin: VirtualColumn | None,
) -> Change:
    """Change where a column of a virtual table comes from: queries follow at once, streams that run
    go on as they began.
    """
    child = catalog.child(database, name)
    table = catalog.table(database, name) if child is None else catalog.table_by_id(child.stable_id)
    if table is None or not _has_origins(table, child):
        raise CatalogError(f"{database}.{name} is no virtual table", code="E_NO_TABLE")
    if all(c.name.lower() != column.lower() for c in table.columns[1:]):
        raise CatalogError(
            f"{name} has no column {column} that could come from elsewhere", code="E_NO_COLUMN"
        )
    entry = table if child is None else child
    origins = tuple(o for o in entry.origins if o.column.lower() != column.lower())
    if origin is not None:
        origins += _check_origins(table, (origin,), find)
    return Change((dataclasses.replace(entry, origins=origins),))


def _has_origins(table: Table, child: Child | None) -> bool:
    """Return False for a real table, and for a supertable of virtual ones."""
    return table.kind == "virtual" and (child is not None or not table.tags)


def members(
    catalog: Catalog, find: Find, table: Table, child: str | None = None
) -> tuple[Member, ...]:
    """Return what a stream over the virtual *table* (or its *child*) reads from now on; origins
    that are gone are left out.
    """
    if not table.tags:
        return (Member(table.name, (), _bound(table.origins, find)),)
    found = [
        c for c in catalog.children(table.id) if child is None or c.name.lower() == child.lower()
    ]
    width = len(table.tags)
    return tuple(
        Member(c.name, (*c.tags, *(None,) * (width - len(c.tags))), _bound(c.origins, find))
        for c in sorted(found, key=lambda c: c.id)
    )


def _bound(origins: Iterable[VirtualColumn], find: Find) -> tuple[Origin, ...]:
    made = []
    for origin in origins:
        found = find(origin.database, origin.table)
        if found is not None:
            table, child = found
            column = next(
                (c.name for c in table.columns if c.name.lower() == origin.source.lower()), None
            )
            if column is not None:
                made.append(Origin(origin.column, table.id, child or table.name, column))
    return tuple(made)


def _check_origins(
    table: Table, origins: tuple[VirtualColumn, ...], find: Find
) -> tuple[VirtualColumn, ...]:
    """Return *origins* in the spelling of the tables and columns that they name.

    Raises:
        CatalogError: one of them is not there or cannot be joined.
    """
    checked: dict[str, VirtualColumn] = {}
    for origin in origins:
        source, child = _find_source(origin, find)
        column = _find_column(table, origin)
        if column.name in checked:
            raise _wrong(f"{column.name} is given two origins", "one column comes from one table")
        _check_source(table, origin, source, child)
        taken = _find_taken(origin, source)
        if not _fits(taken.type, column.type):
            raise _wrong(
                f"{column.name} is {column.type}, {_name_of(origin)}.{taken.name} is {taken.type}",
                "give both columns one type",
            )
        checked[column.name] = VirtualColumn(
            column.name, source.database, child or source.name, taken.name
        )
    return tuple(checked.values())


def _name_of(origin: VirtualColumn) -> str:
    return f"{origin.database}.{origin.table}"


def _find_source(origin: VirtualColumn, find: Find) -> tuple[Table, str | None]:
    found = find(origin.database, origin.table)
    if found is None:
        raise CatalogError(
            f"there is no table {_name_of(origin)}",
            code="E_NO_TABLE",
            detail=f"column {origin.column} is to come from it",
        )
    return found


def _find_column(table: Table, origin: VirtualColumn) -> Column:
    """Return the column of the virtual *table* that *origin* fills."""
    column = next((c for c in table.columns if c.name.lower() == origin.column.lower()), None)
    if column is None:
        raise CatalogError(f"{table.name} has no column {origin.column}", code="E_NO_COLUMN")
    if column == table.columns[0]:
        raise _wrong(f"{column.name} is the time that rows are joined by", "leave FROM out")
    return column


def _check_source(table: Table, origin: VirtualColumn, source: Table, child: str | None) -> None:
    """Refuse a source that has several timelines or another clock than *table*."""
    shown = _name_of(origin)
    if source.kind == "virtual":
        raise _wrong(f"{shown} is virtual itself", "name the table that its column comes from")
    if source.kind == "stable" and child is None:
        raise _wrong(
            f"{shown} is a supertable and has many rows of one time",
            "name one of its child tables",
        )
    if source.key_column is not None:
        raise _wrong(
            f"{shown} has a composite key, so several rows of one time", "name a table without"
        )
    if source.precision != table.precision:
        raise _wrong(
            f"{shown} counts time in {source.precision}, {table.name} in {table.precision}",
            "both must have one precision",
        )


def _find_taken(origin: VirtualColumn, source: Table) -> Column:
    """Return the column of *source* that *origin* names."""
    taken = next((c for c in source.columns if c.name.lower() == origin.source.lower()), None)
    if taken is None:
        raise CatalogError(f"{_name_of(origin)} has no column {origin.source}", code="E_NO_COLUMN")
    return taken


def _fits(taken: ColumnType, wanted: ColumnType) -> bool:
    """Return True when every value of the type *taken* is one of the type *wanted*."""
    if taken == wanted:
        return True
    return taken.sized and taken.kind == wanted.kind and taken.length <= wanted.length


def _wrong(message: str, hint: str) -> CatalogError:
    return CatalogError(message, code="E_VTABLE_ORIGIN", hint=hint)

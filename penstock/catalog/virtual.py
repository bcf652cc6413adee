"""Virtual tables: where their columns come from, which origins are possible, and what a stream
freezes of them.

A virtual table joins columns of several tables by time. The catalog keeps origins by name, so a
query reads whoever bears the name now; a stream is given ids (`members`), so it never reads a table
that was made later under an old name. Refused: origins that have several timelines or another
clock, and changes of what a stream reads.
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
    return Change((dataclasses.replace(table, origins=_checked(table, origins, find)),))


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
    return Change((dataclasses.replace(child, origins=_checked(parent, tuple(origins), find)),))


def set_origin(
    catalog: Catalog,
    find: Find,
    database: str,
    name: str,
    column: str,
    origin: VirtualColumn | None,
) -> Change:
    """ALTER VTABLE … ALTER COLUMN … SET: queries follow at once; streams that run go on with what
    they began with.
    """
    child = catalog.child(database, name)
    table = catalog.table(database, name) if child is None else catalog.table_by_id(child.stable_id)
    if table is None or table.kind != "virtual" or (child is None and table.tags):
        raise CatalogError(f"{database}.{name} is no virtual table", code="E_NO_TABLE")
    if all(c.name.lower() != column.lower() for c in table.columns[1:]):
        raise CatalogError(
            f"{name} has no column {column} that could come from elsewhere", code="E_NO_COLUMN"
        )
    kept = tuple(
        o for o in (table if child is None else child).origins if o.column.lower() != column.lower()
    )
    made = kept if origin is None else (*kept, *_checked(table, (origin,), find))
    return Change(
        (
            dataclasses.replace(table, origins=made)
            if child is None
            else dataclasses.replace(child, origins=made),
        )
    )


def members(
    catalog: Catalog, find: Find, table: Table, child: str | None = None
) -> tuple[Member, ...]:
    """What a stream over the virtual *table* (or its *child*) reads from now on; origins that are
    gone are left out.
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


def _checked(
    table: Table, origins: tuple[VirtualColumn, ...], find: Find
) -> tuple[VirtualColumn, ...]:
    """*origins* in the spelling of what they name.

    Raises:
        CatalogError: one of them is not there or cannot be joined.
    """
    made: dict[str, VirtualColumn] = {}
    for origin in origins:
        shown = f"{origin.database}.{origin.table}"
        found = find(origin.database, origin.table)
        if found is None:
            raise CatalogError(
                f"there is no table {shown}",
                code="E_NO_TABLE",
                detail=f"column {origin.column} is to come from it",
            )
        source, child = found
        column = next((c for c in table.columns if c.name.lower() == origin.column.lower()), None)
        if column is None:
            raise CatalogError(f"{table.name} has no column {origin.column}", code="E_NO_COLUMN")
        if column == table.columns[0]:
            raise _wrong(f"{column.name} is the time that rows are joined by", "leave FROM out")
        if column.name in made:
            raise _wrong(f"{column.name} is given two origins", "one column comes from one table")
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
        taken = next((c for c in source.columns if c.name.lower() == origin.source.lower()), None)
        if taken is None:
            raise CatalogError(f"{shown} has no column {origin.source}", code="E_NO_COLUMN")
        fits = taken.type == column.type or (
            taken.type.sized
            and taken.type.kind == column.type.kind
            and taken.type.length <= column.type.length
        )
        if not fits:
            raise _wrong(
                f"{column.name} is {column.type}, {shown}.{taken.name} is {taken.type}",
                "give both columns one type",
            )
        made[column.name] = VirtualColumn(
            column.name, source.database, child or source.name, taken.name
        )
    return tuple(made.values())


def _wrong(message: str, hint: str) -> CatalogError:
    return CatalogError(message, code="E_VTABLE_ORIGIN", hint=hint)

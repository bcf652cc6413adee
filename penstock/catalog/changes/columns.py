"""ALTER of a table's columns and tags: each makes a new schema, and old records stay readable."""

from __future__ import annotations

import dataclasses

from penstock.catalog.changes.change import Change, NewId, find_column, find_table, refuse
from penstock.catalog.changes.limits import check_columns
from penstock.catalog.changes.usage import refuse_column_used, refuse_used
from penstock.catalog.model import Table, TableVersion
from penstock.catalog.stored import inherit_names
from penstock.catalog.view import Catalog
from penstock.sql.plan import Column


def add_column(
    catalog: Catalog, new_id: NewId, database: str, name: str, column: Column, *, tag: bool = False
) -> Change:
    """Add a column or tag, which is NULL in everything written before."""
    table = find_table(catalog, database, name)
    _refuse_frozen(catalog, table)
    if tag:
        _needs_tags(table)
    columns = table.columns if tag else (*table.columns, column)
    return _add_version(table, new_id, columns, (*table.tags, column) if tag else table.tags)


def drop_column(
    catalog: Catalog, new_id: NewId, database: str, name: str, column: str, *, tag: bool = False
) -> Change:
    """Drop a column or tag, from everything written before as well."""
    table = find_table(catalog, database, name)
    _refuse_frozen(catalog, table)
    found = find_column(table, column, tag)
    if found == table.columns[0] or found.name == table.key_column:
        refuse("E_KEY_COLUMN", f"{found.name} is part of the primary key and cannot be dropped")
    refuse_column_used(catalog, table, found, "drop")
    if tag and len(table.tags) == 1:
        refuse("E_LAST_TAG", f"{found.name} is the only tag of {table.name}")
    change = _add_version(
        table, new_id, _without(table.columns, found, not tag), _without(table.tags, found, tag)
    )
    if not tag:
        return change
    at = table.tags.index(found)
    children = (
        dataclasses.replace(c, tags=c.tags[:at] + c.tags[at + 1 :])
        for c in catalog.children(table.id)
    )
    return Change((*change.puts, *children))


def modify_column(
    catalog: Catalog, new_id: NewId, database: str, name: str, column: Column, *, tag: bool = False
) -> Change:
    """Make a VARCHAR, NCHAR or VARBINARY column or tag longer; no other change keeps old records
    right.
    """
    table = find_table(catalog, database, name)
    _refuse_frozen(catalog, table)
    old = find_column(table, column.name, tag)
    if not (
        old.type.sized
        and old.type.kind == column.type.kind
        and column.type.length > old.type.length
    ):
        refuse(
            "E_BAD_MODIFY",
            f"{old.name} is {old.type} and cannot become {column.type}",
            hint=(
                "VARCHAR, NCHAR and VARBINARY can be made longer; for anything else add a new"
                " column"
            ),
        )
    new = Column(old.name, column.type)
    columns, tags = (
        tuple(new if c == old else c for c in part) for part in (table.columns, table.tags)
    )
    return _add_version(
        table, new_id, table.columns if tag else columns, tags if tag else table.tags
    )


def rename_tag(
    catalog: Catalog, new_id: NewId, database: str, name: str, tag: str, new_name: str
) -> Change:
    table = find_table(catalog, database, name)
    _refuse_frozen(catalog, table)
    old = find_column(table, tag, True)
    refuse_column_used(catalog, table, old, "rename")
    tags = tuple(Column(new_name, old.type) if t == old else t for t in table.tags)
    return _add_version(table, new_id, table.columns, tags, ((old.name, new_name),))


def _refuse_frozen(catalog: Catalog, table: Table) -> None:
    """Refuse to change the shape of a virtual table that a stream reads."""
    if table.kind == "virtual":
        refuse_used(table, "change", catalog.readers_of(table.id))


def _add_version(
    table: Table,
    new_id: NewId,
    columns: tuple[Column, ...],
    tags: tuple[Column, ...],
    renamed: tuple[tuple[str, str], ...] = (),
) -> Change:
    check_columns(columns, tags)
    version = TableVersion(new_id(), columns, tags, renamed)
    version = dataclasses.replace(version, stored=inherit_names(table.versions, version))
    return Change((dataclasses.replace(table, versions=(*table.versions, version)),))


def _without(columns: tuple[Column, ...], gone: Column, here: bool) -> tuple[Column, ...]:
    return tuple(c for c in columns if c != gone) if here else columns


def _needs_tags(table: Table) -> None:
    if not table.tags:
        refuse("E_NOT_A_STABLE", f"{table.name} is no supertable and has no tags")

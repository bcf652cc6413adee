"""Supertables, plain tables and child tables: created, dropped and given options and tags."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from penstock.catalog.changes.change import (
    Change,
    NewId,
    find_column,
    find_database,
    find_table,
    refuse,
)
from penstock.catalog.changes.limits import (
    check_columns,
    check_keep,
    check_key,
    check_partitions,
    check_table_name,
)
from penstock.catalog.changes.registry import clear_compatibility
from penstock.catalog.changes.usage import reads_child, refuse_used, refuse_viewed
from penstock.catalog.model import (
    FOREIGN,
    Child,
    Entry,
    StreamEntry,
    Table,
    TableKind,
    TableVersion,
)
from penstock.catalog.view import Catalog
from penstock.names import ingest_topic
from penstock.rows.tag_values import to_json
from penstock.sql.plan import Column, Duration


def create_table(
    catalog: Catalog,
    new_id: NewId,
    database: str,
    name: str,
    columns: Iterable[Column],
    tags: Iterable[Column] = (),
    *,
    kind: TableKind | None = None,
    key_column: str | None = None,
    own_topic: bool = False,
    partitions: int | None = None,
    keep: Duration | None = None,
    comment: str = "",
    result_of: int | None = None,
    if_not_exists: bool = False,
) -> Change:
    """Create a supertable (with tags) or a plain table (without).

    Args:
        catalog: current entries.
        new_id: gives the ids of the table and of its first schema.
        database: database of the new table.
        name: name of the new table.
        columns: its columns, the time column first.
        tags: its tags, if it is a supertable.
        kind: its kind; by default whatever its tags make it.
        key_column: second part of a composite primary key.
        own_topic: WITH (topic='own'); needed for `partitions`.
        partitions: number of partitions of its own topic.
        keep: how long its rows live; by default as long as the database says.
        comment: text shown with the table.
        result_of: id of the stream that it is made for.
        if_not_exists: accept a table that exists and change nothing.
    """
    base = find_database(catalog, database)
    _refuse_external_name(catalog, base.name, name)
    if (found := catalog.table(database, name) or catalog.child(database, name)) is not None:
        if if_not_exists:
            return Change()
        refuse("E_TABLE_EXISTS", f"table {base.name}.{found.name} exists already")
    check_table_name(name)
    columns = tuple(columns)
    tags = tuple(tags)
    _check_topic(own_topic, partitions)
    partitions = partitions or base.partitions
    check_partitions(partitions)
    check_keep(keep)
    check_columns(columns, tags)
    if key_column is not None:
        check_key(columns, key_column)
    table = Table(
        id=new_id(),
        database=base.name,
        name=name,
        kind=kind or ("stable" if tags else "plain"),
        topic=ingest_topic(base.name, name) if own_topic else base.topic,
        partitions=partitions,
        precision=base.precision,
        versions=(TableVersion(new_id(), columns, tags),),
        key_column=key_column,
        result_of=result_of,
        keep=keep,
        options={"comment": comment} if comment else {},
    )
    return Change((table,))


def _check_topic(own_topic: bool, partitions: int | None) -> None:
    if partitions is not None and not own_topic:
        refuse(
            "E_BAD_OPTION",
            "partitions belong to a topic of its own",
            hint="write WITH (topic='own', partitions=…)",
        )


def create_foreign(
    catalog: Catalog,
    new_id: NewId,
    database: str,
    name: str,
    columns: Iterable[Column],
    message_id: Column,
    option: str,
    *,
    key_column: str | None = None,
) -> Change:
    """Create a plain table that is filled from a topic of another Kafka. *key_column*, its second
    column, is part of its key; without one *message_id* becomes that.
    """
    given = tuple(columns)
    if any(c.name.lower() == message_id.name for c in given):
        refuse(
            "E_RESERVED_NAME",
            f"{message_id.name} is a name that rows carry anyway",
            hint="choose another name",
        )
    if catalog.external(database, name) is not None:
        refuse("E_STREAM_EXISTS", f"external stream {database}.{name} exists already")
    made = create_table(
        catalog,
        new_id,
        database,
        name,
        given if key_column is not None else (given[0], message_id, *given[1:]),
        kind="plain",
        key_column=key_column or message_id.name,
        own_topic=True,
        partitions=1,
    )
    return Change(
        tuple(
            dataclasses.replace(t, options={FOREIGN: option})
            for t in made.puts
            if isinstance(t, Table)
        )
    )


def create_child(
    catalog: Catalog,
    new_id: NewId,
    database: str,
    name: str,
    stable: str,
    tags: Mapping[str, object],
    *,
    if_not_exists: bool = False,
) -> Change:
    """Create a child table of *stable*; tags that are not given are NULL."""
    parent = find_table(catalog, database, stable)
    if not parent.tags:
        refuse("E_NOT_A_STABLE", f"{stable} is no supertable, so no table can be made USING it")
    if (found := catalog.table(database, name) or catalog.child(database, name)) is not None:
        if if_not_exists and isinstance(found, Child) and found.stable_id == parent.id:
            return Change()
        refuse("E_TABLE_EXISTS", f"table {parent.database}.{found.name} exists already")
    check_table_name(name)
    return Change(
        (Child(new_id(), parent.database, parent.id, name, _tag_values(parent, tags, ())),)
    )


def set_tags(
    catalog: Catalog,
    new_id: NewId,
    database: str,
    name: str,
    stable: str,
    tags: Mapping[str, object],
) -> Change:
    """Set tags of a child table; one that only rows have made known so far gets an entry of its
    own.
    """
    parent = find_table(catalog, database, stable)
    child = catalog.child(database, name) or Child(new_id(), parent.database, parent.id, name)
    return Change((dataclasses.replace(child, tags=_tag_values(parent, tags, child.tags)),))


def drop_table(catalog: Catalog, database: str, name: str, *, if_exists: bool = False) -> Change:
    """Drop a supertable with its child tables, a plain table or a child table, unless a stream uses
    it.
    """
    child = catalog.child(database, name)
    if child is not None:
        return _drop_child(catalog, child)
    table = catalog.table(database, name)
    if table is None:
        if if_exists:
            return Change()
        refuse("E_NO_TABLE", f"there is no table {database}.{name}")
    inlets = [t for t in catalog.tables(database) if t.options.get("inlet_of") == str(table.id)]
    users = [s for t in (table, *inlets) for s in _streams_of(catalog, t)]
    refuse_used(table, "drop", users)
    refuse_viewed(catalog, table)
    removes = [e for t in (*inlets, table) for e in _with_children(catalog, t)]
    return Change(removes=tuple(removes))


def _streams_of(catalog: Catalog, table: Table) -> tuple[StreamEntry, ...]:
    """Return the streams that read or write *table*."""
    return (*catalog.readers_of(table.id), *catalog.writers_of(table.id))


def _with_children(catalog: Catalog, table: Table) -> tuple[Entry, ...]:
    """Return what goes with *table*, its child tables among it, then the table itself."""
    children = catalog.children(table.id) if table.tags else ()
    return (*clear_compatibility(catalog, table.id).removes, *children, table)


def drop_child(catalog: Catalog, new_id: NewId, database: str, name: str, stable: str) -> Change:
    """Drop a child table. One that only rows have made known gets an entry that goes at once: so
    every process hears of it.
    """
    parent = find_table(catalog, database, stable)
    child = catalog.child(database, name)
    if child is not None:
        return _drop_child(catalog, child)
    child = Child(new_id(), parent.database, parent.id, name)
    return Change((child,), _drop_child(catalog, child).removes)


def _drop_child(catalog: Catalog, child: Child) -> Change:
    refuse_used(
        child,
        "drop",
        [s for s in catalog.readers_of(child.stable_id) if reads_child(s.plan, child.name)],
    )
    return Change(removes=(child,))


def set_table_options(
    catalog: Catalog,
    database: str,
    name: str,
    *,
    keep: Duration | None = None,
    comment: str | None = None,
) -> Change:
    """Change KEEP and COMMENT; what is None stays as it is."""
    table = find_table(catalog, database, name)
    check_keep(keep)
    if keep is not None and table.timeless:
        refuse(
            "E_BAD_OPTION",
            f"rows of {table.database}.{table.name} have no time by which KEEP could remove them",
            hint="they go when they are deleted in the database that they come from",
        )
    options = table.options if comment is None else {**table.options, "comment": comment}
    return Change((dataclasses.replace(table, keep=keep or table.keep, options=options),))


def _refuse_external_name(catalog: Catalog, database: str, name: str) -> None:
    if catalog.external(database, name) is not None:
        refuse("E_TABLE_EXISTS", f"external stream {database}.{name} exists already")


def _tag_values(
    table: Table, given: Mapping[str, object], before: tuple[object, ...]
) -> tuple[object, ...]:
    values = {t.name.lower(): v for t, v in zip(table.tags, before, strict=False)}
    for name, value in given.items():
        values[find_column(table, name, True).name.lower()] = value
    return tuple(to_json(values.get(t.name.lower())) for t in table.tags)

"""CREATE, ALTER and DROP DATABASE."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

from penstock.catalog.changes.change import Change, NewId, find_database, refuse
from penstock.catalog.changes.limits import check_keep, check_partitions
from penstock.catalog.changes.registry import clear_compatibility
from penstock.catalog.changes.usage import refuse_used
from penstock.catalog.model import Database, External, StreamEntry, Table, View
from penstock.catalog.view import Catalog
from penstock.sql.plan import Duration, Precision

_DATABASE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")


def create_database(
    catalog: Catalog,
    new_id: NewId,
    name: str,
    *,
    precision: Precision = "ms",
    keep: Duration | None = None,
    partitions: int = 4,
    max_ahead: Duration | None = None,
    replica: int = 1,
    dot_to_underscore: bool = False,
    if_not_exists: bool = False,
) -> Change:
    if catalog.database(name) is not None:
        if if_not_exists:
            return Change()
        refuse("E_DATABASE_EXISTS", f"database {name} exists already")
    if not _DATABASE_NAME.match(name):
        refuse(
            "E_BAD_NAME",
            f"{name!r} cannot be a database's name",
            hint="letters, digits and underscores, at most 64",
        )
    check_partitions(partitions)
    check_keep(keep)
    made = Database(
        new_id(),
        name,
        precision,
        keep,
        partitions,
        replica=replica,
        dot_to_underscore=dot_to_underscore,
    )
    return Change((made if max_ahead is None else dataclasses.replace(made, max_ahead=max_ahead),))


def alter_database(
    catalog: Catalog,
    name: str,
    *,
    keep: Duration | None = None,
    max_ahead: Duration | None = None,
    dot_to_underscore: bool | None = None,
) -> Change:
    """Change KEEP, MAX_AHEAD and DOT_TO_UNDERSCORE. The precision never changes, because records
    already written depend on it. For partitions see `penstock.catalog.generations`.
    """
    database = find_database(catalog, name)
    check_keep(keep)
    dots = database.dot_to_underscore if dot_to_underscore is None else dot_to_underscore
    changed = dataclasses.replace(
        database,
        keep=keep or database.keep,
        max_ahead=max_ahead or database.max_ahead,
        dot_to_underscore=dots,
    )
    return Change((changed,))


def drop_database(catalog: Catalog, name: str, *, if_exists: bool = False) -> Change:
    """Drop a database with its tables and streams, unless a stream or view of another database uses
    one of its tables.
    """
    database = catalog.database(name)
    if database is None:
        if if_exists:
            return Change()
        refuse("E_NO_DATABASE", f"there is no database {name}")
    tables = catalog.tables(name)
    streams = catalog.streams(name)
    views = catalog.views(name)
    externals = catalog.externals(name)
    _refuse_foreign_streams(catalog, tables, streams)
    _refuse_foreign_views(catalog, [*tables, *externals], views)
    children = [c for t in tables if t.tags for c in catalog.children(t.id)]
    levels = [e for t in tables for e in clear_compatibility(catalog, t.id).removes]
    return Change(removes=(*levels, *streams, *views, *externals, *children, *tables, database))


def _refuse_foreign_streams(
    catalog: Catalog, tables: Iterable[Table], streams: Iterable[StreamEntry]
) -> None:
    """Refuse to drop *tables* that streams other than *streams* read or write."""
    inside = {s.id for s in streams}
    for table in tables:
        users = (*catalog.readers_of(table.id), *catalog.writers_of(table.id))
        refuse_used(table, "drop", [s for s in users if s.id not in inside])


def _refuse_foreign_views(
    catalog: Catalog, entries: Iterable[Table | External], views: Iterable[View]
) -> None:
    """Refuse to drop *entries* that views other than *views* use."""
    inside = {v.id for v in views}
    for entry in entries:
        others = [v for v in catalog.views_of(entry.id) if v.id not in inside]
        if others:
            refuse(
                "E_IN_USE",
                f"cannot drop {entry.name}: view {others[0].database}.{others[0].name} uses it",
                hint="drop the view first",
            )

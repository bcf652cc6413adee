"""External streams and materialized views."""

from __future__ import annotations

import dataclasses
from typing import Literal

from penstock.catalog.changes.change import Change, find_database, refuse
from penstock.catalog.changes.flow import leads_to
from penstock.catalog.changes.limits import check_columns, check_table_name
from penstock.catalog.changes.usage import refuse_used, refuse_viewed
from penstock.catalog.model import External, View
from penstock.catalog.view import Catalog


def create_external(catalog: Catalog, entry: External) -> Change:
    """Give a table of another deployment, whose schema has been looked up, a name of ours."""
    find_database(catalog, entry.database)
    check_table_name(entry.name)
    if catalog.external(entry.database, entry.name) is not None:
        refuse("E_STREAM_EXISTS", f"external stream {entry.database}.{entry.name} exists already")
    for kind, there in (
        ("table", catalog.table),
        ("table", catalog.child),
        ("stream", catalog.stream),
        ("view", catalog.view),
    ):
        if there(entry.database, entry.name) is not None:
            refuse("E_TABLE_EXISTS", f"{kind} {entry.database}.{entry.name} exists already")
    check_columns(entry.columns, entry.tags)
    return Change((entry,))


def drop_external(catalog: Catalog, database: str, name: str, *, if_exists: bool = False) -> Change:
    """Drop the name; the table in the other deployment stays."""
    entry = catalog.external(database, name)
    if entry is None:
        if if_exists:
            return Change()
        refuse("E_NO_STREAM", f"there is no external stream {database}.{name}")
    refuse_viewed(catalog, entry)
    return Change(removes=(entry,))


def create_view(catalog: Catalog, view: View) -> Change:
    """Create the entry of a view whose SELECT has been checked against source and target."""
    find_database(catalog, view.database)
    check_table_name(view.name)
    if catalog.view(view.database, view.name) is not None:
        refuse("E_STREAM_EXISTS", f"view {view.database}.{view.name} exists already")
    if _pumps_into(catalog, view.target_id, view.source_id):
        refuse("E_STREAM_CYCLE", f"view {view.name} would read its own rows")
    return Change((view,))


def drop_view(catalog: Catalog, database: str, name: str, *, if_exists: bool = False) -> Change:
    """Drop a view and, if it was made for the view and nothing else uses it, the target."""
    view = catalog.view(database, name)
    if view is None:
        if if_exists:
            return Change()
        refuse("E_NO_VIEW", f"there is no materialized view {database}.{name}")
    table = catalog.table_by_id(view.target_id) if view.owns_target else None
    if table is None:
        return Change(removes=(view,))
    refuse_used(table, "drop", [*catalog.readers_of(table.id), *catalog.writers_of(table.id)])
    others = [v for v in catalog.views_of(table.id) if v.id != view.id]
    if others:
        refuse(
            "E_IN_USE",
            f"cannot drop {view.name}: view {others[0].name} uses its rows",
            hint="drop that view first",
        )
    return Change(
        removes=(view, *(catalog.children(table.id) if table.kind == "stable" else ()), table)
    )


def set_view_status(
    catalog: Catalog, database: str, name: str, status: Literal["running", "paused"]
) -> Change:
    view = catalog.view(database, name)
    if view is None:
        refuse("E_NO_VIEW", f"there is no materialized view {database}.{name}")
    again = view.on_error == "stop" and status == "running"
    return Change((dataclasses.replace(view, status=status, resumed=view.resumed + again),))


def _pumps_into(catalog: Catalog, start: int, goal: int) -> bool:
    """Return True when rows of *start* flow into *goal* by existing streams and views."""

    def following(table_id: int) -> list[int]:
        streams = [s.plan.target.table_id for s in catalog.readers_of(table_id)]
        return [*streams, *(v.target_id for v in catalog.views() if v.source_id == table_id)]

    return leads_to(start, goal, following)

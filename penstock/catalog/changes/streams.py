"""Entries of streams, and of the snodes that keep their state."""

from __future__ import annotations

import dataclasses

from penstock.catalog.changes.change import Change, NewId, find_database, refuse
from penstock.catalog.changes.flow import leads_to
from penstock.catalog.changes.limits import check_table_name
from penstock.catalog.model import Snode, StreamEntry, StreamStatus
from penstock.catalog.view import Catalog
from penstock.sql.plan import StreamPlan


def create_stream(
    catalog: Catalog,
    plan: StreamPlan,
    *,
    created: int,
    if_not_exists: bool = False,
    replaces: StreamEntry | None = None,
    maker: str = "",
) -> Change:
    """Create the entry of a planned stream, whose ids (its own and its target table's) are already
    in the plan; with *replaces*, in the place of another.
    """
    if catalog.stream(plan.database, plan.name) is not None and replaces is None:
        if if_not_exists:
            return Change()
        refuse("E_STREAM_EXISTS", f"stream {plan.database}.{plan.name} exists already")
    find_database(catalog, plan.database)
    check_table_name(plan.name)
    if catalog.table_by_id(plan.source.table_id) is None:
        refuse("E_NO_TABLE", f"there is no table {plan.source.database}.{plan.source.table}")
    check_flow(catalog, plan)
    return Change(
        (StreamEntry(plan.stream_id, plan, created=created, maker=maker),),
        () if replaces is None else (replaces,),
    )


def check_flow(catalog: Catalog, plan: StreamPlan) -> None:
    """Refuse a stream that would read its own results, or whose state no snode could keep."""
    for name in dict.fromkeys((plan.database, plan.source.database)):
        _check_snode(catalog, name)
    if any(_reaches(catalog, plan.target.table_id, goal) for goal in plan.source.table_ids):
        refuse(
            "E_STREAM_CYCLE",
            f"stream {plan.name} would read its own results",
            detail=f"{plan.target.table} leads to {plan.source.table}",
        )


def _check_snode(catalog: Catalog, database: str) -> None:
    """Refuse a stream of a replicated database while no snode can keep its state."""
    home = catalog.database(database)
    if home is not None and home.replica > 1 and not catalog.snodes():
        refuse(
            "E_NO_SNODE",
            f"database {home.name} has {home.replica} replicas, but there is no snode to keep"
            " the stream's state",
            hint="CREATE SNODE ON DNODE 1 first (SHOW DNODES lists nodes)",
        )


def drop_stream(catalog: Catalog, database: str, name: str, *, if_exists: bool = False) -> Change:
    """Drop a stream; its result table stays."""
    stream = catalog.stream(database, name)
    if stream is None:
        if if_exists:
            return Change()
        refuse("E_NO_STREAM", f"there is no stream {database}.{name}")
    return Change(removes=(stream,))


def set_stream_status(
    catalog: Catalog, database: str, name: str, status: StreamStatus, reason: str = ""
) -> Change:
    stream = catalog.stream(database, name)
    if stream is None:
        refuse("E_NO_STREAM", f"there is no stream {database}.{name}")
    return Change((dataclasses.replace(stream, status=status, reason=reason),))


def create_snode(catalog: Catalog, new_id: NewId, dnode: int, *, created: int) -> Change:
    if catalog.snode(dnode) is not None:
        refuse("E_SNODE_EXISTS", f"there is a snode on dnode {dnode} already")
    return Change((Snode(new_id(), dnode, created),))


def drop_snode(catalog: Catalog, dnode: int) -> Change:
    """Drop a snode; its backups stay where they are."""
    found = catalog.snode(dnode)
    if found is None:
        refuse("E_NO_SNODE", f"there is no snode on dnode {dnode}", hint="SHOW SNODES lists them")
    return Change(removes=(found,))


def _reaches(catalog: Catalog, start: int, goal: int) -> bool:
    """Return True when results in table *start* flow into table *goal* by existing streams."""
    return leads_to(
        start, goal, lambda at: [s.plan.target.table_id for s in catalog.streams_fed_by(at)]
    )

"""Refusals to drop or change what streams and views use."""

from __future__ import annotations

import re

from penstock.catalog.changes.change import refuse
from penstock.catalog.model import Child, External, StreamEntry, Table
from penstock.catalog.view import Catalog
from penstock.sql.plan import Column, StreamPlan


def reads_child(plan: StreamPlan, name: str) -> bool:
    """Return True when a stream over a supertable needs its child table *name* to stay."""
    if plan.source.kind == "virtual":
        return any(m.name.lower() == name.lower() for m in plan.source.members)
    return (plan.source.child or "").lower() == name.lower()


def refuse_viewed(catalog: Catalog, entry: Table | External) -> None:
    views = catalog.views_of(entry.id)
    if views:
        listed = ", ".join(f"{v.database}.{v.name}" for v in views)
        refuse(
            "E_IN_USE",
            f"cannot drop {entry.name}: view {listed} uses it",
            hint="drop the view first",
        )


def refuse_used(entry: Table | Child, what: str, streams: list[StreamEntry]) -> None:
    if streams:
        names = ", ".join(dict.fromkeys(f"{s.database}.{s.name}" for s in streams))
        refuse(
            "E_IN_USE",
            f"cannot {what} {entry.name}: stream {names} uses it",
            hint="drop the stream first",
        )


def refuse_column_used(catalog: Catalog, table: Table, column: Column, what: str) -> None:
    word = re.compile(rf"(?<![\w$]){re.escape(column.name)}(?![\w$])", re.IGNORECASE)
    users = [
        s
        for s in catalog.readers_of(table.id)
        if any(word.search(text) for text in _plan_expressions(s.plan))
    ]
    for stream in catalog.writers_of(table.id):
        target = stream.plan.target
        filled = [
            *zip(target.columns, target.column_of, strict=True),
            *zip(target.tags, target.tag_of, strict=True),
        ]
        if any(
            c.name.lower() == column.name.lower() and source is not None for c, source in filled
        ):
            users.append(stream)
    if users:
        names = ", ".join(dict.fromkeys(f"{s.database}.{s.name}" for s in users))
        refuse(
            "E_IN_USE",
            f"cannot {what} {table.name}.{column.name}: stream {names} uses it",
            hint="drop the stream first",
        )


def _plan_expressions(plan: StreamPlan) -> list[str]:
    """Return every expression of the plan. Too many are safer than too few."""
    window = plan.window
    found = [
        plan.where,
        *(k.sql for k in plan.keys),
        *(a.sql for a in plan.aggregates),
        *(o.sql for o in plan.outputs),
    ]
    found += [getattr(window, part, None) for part in ("sql", "start_sql", "end_sql")]
    return [text for text in found if text]

"""What a deployment tells others of its streams, views and databases."""

from __future__ import annotations

from typing import Any

from penstock.catalog.view import Catalog


def information(view: Catalog, deployment: str) -> dict[str, Any]:
    """Return streams and views by name and serial, as far as *view* shows them."""
    queries = [
        {
            "serial": s.id,
            "name": s.name,
            "database": s.database,
            "kind": "stream",
            "state": s.status,
            "target": s.plan.target.table if s.plan.target.stored else "",
        }
        for s in view.streams()
    ]
    for v in view.views():
        target = view.by_id(v.target_id)
        shown = target.name if target is not None else ""
        queries.append(
            {
                "serial": v.id,
                "name": v.name,
                "database": v.database,
                "kind": "view",
                "state": v.status,
                "target": shown,
            }
        )
    return {
        "deployment": deployment,
        "queries": queries,
        "databases": [d.name for d in view.databases()],
    }

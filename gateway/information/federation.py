"""Lists of external streams and materialized views."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from gateway.answers import table_of
from gateway.children import text
from gateway.describing import name_of
from gateway.information import columns
from gateway.information.viewer import Viewer
from penstock import foreign, names
from penstock.coordination.redis_link import ask


class FederationLists:
    """What the catalog has of them, and what the federation service says of them."""

    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer

    def externals(self, database: str | None = None) -> pa.Table:
        """Return external streams, and topics of other Kafkas."""
        rows: list[tuple[Any, ...]] = [
            (
                e.name,
                e.database,
                e.type,
                ",".join("|".join(s) for s in e.shards),
                e.remote_database,
                e.remote_name,
                e.user,
                e.secure,
                e.created,
                None,
                None,
                None,
                None,
            )
            for e in self._viewer.catalog.externals(database)
        ]
        for table in self._viewer.catalog.tables(database):
            if (topic := foreign.of(table)) is not None:
                said = self._report(table.id)
                rows.append(
                    (
                        table.name,
                        table.database,
                        "kafka",
                        topic.brokers,
                        "",
                        topic.topic,
                        topic.user,
                        topic.protocol.endswith("SSL"),
                        None,
                        said.get("state", "starting"),
                        int(said.get("rows", 0)),
                        int(said["lag"]) if "lag" in said else None,
                        said.get("error") or None,
                    )
                )
        return table_of(columns.EXTERNALS, rows)

    def _report(self, entry_id: int) -> dict[str, str]:
        """Return what the federation service says of a view, or of the reader of a foreign
        topic.
        """
        held = ask(lambda: self._viewer.redis.hgetall(names.view_status(entry_id)))
        return {text(k): text(v) for k, v in held.items()}

    def views(self, database: str | None = None) -> pa.Table:
        """Return materialized views."""
        rows = []
        for v in self._viewer.catalog.views(database):
            said = self._report(v.id)
            status = "paused" if v.status == "paused" else said.get("state", "starting")
            rows.append(
                (
                    v.name,
                    v.database,
                    status,
                    name_of(self._viewer.catalog, v.source_id),
                    name_of(self._viewer.catalog, v.target_id),
                    int(said.get("rows", 0)),
                    int(said["lag"]) if "lag" in said else None,
                    float(said["behind"]) if "behind" in said else None,
                    said.get("error") or None,
                    v.created,
                    v.sql,
                    v.on_error.upper(),
                    int(said.get("dropped", 0)),
                )
            )
        return table_of(columns.VIEWS, rows)

"""Stream tables of raft groups, as far as the gateway has to do with them: it defines them and
passes rows on to their leaders.

Who leads and where nodes are it learns from their keys in Redis; who asks is told of the tables
they may see. Rows are `stream_table_rows.py`'s. A table that somebody subscribes to is not dropped.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable, Sequence
from typing import Any, cast

import redis
from aiohttp import web

from gateway import http
from gateway.coalescer import PendingWrite
from gateway.guard import RequestGuard, user_of
from gateway.idempotency import Receipt
from gateway.stream_table_rows import StreamTableRows
from penstock.auth.access import Access, Visible
from penstock.catalog.model import KeyRule, Purge, Replicated, Table
from penstock.catalog.stream_tables import groups_of_tables
from penstock.catalog.view import Catalog
from penstock.client.gateway import authorization
from penstock.client.nodes import Nodes
from penstock.config.raft import GROUPS, Group, RaftGroups
from penstock.coordination.presence import Presence, Registry
from penstock.errors import BusError, CatalogError, PenstockError, RemoteError
from penstock.runtime.clock import Clock
from penstock.sql.plan import Duration
from penstock.sql.statements import StreamTableSettings

_ENABLE = "`penstock up --nodes 3` sets both; see docs/ha-tables.md"
#: seconds between looks at Redis while a new table is awaited
_LOOK_SECONDS = 0.02
_GONE_SECONDS = 5.0


class StreamTableGroups:
    """`write` from the event loop; the rest from the DDL thread or others."""

    def __init__(
        self,
        groups: RaftGroups,
        client: redis.Redis,
        catalog: Callable[[], Catalog],
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        *,
        access: Access,
        user: str,
        password: str,
        timeout: float,
        context: ssl.SSLContext,
    ) -> None:
        self._access = access
        self.groups = groups
        self._catalog = catalog
        self._clock = clock
        self._timeout = timeout
        self._registry = Registry(client, 1.0)
        self._nodes = Nodes(
            lambda: self._describe(self._registry.urls),
            authorization(user, password),
            among_nodes=True,
            context=context,
        )
        self._rows = StreamTableRows(self._nodes, catalog, clock, loop, timeout)
        self._never = threading.Event()

    def close(self) -> None:
        self._rows.close()
        self._nodes.close()

    # ---------------------------------------------------------------- what there is

    def group(self, wanted: int | str) -> Group:
        """Return the group with this id or alias. Raises CatalogError."""
        if not self.groups.groups:
            missing = GROUPS if not self.groups.groups else "streamingHAMode"
            raise CatalogError(
                "high availability of stream tables is not enabled",
                code="E_HA_OFF",
                detail=f"streamingHAMode=raft and {missing} are not set",
                hint=_ENABLE,
            )
        return self.groups.find(wanted)

    def _alive(self, nodes: Sequence[str]) -> dict[str, Presence]:
        return self._registry.alive(nodes)

    def check_quorum(self, group: Group) -> None:
        """Raise RemoteError (`E_NO_QUORUM`) for what would wait for ever."""
        alive = self._alive(group.members)
        if len(alive) < group.majority:
            there = ", ".join(alive) or "none"
            raise RemoteError(
                f"group {group.id} has no quorum",
                code="E_NO_QUORUM",
                hint="start the missing nodes",
                detail=(
                    f"of its {len(group.members)} members {there} is there, {group.majority} are"
                    " needed"
                ),
            )

    def wait_served(self, table: Table) -> None:
        """Return when every living member has the new table and one leads it. Raises BusError
        (`E_NOT_LIVE`).
        """
        assert table.replicated is not None
        group = self.groups.find(table.replicated.group)
        end = self._clock.monotonic() + self._timeout
        while True:
            alive = self._alive(group.nodes)
            everywhere = all(table.id in p.tables for p in alive.values())
            if everywhere and self._has_leader(table, group, alive):
                return
            if self._clock.monotonic() > end:
                raise BusError(
                    f"table {table.name} is made, but its group does not serve it yet",
                    code="E_NOT_LIVE",
                    retryable=True,
                    detail=f"waited {self._timeout:g} s",
                    hint="`penstock status` shows the nodes",
                )
            self._never.wait(_LOOK_SECONDS)

    def wait_gone(self, tables: Sequence[Table]) -> None:
        """Return when no living node has dropped tables any more; a node that takes its time is not
        waited for long.
        """
        ids = {t.id for t in tables}
        end = self._clock.monotonic() + _GONE_SECONDS
        while (
            any(ids & set(p.tables) for p in self._alive(self.groups.nodes).values())
            and self._clock.monotonic() < end
        ):
            self._never.wait(_LOOK_SECONDS)

    def _has_leader(self, table: Table, group: Group, alive: dict[str, Presence]) -> bool:
        for presence in alive.values():
            if group.id not in presence.leads:
                continue
            try:
                found = self._nodes.ask(presence.url, "/v1/stat", seconds=2.0)
            except PenstockError:
                continue
            if any(
                t["leads"] and t["table"] == f"{table.database}.{table.name}"
                for t in found["pubTables"]
            ):
                return True
        return False

    def check_unused(self, tables: Sequence[Table]) -> None:
        """Raise CatalogError (`E_IN_USE`) for tables that somebody subscribes to."""
        if not tables:
            return
        wanted = {f"{t.database}.{t.name}": t for t in tables}
        for presence in self._alive(self.groups.nodes).values():
            try:
                found = self._nodes.ask(presence.url, "/v1/stat", seconds=2.0)
            except PenstockError:
                continue
            users = [c["topic"] for c in found["pubConns"] if c["table"] in wanted]
            if users:
                raise CatalogError(
                    f"cannot drop {', '.join(t.name for t in tables)}: there are subscriptions",
                    code="E_IN_USE",
                    detail=", ".join(sorted(users)),
                    hint="unsubscribe them first",
                )

    def _describe(self, urls: dict[str, str]) -> dict[str, Any]:
        return self._registry.describe(self.groups, groups_of_tables(self._catalog()), urls)

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        async def groups(request: web.Request) -> web.Response:
            seen = groups_of_tables(Visible(self._catalog(), self._access, user_of(request)))
            return http.json_response(
                await asyncio.to_thread(
                    self._registry.describe, self.groups, seen, self._registry.client_urls
                )
            )

        return [web.get("/v1/groups", guard.wrap(groups))]

    def write(self, write: PendingWrite, key: str | None) -> asyncio.Future[Receipt]:
        """Have the leader write rows; with *key*, only if that is new."""
        return self._rows.write(write, key)


def replication_of(group: int, o: StreamTableSettings) -> Replicated:
    """Return what a statement's options say, as the catalog has it."""
    purge = None
    if o.cache_purge_time_column and o.cache_purge_interval and o.cache_retention_time:
        purge = Purge(
            o.cache_purge_time_column,
            o.cache_purge_interval.ticks("ms"),
            o.cache_retention_time.ticks("ms"),
        )
    return Replicated(
        group,
        o.cache_limit,
        o.cache_limit,
        o.retention_minutes,
        o.key_column,
        o.filter_column,
        o.timestamp_column,
        o.pre_cache,
        cast(KeyRule, o.key_rule),
        o.time_column,
        o.status_column,
        o.async_write,
        o.compress,
        o.flush_mode,
        purge,
    )


def options_of(table: Replicated) -> StreamTableSettings:
    """Return the options that make a table like this one."""
    purge = table.purge
    return StreamTableSettings(
        table.group,
        table.asked_limit,
        table.key_columns,
        table.retention_minutes,
        table.pre_cache,
        table.filter_column,
        table.timestamp_column,
        table.key_rule,
        table.time_columns,
        table.status_column,
        table.async_write,
        table.compress,
        table.flush_mode,
        purge.column if purge else None,
        Duration(purge.every_ms, "a") if purge else None,
        Duration(purge.keep_ms, "a") if purge else None,
    )

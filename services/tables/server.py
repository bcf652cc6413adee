"""What clients and other nodes ask a node over HTTP and WebSocket: the endpoint, who leads and how
things are.

Rows in are `intake.py`'s, rows out `subscriptions.py`'s. Users are those of the gateway, with their
rights: WRITE for who appends, READ for who subscribes, both asked for again as rows go by. Other
nodes come as root. Pages of browsers are refused.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import time
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from penstock.auth.access import Access
from penstock.auth.login import Login
from penstock.catalog.model import ROW_ID
from penstock.catalog.reader import CatalogReader
from penstock.coordination.presence import Registry
from penstock.errors import AuthError, BusError, PenstockError
from penstock.runtime import audit
from penstock.runtime.clock import Clock
from penstock.runtime.log import get
from services.tables.chunk import encode, join
from services.tables.election import Election
from services.tables.forward import Forward
from services.tables.intake import ProducerIntake
from services.tables.keeper import ReplicaKeeper
from services.tables.lookup import USER, Lookup
from services.tables.settings import TablesSettings
from services.tables.subscriptions import Subscriptions

log = get(__name__)
_STATUS = {
    "E_AUTH": 401,
    "E_FORBIDDEN": 403,
    "E_NO_TABLE": 404,
    "E_NO_GROUP": 404,
    "E_NO_SUBSCRIPTION": 404,
    "E_NOT_LEADER": 421,
    "E_NO_LEADER": 503,
    "E_NO_QUORUM": 503,
    "E_OVERLOAD": 429,
    "E_BUS": 503,
    "E_REDIS_DOWN": 503,
    "E_OFFSET_GONE": 410,
    "E_SUBSCRIPTION_EXISTS": 409,
    "E_FILTER": 400,
    "E_SEQUENCE": 400,
    "E_REMOTE": 502,
    "E_INTERNAL": 500,
}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """Event loop only."""

    def __init__(
        self,
        settings: TablesSettings,
        catalog: CatalogReader,
        keeper: ReplicaKeeper,
        election: Election,
        registry: Registry,
        clock: Clock,
        context: ssl.SSLContext,
    ) -> None:
        """`context`: for calls to nodes that speak TLS."""
        self._settings = settings
        self._catalog = catalog
        self._keeper = keeper
        self._election = election
        self._registry = registry
        self._login = Login(
            lambda: catalog.catalog,
            settings.user,
            settings.root_password,
            clock,
            settings.signing_key,
        )
        access = Access(lambda: catalog.catalog, settings.user)
        self._tables = Lookup(settings.alias, catalog, keeper, election, access)
        self._others = Forward(settings, context)
        self.intake = ProducerIntake(settings, self._tables, self._others)
        self.subscriptions = Subscriptions(settings, self._tables, registry, self._others)
        self._started = time.time()

    def application(self) -> web.Application:
        app = web.Application(
            client_max_size=self._settings.max_body, middlewares=[self._middleware()]
        )
        table = "/v1/tables/{db}/{table}"
        app.add_routes(
            [
                web.get("/v1/node", self._node),
                web.get("/v1/stat", self._stat),
                web.get("/v1/peer", self._peer),
                web.get(table, self._describe),
                web.get(f"{table}/rows", self._rows),
                *self.intake.routes(),
                *self.subscriptions.routes(),
            ]
        )
        return app

    async def close(self) -> None:
        await self.subscriptions.close()
        await self._others.close()

    def wake(self) -> None:
        """Leaders changed: subscribers may have to go elsewhere."""
        for replica in self._keeper.all():
            replica.wake()

    # ---------------------------------------------------------------- the endpoint

    def _middleware(self) -> Any:
        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self._guard(request, handler)

        return guard

    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            if request.headers.get("Origin") is not None:
                raise AuthError(
                    "pages may not connect to nodes of stream tables", code="E_FORBIDDEN"
                )
            given = request.headers.get("Authorization")
            user = await self._login.admit(given, where=request.remote or "")
            request[USER] = user
            return await handler(request)
        except PenstockError as error:
            if error.code == "E_FORBIDDEN":
                audit.note_refusal(request.get(USER, ""), request.remote or "", error)
            return web.json_response(
                {"error": error.to_dict(), **self._hint(request, error)},
                status=_STATUS.get(error.code, 400),
            )
        except (asyncio.CancelledError, web.HTTPException, ConnectionError):
            raise
        except Exception:
            log.exception("a request found a bug", path=request.path)
            bug = BusError("this is a bug in the node; its log has the details", code="E_INTERNAL")
            return web.json_response({"error": bug.to_dict()}, status=500)

    def _hint(self, request: web.Request, error: PenstockError) -> dict[str, Any]:
        if error.code != "E_NOT_LEADER" or "db" not in request.match_info:
            return {}
        replica = self._keeper.find(request.match_info["db"], request.match_info["table"])
        return {"leader": self._tables.leader(replica)} if replica is not None else {}

    # ---------------------------------------------------------------- how things are

    async def _node(self, request: web.Request) -> web.Response:
        groups = []
        for standing in self._election.standings.values():
            group = standing.group
            serving = standing.term is not None and standing.term.opened
            groups.append(
                {
                    "id": group.id,
                    "alias": group.alias,
                    "members": list(group.members),
                    "learners": list(group.learners),
                    "urls": {n: self._registry.urls.get(n) for n in group.nodes},
                    "client_urls": {n: self._registry.client_urls.get(n) for n in group.nodes},
                    "leader": standing.leader,
                    "leader_url": standing.url,
                    "epoch": standing.epoch,
                    "alive": list(standing.alive),
                    "quorum": standing.missing(),
                    "serving": serving,
                }
            )
        tables = [
            {"table": r.name, "group": r.replicated.group, "next": r.copy.next}
            for r in self._tables.visible_to(request)
        ]
        body = {
            "node": self._tables.alias,
            "url": self._settings.url,
            "groups": groups,
            "tables": tables,
        }
        return web.json_response({**body, "redis": self._election.redis_down or "ok"})

    async def _describe(self, request: web.Request) -> web.Response:
        database = request.match_info["db"]
        name = request.match_info["table"]
        # who only writes has to know the columns, too
        entry = self._catalog.catalog.table(database, name)
        writes = entry is not None and self._tables.access.may(request[USER], "WRITE", entry)
        replica = (
            self._tables.replica(database, name)
            if writes
            else self._tables.of_request(request, "READ")
        )
        columns = [[c.name, str(c.type)] for c in replica.table.columns if c.name != ROW_ID]
        replicated = replica.replicated
        meta = replica.copy.meta() | {
            "raftGroup": replicated.group,
            "askedCacheLimit": replicated.asked_limit,
            "keyColumn": list(replicated.key_columns),
            "node": self._tables.alias,
            "epoch": replica.copy.fence.epoch,
            "fencedRecords": replica.fenced,
            "keyRule": replicated.key_rule,
            "timeColumn": list(replicated.time_columns),
            "statusColumn": replicated.status_column,
            "timestampColumn": replicated.timestamp_column,
            "asynWrite": replicated.async_write,
            "compress": replicated.compress,
            "flushMode": replicated.flush_mode,
            "cachePurgeTimeColumn": replicated.purge.column if replicated.purge else None,
        }
        if replicated.asked_limit > replicated.cache_limit:
            meta["warning"] = (
                f"cacheLimit {replicated.asked_limit} was lowered to {replicated.cache_limit}"
            )
        schema = base64.b64encode(replica.rows.schema.serialize().to_pybytes()).decode()
        return web.json_response(
            {
                "table": replica.name,
                "group": replicated.group,
                "precision": replica.table.precision,
                "columns": columns,
                "schema": schema,
                "leader": self._tables.leader(replica),
                "meta": meta,
            }
        )

    async def _stat(self, request: web.Request) -> web.Response:
        seen = self._tables.visible_to(request)
        subs = [
            {
                "topic": s.topic,
                "table": s.replica.name,
                "action": s.action,
                "client": s.remote,
                "id": s.id,
                "msgOffset": s.row,
                "queueDepth": max(s.replica.copy.next - s.row, 0),
                "sentRows": s.sent,
                "sentBytes": s.bytes,
                "processed": s.processed,
                "raftGroup": s.group or None,
                "executes": s.executes,
            }
            for s in self.subscriptions.connected
            if s.replica in seen
        ]
        tables = []
        for replica in seen:
            session = self._tables.session_of(replica)
            tables.append(
                {
                    "table": replica.name,
                    "raftGroup": replica.replicated.group,
                    "leads": session is not None and session.serving,
                    "totalSize": replica.copy.next,
                    "subscribers": sum(s.replica is replica for s in self.subscriptions.connected),
                    "ackedRows": session.acked_rows if session is not None else 0,
                    "straightRecords": session.straight if session is not None else 0,
                    "waitingForDisk": replica.copy.waiting,
                }
            )
        workers = [{"table": t["table"], "queueDepth": t["waitingForDisk"]} for t in tables]
        return web.json_response(
            {
                "node": self._tables.alias,
                "started": self._started,
                "producers": self.intake.producers,
                "pubConns": subs,
                "pubTables": tables,
                "persistWorkers": workers,
            }
        )

    async def _rows(self, request: web.Request) -> web.Response:
        """The rows in memory, or some of them: what a select on this node sees."""
        replica = self._tables.of_request(request, "READ")
        first = int(request.query.get("from", replica.copy.memory_first))
        limit = int(request.query.get("limit", replica.copy.shape.cache_limit))

        def read() -> bytes:
            parts = []
            at = max(first, 0)
            left = limit
            while left > 0 and (chunk := replica.copy.read(at, left)) is not None:
                parts.append(chunk)
                at = chunk.next
                left = left - chunk.rows
            return encode(
                join(parts).batch if parts else replica.rows.to_batch(replica.rows.empty())
            )

        return web.Response(
            body=await asyncio.to_thread(read), content_type="application/vnd.apache.arrow.stream"
        )

    async def _peer(self, request: web.Request) -> web.WebSocketResponse:
        """Another node wants to know at once when this one dies."""
        self._tables.access.require(request[USER], "ADMIN", None)
        socket = web.WebSocketResponse(heartbeat=10.0)
        await socket.prepare(request)
        async for _ in socket:
            pass
        return socket

"""What clients and other nodes ask a node over HTTP and WebSocket: rows in, rows out, who leads, how things are.

Writes go to the leader: a producer's WebSocket is told where that is, a single POST is passed on. Subscriptions are served from this
node's own copy, so they need neither Redis nor a leader. Users are those of the gateway, with their rights: WRITE for who appends,
READ for who subscribes, both asked for again as rows go by. Other nodes come as root. Pages of browsers are refused.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import ssl
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import aiohttp
import pyarrow as pa
from aiohttp import WSMsgType, web

from penstock import audit
from penstock.access import Access
from penstock.catalog.model import ROW_ID, Right
from penstock.catalog.reader import CatalogReader
from penstock.clock import Clock
from penstock.errors import AuthError, BusError, CatalogError, PenstockError, RemoteError, SchemaError
from penstock.log import get
from penstock.login import Login
from penstock.presence import Registry
from services.tables import filters
from services.tables.chunk import encode, join
from services.tables.election import Election, Standing
from services.tables.keeper import Keeper
from services.tables.outlet import PROCESSED, Shared, Subscriber, first_row, pump
from services.tables.replica import Replica
from services.tables.session import Session, not_leader
from services.tables.settings import TablesSettings
from services.tables.turns import is_next
from services.tables.writes import Entry, Offset, Write, offset_producer

log = get(__name__)
_STATUS = {
    "E_AUTH": 401, "E_FORBIDDEN": 403, "E_NO_TABLE": 404, "E_NO_GROUP": 404, "E_NO_SUBSCRIPTION": 404, "E_NOT_LEADER": 421,
    "E_NO_LEADER": 503, "E_NO_QUORUM": 503, "E_OVERLOAD": 429, "E_BUS": 503, "E_REDIS_DOWN": 503, "E_OFFSET_GONE": 410,
    "E_SUBSCRIPTION_EXISTS": 409, "E_FILTER": 400, "E_SEQUENCE": 400, "E_REMOTE": 502, "E_INTERNAL": 500,
}  # fmt: skip
_FORWARD_S = 30.0
_PEER_S = 3.0
#: who a request is of
_USER = "user"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """Event loop only."""

    def __init__(
        self, settings: TablesSettings, catalog: CatalogReader, keeper: Keeper, election: Election, registry: Registry, clock: Clock,
        context: ssl.SSLContext,
    ) -> None:  # fmt: skip
        """`context`: for calls to nodes that speak TLS."""
        self._settings, self._catalog, self._keeper, self._election, self._registry = settings, catalog, keeper, election, registry
        self._login = Login(lambda: catalog.catalog, settings.user, settings.root_password, clock)
        self._access = Access(lambda: catalog.catalog, settings.user)
        self._context = context
        #: how this node logs in at others
        self._basic = "Basic " + base64.b64encode(f"{settings.user}:{settings.root_password}".encode()).decode()
        self._shared: defaultdict[int, Shared] = defaultdict(Shared)
        self.subscribers: set[Subscriber] = set()
        self._producers = 0
        self._started = time.time()
        self._client: aiohttp.ClientSession | None = None

    def application(self) -> web.Application:
        app = web.Application(client_max_size=self._settings.max_body, middlewares=[self._middleware()])
        app.add_routes(
            [
                web.get("/v1/node", self._node), web.get("/v1/stat", self._stat), web.get("/v1/peer", self._peer),
                web.get("/v1/append", self._append), web.get("/v1/subscribe", self._subscribe),
                web.post("/v1/unsubscribe", self._unsubscribe),
                web.get("/v1/tables/{db}/{table}", self._describe), web.get("/v1/tables/{db}/{table}/rows", self._rows),
                web.post("/v1/tables/{db}/{table}/rows", self._write), web.get("/v1/tables/{db}/{table}/offset", self._offset),
                web.post("/v1/tables/{db}/{table}/offset", self._set_offset), web.get("/v1/tables/{db}/{table}/producer", self._producer),
            ]
        )  # fmt: skip
        return app

    async def close(self) -> None:
        for subscriber in list(self.subscribers):
            await subscriber.socket.close()
        if self._client is not None:
            await self._client.close()

    def wake(self) -> None:
        """Leaders changed: subscribers may have to go elsewhere."""
        for replica in self._keeper.all():
            replica.wake()

    # ---------------------------------------------------------------- the door

    def _middleware(self) -> Any:
        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self._guard(request, handler)

        return guard

    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            if request.headers.get("Origin") is not None:
                raise AuthError("pages may not connect to nodes of stream tables", code="E_FORBIDDEN")
            given = request.headers.get("Authorization")
            user = self._login.known(given)
            if user is None:
                user = await asyncio.to_thread(self._login.check, given, where=request.remote or "")
            request[_USER] = user
            return await handler(request)
        except PenstockError as error:
            if error.code == "E_FORBIDDEN":
                audit.refused(request.get(_USER, ""), request.remote or "", error)
            return web.json_response({"error": error.to_dict(), **self._hint(request, error)}, status=_STATUS.get(error.code, 400))
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
        return {"leader": self._leader(replica)} if replica is not None else {}

    # ---------------------------------------------------------------- names

    def _replica(self, database: str, table: str) -> Replica:
        found = self._keeper.find(database, table)
        if found is not None:
            return found
        entry = self._catalog.catalog.table(database, table)
        if entry is not None and entry.replicated is not None:
            raise CatalogError(
                f"node {self._settings.alias} has no copy of {database}.{table}", code="E_NO_TABLE",
                detail=f"its group is {entry.replicated.group}", hint="ask a node of that group",
            )  # fmt: skip
        kind = "is no stream table of a group" if entry is not None else "does not exist"
        raise CatalogError(f"table {database}.{table} {kind}", code="E_NO_TABLE")

    def _asked(self, request: web.Request, right: Right) -> Replica:
        """The table of the path, for somebody who needs *right*."""
        return self._for(request[_USER], right, request.match_info["db"], request.match_info["table"])

    def _named(self, user: str, right: Right, name: str) -> Replica:
        database, dot, table = name.partition(".")
        if not dot:
            raise SchemaError("a table is database.name", code="E_BODY")
        return self._for(user, right, database, table)

    def _for(self, user: str, right: Right, database: str, table: str) -> Replica:
        """Who may not know of a table is not told whether it exists. Raises AuthError, CatalogError."""
        entry = self._catalog.catalog.table(database, table)
        if entry is None:
            self._access.require_named(user, right, database, table)
        else:
            self._access.require(user, right, entry)
        return self._replica(database, table)

    def _seen(self, request: web.Request) -> list[Replica]:
        """The tables that the caller has some right on."""
        return [r for r in self._keeper.all() if self._access.sees(request[_USER], r.table)]

    def _standing(self, replica: Replica) -> Standing:
        return self._election.standings[replica.replicated.group]

    def _session(self, replica: Replica) -> Session:
        session = self._election.session(replica.replicated.group, replica.table.id)
        if session is None:
            standing = self._standing(replica)
            why = f"{standing.leader} leads" if standing.leader else standing.missing() or "nobody leads at the moment"
            raise not_leader(replica.name, why)
        return session

    def _leader(self, replica: Replica) -> dict[str, Any]:
        standing = self._standing(replica)
        return {"node": standing.leader, "url": standing.url, "epoch": standing.epoch}

    # ---------------------------------------------------------------- how things are

    async def _node(self, request: web.Request) -> web.Response:
        groups = []
        for standing in self._election.standings.values():
            group = standing.group
            serving = standing.term is not None and standing.term.opened
            groups.append(
                {
                    "id": group.id, "alias": group.alias, "members": list(group.members), "learners": list(group.learners),
                    "urls": {n: self._registry.urls.get(n) for n in group.nodes},
                    "client_urls": {n: self._registry.client_urls.get(n) for n in group.nodes},
                    "leader": standing.leader, "leader_url": standing.url, "epoch": standing.epoch, "alive": list(standing.alive),
                    "quorum": standing.missing(), "serving": serving,
                }
            )  # fmt: skip
        tables = [{"table": r.name, "group": r.replicated.group, "next": r.copy.next} for r in self._seen(request)]
        body = {"node": self._settings.alias, "url": self._settings.url, "groups": groups, "tables": tables}
        return web.json_response({**body, "redis": self._election.redis_down or "ok"})

    async def _describe(self, request: web.Request) -> web.Response:
        database, name = request.match_info["db"], request.match_info["table"]
        # who only writes has to know the columns, too
        entry = self._catalog.catalog.table(database, name)
        writes = entry is not None and self._access.may(request[_USER], "WRITE", entry)
        replica = self._replica(database, name) if writes else self._asked(request, "READ")
        columns = [[c.name, str(c.type)] for c in replica.table.columns if c.name != ROW_ID]
        replicated = replica.replicated
        meta = replica.copy.meta() | {
            "raftGroup": replicated.group, "askedCacheLimit": replicated.asked_limit, "keyColumn": list(replicated.key_columns),
            "node": self._settings.alias, "epoch": replica.copy.fence.epoch, "fencedRecords": replica.fenced,
            "keyRule": replicated.key_rule, "timeColumn": list(replicated.time_columns), "statusColumn": replicated.status_column,
            "timestampColumn": replicated.timestamp_column, "asynWrite": replicated.async_write, "compress": replicated.compress,
            "flushMode": replicated.flush_mode, "cachePurgeTimeColumn": replicated.purge.column if replicated.purge else None,
        }  # fmt: skip
        if replicated.asked_limit > replicated.cache_limit:
            meta["warning"] = f"cacheLimit {replicated.asked_limit} was lowered to {replicated.cache_limit}"
        schema = base64.b64encode(replica.rows.schema.serialize().to_pybytes()).decode()
        return web.json_response(
            {
                "table": replica.name, "group": replicated.group, "precision": replica.table.precision, "columns": columns,
                "schema": schema, "leader": self._leader(replica), "meta": meta,
            }
        )  # fmt: skip

    async def _stat(self, request: web.Request) -> web.Response:
        seen = self._seen(request)
        subs = [
            {
                "topic": s.topic, "table": s.replica.name, "action": s.action, "client": s.remote, "id": s.id, "msgOffset": s.row,
                "queueDepth": max(s.replica.copy.next - s.row, 0), "sentRows": s.sent, "sentBytes": s.bytes, "processed": s.processed,
                "raftGroup": s.group or None, "executes": s.executes,
            }
            for s in self.subscribers
            if s.replica in seen
        ]  # fmt: skip
        tables = []
        for replica in seen:
            session = self._election.session(replica.replicated.group, replica.table.id)
            tables.append(
                {
                    "table": replica.name, "raftGroup": replica.replicated.group, "leads": session is not None and session.serving,
                    "totalSize": replica.copy.next, "subscribers": sum(s.replica is replica for s in self.subscribers),
                    "ackedRows": session.acked_rows if session is not None else 0,
                    "straightRecords": session.straight if session is not None else 0, "waitingForDisk": replica.copy.waiting,
                }
            )  # fmt: skip
        return web.json_response(
            {"node": self._settings.alias, "started": self._started, "producers": self._producers, "pubConns": subs, "pubTables": tables,
             "persistWorkers": [{"table": t["table"], "queueDepth": t["waitingForDisk"]} for t in tables]}
        )  # fmt: skip

    async def _rows(self, request: web.Request) -> web.Response:
        """The rows in memory, or some of them: what a select on this node sees."""
        replica = self._asked(request, "READ")
        first = int(request.query.get("from", replica.copy.memory_first))
        limit = int(request.query.get("limit", replica.copy.shape.cache_limit))

        def read() -> bytes:
            parts, at, left = [], max(first, 0), limit
            while left > 0 and (chunk := replica.copy.read(at, left)) is not None:
                parts.append(chunk)
                at, left = chunk.next, left - chunk.rows
            return encode(join(parts).batch if parts else replica.rows.kept(replica.rows.empty()))

        return web.Response(body=await asyncio.to_thread(read), content_type="application/vnd.apache.arrow.stream")

    async def _peer(self, request: web.Request) -> web.WebSocketResponse:
        """Another node wants to know at once when this one dies."""
        self._access.require(request[_USER], "ADMIN", None)
        socket = web.WebSocketResponse(heartbeat=10.0)
        await socket.prepare(request)
        async for _ in socket:
            pass
        return socket

    # ---------------------------------------------------------------- rows in

    async def _append(self, request: web.Request) -> web.WebSocketResponse:
        """A producer's writes to one table, each with an answer; several answers may come in one message."""
        user = request[_USER]
        replica = self._named(user, "WRITE", request.query.get("table", ""))
        socket = web.WebSocketResponse(max_msg_size=self._settings.max_body, compress=False, heartbeat=20.0)
        await socket.prepare(request)
        session = self._election.session(replica.replicated.group, replica.table.id)
        hello = {"type": "hello", "node": self._settings.alias, "leads": session is not None and session.serving}
        await socket.send_str(json.dumps({**hello, "leader": self._leader(replica)}))
        self._producers += 1
        answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        sender = asyncio.create_task(self._answer(socket, answers))
        try:
            async for message in socket:
                if message.type is WSMsgType.BINARY:
                    self._take(user, replica, message.data, answers)
        finally:
            self._producers -= 1
            sender.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sender
        return socket

    def _take(self, user: str, replica: Replica, data: bytes, answers: asyncio.Queue[dict[str, Any]]) -> None:
        sequence = -1
        try:
            write = _write_of(data)
            sequence = write.sequence
            self._access.require(user, "WRITE", replica.table)  # it may have been revoked since
            write.done.add_done_callback(lambda done: answers.put_nowait(self._outcome(replica, sequence, done)))
            self._session(replica).submit(write)
        except PenstockError as error:
            answers.put_nowait({"seq": sequence, "error": error.to_dict(), "leader": self._leader(replica)})

    def _outcome(self, replica: Replica, sequence: int, done: asyncio.Future[int]) -> dict[str, Any]:
        error = done.exception()
        if error is None:
            return {"seq": sequence, "rows": done.result()}
        body = error.to_dict() if isinstance(error, PenstockError) else {"code": "E_INTERNAL", "message": str(error)}
        return {"seq": sequence, "error": body, "leader": self._leader(replica)}

    @staticmethod
    async def _answer(socket: web.WebSocketResponse, answers: asyncio.Queue[dict[str, Any]]) -> None:
        while True:
            batch = [await answers.get()]
            while not answers.empty():
                batch.append(answers.get_nowait())
            with contextlib.suppress(ConnectionError):
                await socket.send_str(json.dumps({"answers": batch}))

    async def _submit(self, replica: Replica, entry: Entry) -> int:
        self._session(replica).submit(entry)
        return await entry.done

    async def _write(self, request: web.Request) -> web.Response:
        """One write over HTTP, on any node."""
        replica = self._asked(request, "WRITE")
        data = await request.read()
        try:
            rows = await self._submit(replica, _write_of(data))
        except RemoteError as error:
            if error.code != "E_NOT_LEADER" or "X-Penstock-Forwarded" in request.headers:
                raise
            return await self._forward(request, replica, data, error)
        return web.json_response({"rows": rows, "node": self._settings.alias})

    async def _producer(self, request: web.Request) -> web.Response:
        """The last write of a producer that is certain, as the leader knows it; 0: none."""
        replica = self._asked(request, "WRITE")
        if not self._session(replica).serving:
            raise not_leader(replica.name, "it is about to")
        known = replica.copy.producers.get(request.query.get("id", ""))
        return web.json_response({"sequence": known.sequence if known is not None else 0})

    async def _forward(self, request: web.Request, replica: Replica, data: bytes, error: PenstockError) -> web.Response:
        standing = self._standing(replica)
        if not standing.leader or standing.leader == self._settings.alias:
            raise error
        url = f"{standing.url}{request.path}"
        status, answer = await self._call("POST", url, data)
        return web.json_response(answer, status=status)

    async def _call(self, method: str, url: str, data: bytes, *, timeout: float = _FORWARD_S) -> tuple[int, Any]:
        """Ask another node, which does not pass it on. Raises RemoteError when it does not answer."""
        if self._client is None:
            connector = aiohttp.TCPConnector(ssl=self._context)
            self._client = aiohttp.ClientSession(connector=connector, headers={"Authorization": self._basic})
        headers = {"X-Penstock-Forwarded": self._settings.alias}
        try:
            limit = aiohttp.ClientTimeout(total=timeout)
            async with self._client.request(method, url, data=data, headers=headers, timeout=limit) as response:
                return response.status, await response.json()
        except (aiohttp.ClientError, TimeoutError, ValueError) as failed:
            raise RemoteError("another node does not answer", detail=f"{url}: {type(failed).__name__}") from failed

    # ---------------------------------------------------------------- rows out

    async def _subscribe(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(max_msg_size=1 << 20, compress=False, heartbeat=20.0)
        await socket.prepare(request)
        subscriber: Subscriber | None = None
        try:
            subscriber = await self._open(json.loads(await socket.receive_str()), socket, request)
        except PenstockError as error:
            if error.code == "E_FORBIDDEN":
                audit.refused(request[_USER], request.remote or "", error)
            await socket.send_str(json.dumps({"type": "error", **error.to_dict()}))
        except (ValueError, TypeError, KeyError) as wrong:
            bad = SchemaError("this is no subscription", code="E_BODY", detail=str(wrong)[:200])
            await socket.send_str(json.dumps({"type": "error", **bad.to_dict()}))
        if subscriber is None:
            await socket.close()
            return socket
        self.subscribers.add(subscriber)
        replica = subscriber.replica
        shared = self._shared[replica.table.id]
        allowed = partial(self._access.require, request[_USER], "READ", replica.table)
        pumping = asyncio.create_task(
            pump(
                subscriber, shared, self._settings.idle_seconds, lambda: self._moved(subscriber), allowed, lambda: self._begin(subscriber)
            )
        )  # fmt: skip
        listening = asyncio.create_task(self._listen(subscriber))
        try:
            await asyncio.wait({pumping, listening}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.subscribers.discard(subscriber)
            if subscriber.group:
                replica.wake()  # it is another one's turn
            for task in (pumping, listening):
                task.cancel()
            for result in await asyncio.gather(pumping, listening, return_exceptions=True):
                if isinstance(result, Exception) and not isinstance(result, ConnectionError):
                    log.warning("a subscription ended", table=replica.name, action=subscriber.action, error=repr(result)[:300])
            await socket.close()
        return socket

    async def _open(self, hello: dict[str, Any], socket: web.WebSocketResponse, request: web.Request) -> Subscriber:
        user, remote = request[_USER], request.remote or ""
        replica = self._named(user, "READ", str(hello["table"]))
        action, key = str(hello.get("action", "")), str(hello["id"])
        group = self._group(hello.get("raft_group"))
        for other in self.subscribers:
            alone = not group or other.group != group
            if other.replica is replica and other.action == action and other.id != key and alone:
                raise CatalogError(f"subscription {other.topic} exists", code="E_SUBSCRIPTION_EXISTS", hint="choose another actionName")
        offset = int(hello.get("offset", -1))
        known = replica.copy.producers.get(offset_producer(action)) if offset == PROCESSED or group else None
        processed = known.sequence if known is not None else None
        # who comes back knows its row; a node that has just started may not have read that far yet
        back = bool(hello.get("resume")) and (offset > replica.copy.next or bool(group))
        # one of several programs asks for a beginning, which there is only one of
        begun = processed if group else None
        row = offset if back else begun if begun is not None else first_row(replica, offset, processed)
        passes = filters.make(replica.table, hello.get("filter"))
        subscriber = Subscriber(replica, action, key, user, remote, socket, passes, row)
        if group:
            if not self._session(replica).serving:
                raise not_leader(replica.name, "it is about to")
            subscriber.group, subscriber.executes, subscriber.executed = group, False, bool(hello.get("resume"))
        body = {"type": "subscribed", "from": row, "topic": subscriber.topic, "node": self._settings.alias, "leader": self._leader(replica)}
        await socket.send_str(json.dumps(body))
        return subscriber

    def _group(self, wanted: Any) -> int:
        """The id of a raftGroup; 0 for none. Raises CatalogError."""
        return self._settings.raft_groups.find(wanted).id if wanted is not None else 0

    async def _begin(self, subscriber: Subscriber) -> bool:
        """Let one of several programs have rows if it is its turn: from where they are worked off, as the table's log says."""
        replica = subscriber.replica
        session = self._election.session(replica.replicated.group, replica.table.id)
        if session is None or not session.serving or not is_next(self.subscribers, subscriber, session.led_for):
            return False
        subscriber.executes = True
        known = replica.copy.producers.get(offset_producer(subscriber.action))
        if known is None:
            try:
                await self._note(replica, subscriber.action, subscriber.row)
            except PenstockError as error:
                log.info("a subscription's beginning could not be kept", table=replica.name, action=subscriber.action, error=str(error))
                subscriber.executes = False
                return False
        else:
            row = max(known.sequence, subscriber.row if subscriber.executed else 0)
            subscriber.row = row if row > replica.copy.next else first_row(replica, row, None)
        await subscriber.socket.send_str(json.dumps({"type": "executes", "from": subscriber.row}))
        return True

    def _moved(self, subscriber: Subscriber) -> dict[str, Any] | None:
        """Where a subscriber has to go. One of several programs is nowhere but at the leader, because only that knows whose turn it is."""
        replica = subscriber.replica
        session = self._election.session(replica.replicated.group, replica.table.id)
        if subscriber.group and (session is None or not session.serving):
            return self._leader(replica)
        return self._elsewhere(replica)

    def _elsewhere(self, replica: Replica) -> dict[str, Any] | None:
        """Where the leader is when it is another node that is there."""
        standing = self._standing(replica)
        if not standing.leader or standing.leader in (self._settings.alias,) or standing.leader not in standing.alive:
            return None
        return self._leader(replica)

    async def _listen(self, subscriber: Subscriber) -> None:
        """What the subscriber has worked off."""
        async for message in subscriber.socket:
            if message.type is not WSMsgType.TEXT:
                continue
            row = int(json.loads(message.data)["processed"])
            if not subscriber.executes:
                continue  # what it has worked off is another one's by now
            try:
                await self._note(subscriber.replica, subscriber.action, row)
                subscriber.processed = row
                await subscriber.socket.send_str(json.dumps({"type": "processed", "row": row}))
            except PenstockError as error:
                await subscriber.socket.send_str(json.dumps({"type": "not_processed", "row": row, **error.to_dict()}))

    async def _note(self, replica: Replica, action: str, row: int) -> None:
        """Keep how far a subscription is, on whichever node leads."""
        try:
            await self._submit(replica, Offset(action, row, asyncio.get_running_loop().create_future()))
        except RemoteError as error:
            standing = self._standing(replica)
            if error.code != "E_NOT_LEADER" or standing.leader in ("", self._settings.alias):
                raise
            database, _, name = replica.name.partition(".")
            body = json.dumps({"action": action, "row": row}).encode()
            status, answer = await self._call("POST", f"{standing.url}/v1/tables/{database}/{name}/offset", body)
            if status != 200:
                raise RemoteError("the leader did not take an offset", detail=str(answer)[:200]) from error

    async def _offset(self, request: web.Request) -> web.Response:
        replica = self._asked(request, "READ")
        known = replica.copy.producers.get(offset_producer(request.query.get("action", "")))
        return web.json_response({"row": known.sequence if known is not None else -1})

    async def _set_offset(self, request: web.Request) -> web.Response:
        replica = self._asked(request, "READ")
        body = json.loads(await request.read())
        if "X-Penstock-Forwarded" in request.headers:
            await self._submit(replica, Offset(str(body["action"]), int(body["row"]), asyncio.get_running_loop().create_future()))
        else:
            await self._note(replica, str(body["action"]), int(body["row"]))
        return web.json_response({})

    async def _unsubscribe(self, request: web.Request) -> web.Response:
        """End a subscription wherever it is connected. One of another user only ADMIN on the table can end."""
        body = json.loads(await request.read())
        passed_on = "X-Penstock-Forwarded" in request.headers and request[_USER] == self._access.root
        user = str(body["user"]) if passed_on else request[_USER]
        replica = self._named(user, "READ", str(body["table"]))
        action = str(body.get("action", ""))
        found = [s for s in self.subscribers if s.replica is replica and s.action == action]
        wrong = next((s for s in found if s.group != self._group(body.get("raft_group"))), None)
        if wrong is not None:
            hint = f"unsubscribeTable(…, raftGroup={wrong.group})" if wrong.group else "unsubscribeTable without raftGroup"
            raise CatalogError(f"raftGroup of subscription {wrong.topic} is {wrong.group or 'none'}", code="E_RAFT_GROUP", hint=hint)
        if any(s.user != user for s in found):
            self._access.require(user, "ADMIN", replica.table)
        for subscriber in found:
            subscriber.cancelled = str(body.get("by", request.remote))
        replica.wake()
        ended = len(found)
        if not passed_on:
            ended += await self._unsubscribe_elsewhere(replica, body | {"user": user})
            if not ended:
                raise CatalogError(f"there is no subscription {replica.name}/{action}", code="E_NO_SUBSCRIPTION",
                                   hint="getStreamingStat lists those there are")  # fmt: skip
            if body.get("remove_offset", True) and replica.copy.producers.get(offset_producer(action)) is not None:
                await self._note(replica, action, -1)
        return web.json_response({"ended": ended})

    async def _unsubscribe_elsewhere(self, replica: Replica, body: dict[str, Any]) -> int:
        ended = 0
        for node in self._standing(replica).group.nodes:
            url = self._registry.urls.get(node)
            if url is None or node == self._settings.alias:
                continue
            try:
                status, answer = await self._call("POST", f"{url}/v1/unsubscribe", json.dumps(body).encode(), timeout=_PEER_S)
                if status == _STATUS["E_FORBIDDEN"]:
                    raise AuthError(answer["error"]["message"], code="E_FORBIDDEN", hint=answer["error"]["hint"])
                if status == 400 and answer["error"]["code"] == "E_RAFT_GROUP":
                    raise CatalogError(answer["error"]["message"], code="E_RAFT_GROUP", hint=answer["error"]["hint"])
                ended += int(answer["ended"]) if status == 200 else 0
            except RemoteError as away:
                log.info("a node was not asked about a subscription", node=node, reason=away.detail)
        return ended


def _write_of(data: bytes) -> Write:
    """A producer's message: an Arrow IPC stream whose schema says producer, sequence number and what is settled."""
    try:
        table = pa.ipc.open_stream(data).read_all()
        meta = {k.decode(): v.decode() for k, v in (table.schema.metadata or {}).items()}
        producer, sequence = meta["penstock.producer"], int(meta["penstock.seq"])
        settled = int(meta.get("penstock.settled", sequence))
        after = int(meta["penstock.after"]) if "penstock.after" in meta else None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, KeyError, ValueError) as wrong:
        raise SchemaError("this is no write", code="E_BODY", detail=str(wrong)[:200]) from None
    if not 0 < len(producer) <= 128 or sequence < 1:
        raise SchemaError("a write has a producer of at most 128 characters and a sequence number from 1 on", code="E_BODY")
    done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    return Write(producer, sequence, settled, table.replace_schema_metadata(None), len(data), done, after)

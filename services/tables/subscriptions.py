"""Rows out: subscriptions over WebSockets, how far each is, and their end.

Served from this node's own copy, so they need neither Redis nor a leader; how far a subscription
has worked off its rows is kept by whoever leads. READ on the table is asked for again as rows go
by.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from functools import partial
from http import HTTPStatus
from typing import Any

from aiohttp import WSMsgType, web

from penstock import audit, vital
from penstock.errors import AuthError, CatalogError, PenstockError, RemoteError, SchemaError
from penstock.log import get
from penstock.presence import Registry
from services.tables import filters
from services.tables.forward import Forward
from services.tables.lookup import FORWARDED, USER, Lookup
from services.tables.outlet import PROCESSED, Shared, Subscriber, first_row, pump
from services.tables.replica import Replica
from services.tables.settings import TablesSettings
from services.tables.stamp import Part
from services.tables.term import not_leader
from services.tables.turns import is_next
from services.tables.writes import Offset, offset_producer

log = get(__name__)
_PEER_S = 3.0


class Subscriptions:
    """Event loop only."""

    def __init__(
        self, settings: TablesSettings, tables: Lookup, registry: Registry, others: Forward
    ) -> None:
        self._settings = settings
        self._tables = tables
        self._registry = registry
        self._others = others
        self._shared: defaultdict[int, Shared] = defaultdict(Shared)
        self.connected: set[Subscriber] = set()

    def routes(self) -> list[web.RouteDef]:
        offset = "/v1/tables/{db}/{table}/offset"
        return [
            web.get("/v1/subscribe", self._subscribe),
            web.post("/v1/unsubscribe", self._unsubscribe),
            web.get(offset, self._offset),
            web.post(offset, self._set_offset),
        ]

    async def close(self) -> None:
        for subscriber in list(self.connected):
            await subscriber.socket.close()

    async def _subscribe(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(max_msg_size=1 << 20, compress=False, heartbeat=20.0)
        await socket.prepare(request)
        subscriber: Subscriber | None = None
        try:
            subscriber = await self._open(json.loads(await socket.receive_str()), socket, request)
        except PenstockError as error:
            if error.code == "E_FORBIDDEN":
                audit.note_refusal(request[USER], request.remote or "", error)
            await socket.send_str(json.dumps({"type": "error", **error.to_dict()}))
        except (ValueError, TypeError, KeyError) as wrong:
            bad = SchemaError("this is no subscription", code="E_BODY", detail=str(wrong)[:200])
            await socket.send_str(json.dumps({"type": "error", **bad.to_dict()}))
        if subscriber is None:
            await socket.close()
            return socket
        self.connected.add(subscriber)
        replica = subscriber.replica
        shared = self._shared[replica.table.id]
        allowed = partial(self._tables.access.require, request[USER], "READ", replica.table)
        pumping = asyncio.create_task(
            pump(
                subscriber,
                shared,
                self._settings.idle_seconds,
                lambda: self._moved(subscriber),
                allowed,
                lambda: self._begin(subscriber),
            )
        )
        listening = asyncio.create_task(self._listen(subscriber))
        try:
            await asyncio.wait({pumping, listening}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.connected.discard(subscriber)
            if subscriber.group:
                replica.wake()  # it is another one's turn
            for task in (pumping, listening):
                task.cancel()
            for result in await asyncio.gather(pumping, listening, return_exceptions=True):
                if isinstance(result, vital.FAULTS) and not isinstance(result, ConnectionError):
                    log.warning(
                        "a subscription ended",
                        table=replica.name,
                        action=subscriber.action,
                        error=repr(result)[:300],
                    )
            await socket.close()
        return socket

    async def _open(
        self, hello: dict[str, Any], socket: web.WebSocketResponse, request: web.Request
    ) -> Subscriber:
        user = request[USER]
        remote = request.remote or ""
        replica = self._tables.named(user, "READ", str(hello["table"]))
        action = str(hello.get("action", ""))
        key = str(hello["id"])
        group = self._group(hello.get("raft_group"))
        for other in self.connected:
            alone = not group or other.group != group
            if other.key == (replica.table.id, user.lower(), action) and other.id != key and alone:
                raise CatalogError(
                    f"subscription {other.topic} exists",
                    code="E_SUBSCRIPTION_EXISTS",
                    hint="choose another actionName",
                )
        offset = int(hello.get("offset", -1))
        known = self._kept(replica, action, user) if offset == PROCESSED or group else None
        processed = known.sequence if known is not None else None
        # who comes back knows its row; a node that has just started may not have read that far yet
        back = bool(hello.get("resume")) and (offset > replica.copy.next or bool(group))
        # one of several programs asks for a beginning, which there is only one of
        begun = processed if group else None
        row = (
            offset
            if back
            else begun
            if begun is not None
            else first_row(replica, offset, processed)
        )
        passes = filters.make(replica.table, hello.get("filter"))
        subscriber = Subscriber(replica, action, key, user, remote, socket, passes, row)
        if group:
            if not self._tables.session(replica).serving:
                raise not_leader(replica.name, "it is about to")
            subscriber.group = group
            subscriber.executes = False
            subscriber.executed = bool(hello.get("resume"))
        body = {
            "type": "subscribed",
            "from": row,
            "topic": subscriber.topic,
            "node": self._tables.alias,
        }
        await socket.send_str(json.dumps({**body, "leader": self._tables.leader(replica)}))
        return subscriber

    def _group(self, wanted: Any) -> int:
        """The id of a raftGroup; 0 for none. Raises CatalogError."""
        return self._settings.raft_groups.find(wanted).id if wanted is not None else 0

    async def _begin(self, subscriber: Subscriber) -> bool:
        """Let one of several programs have rows if it is its turn: from where they are worked off,
        as the table's log says.
        """
        replica = subscriber.replica
        session = self._tables.session_of(replica)
        if (
            session is None
            or not session.serving
            or not is_next(self.connected, subscriber, session.led_for)
        ):
            return False
        subscriber.executes = True
        known = self._kept(replica, subscriber.action, subscriber.user)
        if known is None:
            try:
                await self._note(
                    replica, self._place(subscriber.action, subscriber.user), subscriber.row
                )
            except PenstockError as error:
                log.info(
                    "a subscription's beginning could not be kept",
                    table=replica.name,
                    action=subscriber.action,
                    error=str(error),
                )
                subscriber.executes = False
                return False
        else:
            row = max(known.sequence, subscriber.row if subscriber.executed else 0)
            subscriber.row = row if row > replica.copy.next else first_row(replica, row, None)
        await subscriber.socket.send_str(json.dumps({"type": "executes", "from": subscriber.row}))
        return True

    def _moved(self, subscriber: Subscriber) -> dict[str, Any] | None:
        """Where a subscriber has to go. One of several programs is nowhere but at the leader,
        because only that knows whose turn it is.
        """
        replica = subscriber.replica
        session = self._tables.session_of(replica)
        if subscriber.group and (session is None or not session.serving):
            return self._tables.leader(replica)
        return self._elsewhere(replica)

    def _elsewhere(self, replica: Replica) -> dict[str, Any] | None:
        """Where the leader is when it is another node that is there."""
        standing = self._tables.standing(replica)
        if (
            not standing.leader
            or standing.leader in (self._tables.alias,)
            or standing.leader not in standing.alive
        ):
            return None
        return self._tables.leader(replica)

    async def _listen(self, subscriber: Subscriber) -> None:
        """What the subscriber has worked off."""
        async for message in subscriber.socket:
            if message.type is not WSMsgType.TEXT:
                continue
            row = int(json.loads(message.data)["processed"])
            if not subscriber.executes:
                continue  # what it has worked off is another one's by now
            try:
                await self._note(
                    subscriber.replica, self._place(subscriber.action, subscriber.user), row
                )
                subscriber.processed = row
                await subscriber.socket.send_str(json.dumps({"type": "processed", "row": row}))
            except PenstockError as error:
                await subscriber.socket.send_str(
                    json.dumps({"type": "not_processed", "row": row, **error.to_dict()})
                )

    def _place(self, action: str, user: str) -> str:
        """Return the name of the offset that *user*'s subscription has."""
        if user == self._tables.access.root:
            return offset_producer(action)
        known = self._tables.catalog.catalog.user(user)
        if known is None:
            raise AuthError(f"there is no user {user}", code="E_AUTH")
        return offset_producer(action, known.id)

    def _kept(self, replica: Replica, action: str, user: str) -> Part | None:
        """Return how far *user*'s subscription is. One of earlier versions, which noted no user,
        counts until there is one.
        """
        producers = replica.copy.producers
        return producers.get(self._place(action, user)) or producers.get(offset_producer(action))

    async def _submit(self, replica: Replica, place: str, row: int) -> None:
        kept: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._tables.session(replica).submit(Offset(place, row, kept))
        await kept

    async def _note(self, replica: Replica, place: str, row: int) -> None:
        """Keep how far a subscription is, on whichever node leads."""
        try:
            await self._submit(replica, place, row)
        except RemoteError as error:
            standing = self._tables.standing(replica)
            if error.code != "E_NOT_LEADER" or standing.leader in ("", self._tables.alias):
                raise
            database, _, name = replica.name.partition(".")
            body = json.dumps({"place": place, "row": row}).encode()
            status, answer = await self._others.call(
                "POST", f"{standing.url}/v1/tables/{database}/{name}/offset", body
            )
            if status != 200:
                raise RemoteError(
                    "the leader did not take an offset", detail=str(answer)[:200]
                ) from error

    async def _offset(self, request: web.Request) -> web.Response:
        replica = self._tables.asked(request, "READ")
        known = self._kept(replica, request.query.get("action", ""), request[USER])
        return web.json_response({"row": known.sequence if known is not None else -1})

    async def _set_offset(self, request: web.Request) -> web.Response:
        """Move an offset of the caller's own; another node passes on one of anybody."""
        replica = self._tables.asked(request, "READ")
        body = json.loads(await request.read())
        if self._passed_on(request) and "place" in body:
            await self._submit(replica, str(body["place"]), int(body["row"]))
        else:
            await self._note(
                replica, self._place(str(body["action"]), request[USER]), int(body["row"])
            )
        return web.json_response({})

    def _passed_on(self, request: web.Request) -> bool:
        """Tell whether another node of the mesh sends this."""
        return FORWARDED in request.headers and request[USER] == self._tables.access.root

    async def _unsubscribe(self, request: web.Request) -> web.Response:
        """End the caller's subscription wherever it is connected; with ADMIN on the table
        everybody's of this name.
        """
        body = json.loads(await request.read())
        passed_on = self._passed_on(request)
        user = str(body["user"]) if passed_on else request[USER]
        replica = self._tables.named(user, "READ", str(body["table"]))
        action = str(body.get("action", ""))
        named = [s for s in self.connected if s.replica is replica and s.action == action]
        everybody = self._tables.access.may(user, "ADMIN", replica.table)
        found = [s for s in named if everybody or s.user.lower() == user.lower()]
        wrong = next((s for s in found if s.group != self._group(body.get("raft_group"))), None)
        if wrong is not None:
            hint = (
                f"unsubscribeTable(…, raftGroup={wrong.group})"
                if wrong.group
                else "unsubscribeTable without raftGroup"
            )
            raise CatalogError(
                f"raftGroup of subscription {wrong.topic} is {wrong.group or 'none'}",
                code="E_RAFT_GROUP",
                hint=hint,
            )
        if passed_on and named and not found:
            self._tables.access.require(user, "ADMIN", replica.table)
        for subscriber in found:
            subscriber.cancelled = str(body.get("by", request.remote))
        replica.wake()
        ended = len(found)
        owners = {s.user for s in found}
        if not passed_on:
            ended = await self._unsubscribe_all(
                replica, body, user, ended, owners, refused=bool(named)
            )
        return web.json_response({"ended": ended, "users": sorted(owners)})

    async def _unsubscribe_all(
        self,
        replica: Replica,
        body: dict[str, Any],
        user: str,
        ended: int,
        owners: set[str],
        *,
        refused: bool,
    ) -> int:
        """Have the other nodes end it, too, and forget its offset; return how many were ended.

        Args:
            replica: of the table.
            body: what was asked.
            user: who asks.
            ended: how many were ended here.
            owners: whose those were.
            refused: there is one here that *user* may not end.
        """
        action = str(body.get("action", ""))
        elsewhere, denied = await self._unsubscribe_elsewhere(
            replica, body | {"user": user}, owners
        )
        if not ended + elsewhere:
            if refused or denied is not None:
                self._tables.access.require(user, "ADMIN", replica.table)
            hint = "getStreamingStat lists those there are"
            raise CatalogError(
                f"there is no subscription {replica.name}/{action}",
                code="E_NO_SUBSCRIPTION",
                hint=hint,
            )
        if body.get("remove_offset", True):
            users = self._tables.catalog.catalog.user
            root = self._tables.access.root
            there = {o for o in owners | {user} if o == root or users(o) is not None}
            for place in sorted(self._place(action, owner) for owner in there):
                if replica.copy.producers.get(place) is not None:
                    await self._note(replica, place, -1)
        return ended + elsewhere

    async def _unsubscribe_elsewhere(
        self, replica: Replica, body: dict[str, Any], owners: set[str]
    ) -> tuple[int, AuthError | None]:
        """Return how many subscriptions other nodes have ended, whose are added to *owners*, and a
        refusal of one of them.
        """
        ended = 0
        denied = None
        for node in self._tables.standing(replica).group.nodes:
            url = self._registry.urls.get(node)
            if url is None or node == self._tables.alias:
                continue
            try:
                status, answer = await self._others.call(
                    "POST", f"{url}/v1/unsubscribe", json.dumps(body).encode(), timeout=_PEER_S
                )
                if status == HTTPStatus.FORBIDDEN:
                    denied = AuthError(
                        answer["error"]["message"], code="E_FORBIDDEN", hint=answer["error"]["hint"]
                    )
                if status == 400 and answer["error"]["code"] == "E_RAFT_GROUP":
                    raise CatalogError(
                        answer["error"]["message"],
                        code="E_RAFT_GROUP",
                        hint=answer["error"]["hint"],
                    )
                if status == 200:
                    ended += int(answer["ended"])
                    owners.update(answer.get("users", ()))
            except RemoteError as away:
                log.info("a node was not asked about a subscription", node=node, reason=away.detail)
        return ended, denied

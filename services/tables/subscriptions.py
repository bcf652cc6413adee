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
from typing import Any

from aiohttp import WSMsgType, web

from penstock.coordination.presence import Registry
from penstock.errors import CatalogError, PenstockError, SchemaError
from penstock.runtime import audit, vital
from penstock.runtime.log import get
from services.tables import filters
from services.tables.forward import Forward
from services.tables.leadership_term import not_leader
from services.tables.lookup import USER, Lookup
from services.tables.replica import Replica
from services.tables.settings import TablesSettings
from services.tables.shared_subscription import group_id, is_next
from services.tables.subscriber import PROCESSED, SharedFrames, Subscriber, first_row, pump
from services.tables.subscription_offsets import SubscriptionOffsets
from services.tables.unsubscription import Unsubscription

log = get(__name__)


class Subscriptions:
    """Event loop only."""

    def __init__(
        self, settings: TablesSettings, tables: Lookup, registry: Registry, others: Forward
    ) -> None:
        self._settings = settings
        self._tables = tables
        self._shared: defaultdict[int, SharedFrames] = defaultdict(SharedFrames)
        self.connected: set[Subscriber] = set()
        self._offsets = SubscriptionOffsets(tables, others)
        self._unsubscription = Unsubscription(
            settings, tables, registry, others, self._offsets, self.connected
        )

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/subscribe", self._subscribe),
            *self._unsubscription.routes(),
            *self._offsets.routes(),
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
        await self._serve(subscriber, request[USER])
        return socket

    async def _serve(self, subscriber: Subscriber, user: str) -> None:
        """Send rows to a subscriber, and hear how far it is, until one of both ends."""
        self.connected.add(subscriber)
        replica = subscriber.replica
        pumping = asyncio.create_task(
            pump(
                subscriber,
                self._shared[replica.table.id],
                self._settings.idle_seconds,
                lambda: self._next_node(subscriber),
                partial(self._tables.access.require, user, "READ", replica.table),
                lambda: self._begin(subscriber),
            )
        )
        listening = asyncio.create_task(self._listen(subscriber))
        try:
            await asyncio.wait({pumping, listening}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.connected.discard(subscriber)
            for task in (pumping, listening):
                task.cancel()
            ended = await asyncio.gather(pumping, listening, return_exceptions=True)
            if subscriber.group:
                replica.wake()  # it is another one's turn
            for result in ended:
                if isinstance(result, vital.FAULTS) and not isinstance(result, ConnectionError):
                    log.warning(
                        "a subscription ended",
                        table=replica.name,
                        action=subscriber.action,
                        error=repr(result)[:300],
                    )
            await subscriber.socket.close()

    async def _open(
        self, hello: dict[str, Any], socket: web.WebSocketResponse, request: web.Request
    ) -> Subscriber:
        user = request[USER]
        replica = self._tables.by_name(user, "READ", str(hello["table"]))
        action = str(hello.get("action", ""))
        key = str(hello["id"])
        group = group_id(self._settings, hello.get("raft_group"))
        self._require_free((replica.table.id, user.lower(), action), key, group)
        row = self._first_row(replica, hello, user, group)
        passes = filters.make(replica.table, hello.get("filter"))
        subscriber = Subscriber(
            replica, action, key, user, request.remote or "", socket, passes, row
        )
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

    def _require_free(self, name: tuple[int, str, str], key: str, group: int) -> None:
        """Refuse a name that another subscription has, unless both are of one raftGroup.

        Raises:
            CatalogError: `E_SUBSCRIPTION_EXISTS`.
        """
        for other in self.connected:
            alone = not group or other.group != group
            if other.key == name and other.id != key and alone:
                raise CatalogError(
                    f"subscription {other.topic} exists",
                    code="E_SUBSCRIPTION_EXISTS",
                    hint="choose another action_name",
                )

    def _first_row(self, replica: Replica, hello: dict[str, Any], user: str, group: int) -> int:
        """Return the row at which a subscription begins, or goes on. Raises PenstockError."""
        offset = int(hello.get("offset", -1))
        known = None
        if offset == PROCESSED or group:
            known = self._offsets.find(replica, str(hello.get("action", "")), user)
        processed = known.sequence if known is not None else None
        # who comes back knows its row; a node that has just started may not have read that far yet
        if hello.get("resume") and (offset > replica.copy.next or group):
            return offset
        # one of several programs asks for a beginning, which there is only one of
        if group and processed is not None:
            return processed
        return first_row(replica, offset, processed)

    async def _begin(self, subscriber: Subscriber) -> bool:
        """Let one of several programs have rows if it is its turn: from where they are worked off,
        as the table's log says.
        """
        replica = subscriber.replica
        session = self._tables.session_of(replica)
        if (
            session is None
            or not session.serving
            or not is_next(self.connected, subscriber, session.leadership.led_for)
        ):
            return False
        subscriber.executes = True
        known = self._offsets.find(replica, subscriber.action, subscriber.user)
        if known is None:
            try:
                await self._offsets.note(
                    replica, self._offsets.name(subscriber.action, subscriber.user), subscriber.row
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

    def _next_node(self, subscriber: Subscriber) -> dict[str, Any] | None:
        """Return where a subscriber has to go, if it has to. One of several programs is nowhere but
        at the leader, because only that knows whose turn it is.
        """
        replica = subscriber.replica
        session = self._tables.session_of(replica)
        if subscriber.group and (session is None or not session.serving):
            return self._tables.leader(replica)
        return self._elsewhere(replica)

    def _elsewhere(self, replica: Replica) -> dict[str, Any] | None:
        """Return where the leader is when it is another node that is there."""
        standing = self._tables.standing(replica)
        if standing.leader == self._tables.alias or standing.leader not in standing.alive:
            return None
        return self._tables.leader(replica) if standing.leader else None

    async def _listen(self, subscriber: Subscriber) -> None:
        """What the subscriber has worked off."""
        async for message in subscriber.socket:
            if message.type is not WSMsgType.TEXT:
                continue
            row = int(json.loads(message.data)["processed"])
            if not subscriber.executes:
                continue  # what it has worked off is another one's by now
            try:
                await self._offsets.note(
                    subscriber.replica, self._offsets.name(subscriber.action, subscriber.user), row
                )
                subscriber.processed = row
                await subscriber.socket.send_str(json.dumps({"type": "processed", "row": row}))
            except PenstockError as error:
                await subscriber.socket.send_str(
                    json.dumps({"type": "not_processed", "row": row, **error.to_dict()})
                )

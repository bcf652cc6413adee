"""`/ws`: subscriptions over WebSocket.

A client sends {"action": "subscribe", "id": "a", "stream": "db.name" | "table": "db.name", "what":
"rows" | "events", "tables": [child, …], "from": "latest" | "earliest" | token, "limit": n, "exact":
true} and gets {"id", "type": "subscribed", "token"}, then {"id", "type": "rows" | "events", …,
"token"}. The token of the last message it has handled continues exactly behind it, on any notifier.
{"action": "unsubscribe", "id"} ends one. A page that could not send who it is begins with
{"action": "login", "token"}. Errors are {"id", "type": "error", "code", "message", …}
and cost only their subscription.

A slow client is waited for by its own task alone: it reads from memory or Kafka at its own pace,
nothing is queued for it.
"""

from __future__ import annotations

import asyncio
import json
import weakref
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import redis
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from penstock.auth.access import Access
from penstock.auth.cookies import CookieSessions
from penstock.auth.login import Login
from penstock.catalog.apply import Changed
from penstock.catalog.model import Database
from penstock.catalog.reader import CatalogReader
from penstock.errors import AuthError, BusError, PenstockError
from penstock.feeds.feed import Feed, Feeds, Listening, work_on
from penstock.feeds.slices import Slice
from penstock.repartition import readers
from penstock.runtime import audit, vital
from penstock.runtime.clock import Clock, SystemClock, milliseconds
from penstock.runtime.health import Health
from penstock.runtime.limits import Open
from penstock.runtime.log import get
from services.notifier import push_spans
from services.notifier.admission import HubAdmission, HubCaller
from services.notifier.metrics import HubMetrics
from services.notifier.resolver import (
    BadHubRequest,
    Subscription,
    SubscriptionResolver,
    parse_request,
)
from services.notifier.settings import NotifierSettings
from services.notifier.subscription import WorkCount

log = get(__name__)


class Hub:
    """All clients of one notifier."""

    def __init__(
        self,
        settings: NotifierSettings,
        catalog: CatalogReader,
        health: Health,
        client: redis.Redis,
        clock: Clock | None = None,
    ) -> None:
        """
        Args:
            client: knows the sessions of browsers.
            clock: for what expires; None: the machine's.
        """
        self._settings = settings
        self._catalog = catalog
        self._feeds = Feeds(settings.kafka_bootstrap, catalog, memory=settings.feed_bytes)
        self._connected = 0
        self._clock = clock or SystemClock()
        login = Login(
            lambda: catalog.catalog,
            settings.user,
            settings.root_password,
            self._clock,
            settings.signing_key,
        )
        self._admission = HubAdmission(
            login,
            CookieSessions(client, login, self._clock),
            settings.origins,
            settings.login_seconds,
        )
        self._open = Open(0)
        self._access = Access(lambda: catalog.catalog, settings.user)
        self._metrics = HubMetrics(health.registry)
        work = WorkCount(self._metrics.decoded.inc, self._metrics.written.inc)
        self._resolver = SubscriptionResolver(catalog, self._access, self._feeds, work)
        self._callers: weakref.WeakKeyDictionary[ServerConnection, HubCaller]
        self._callers = weakref.WeakKeyDictionary()

    def hear(self, changes: list[Changed]) -> None:
        """The catalog has changed. A topic may have ended: nothing comes there that would wake who
        listens.
        """
        if any(isinstance(change.new, Database) for change in changes):
            self._feeds.wake()

    # ---------------------------------------------------------------- connections

    async def admit(self, connection: ServerConnection, request: Request) -> Response | None:
        """Before the handshake: path, origin, credentials."""
        if request.path.partition("?")[0] != "/ws":
            return connection.respond(HTTPStatus.NOT_FOUND, "subscriptions live at /ws\n")
        remote = _remote(connection)
        try:
            caller = await self._admission.of_handshake(request.headers, remote)
            if caller is not None:
                self._callers[connection] = caller
        except PenstockError as error:
            return _refuse(connection, error)
        if self._open.count(remote) >= self._settings.max_clients_per_address:
            words = (
                "E_OVERLOAD: as many clients of one address as"
                " PENSTOCK_NOTIFIER_MAX_CLIENTS_PER_ADDRESS says\n"
            )
            return connection.respond(HTTPStatus.TOO_MANY_REQUESTS, words)
        if self._connected >= self._settings.max_clients:
            return connection.respond(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "E_OVERLOAD: as many clients as PENSTOCK_NOTIFIER_MAX_CLIENTS says\n",
            )
        return None

    async def serve(self, connection: ServerConnection) -> None:
        """One client, until it leaves."""
        remote = _remote(connection)
        self._open.enter(remote)
        self._connected += 1
        self._metrics.clients.set(self._connected)
        try:
            if connection not in self._callers:
                caller = await self._admission.of_first_message(connection, remote)
                if caller is None:
                    return
                self._callers[connection] = caller
            await self._listen(connection, self._callers[connection])
        except ConnectionClosed:
            pass  # it left
        finally:
            self._open.leave(remote)
            self._connected -= 1
            self._metrics.clients.set(self._connected)

    async def _listen(self, connection: ServerConnection, caller: HubCaller) -> None:
        """Do what a client asks, until it leaves, or its token or session ends."""
        tasks: dict[str, asyncio.Task[None]] = {}
        watching = None
        if caller.ends:
            watching = asyncio.create_task(self._admission.watch(connection, caller))
        try:
            async for text in connection:
                await self._handle(connection, text, tasks)
        finally:
            running = [*tasks.values(), *([watching] if watching is not None else [])]
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _handle(
        self, connection: ServerConnection, text: str | bytes, tasks: dict[str, asyncio.Task[None]]
    ) -> None:
        request: dict[str, Any] = {}
        try:
            request = parse_request(text)
            action = request.get("action")
            if action == "unsubscribe":
                await _unsubscribe(connection, request, tasks)
            elif action == "subscribe":
                await self._subscribe(connection, request, tasks)
            else:
                raise BadHubRequest(f"no such action: {action}", hint="subscribe or unsubscribe")
        except PenstockError as error:
            if error.code == "E_FORBIDDEN":
                audit.note_refusal(self._callers[connection].user, _remote(connection), error)
            await _send(connection, {"id": _key(request), "type": "error", **error.to_dict()})

    async def _subscribe(
        self,
        connection: ServerConnection,
        request: dict[str, Any],
        tasks: dict[str, asyncio.Task[None]],
    ) -> None:
        key = _key(request)
        self._require_room(key, tasks)
        user = self._callers[connection].user
        resolved = await self._resolver.resolve(request, user)
        token = resolved.subscription.cursor.token()
        await _send(connection, {"id": key, "type": "subscribed", "token": token})
        tasks[key] = asyncio.create_task(
            self._pump(
                connection,
                key,
                resolved.feed,
                resolved.subscription,
                lambda: self._access.require(user, "READ", resolved.subject),
            )
        )

    def _require_room(self, key: str, tasks: dict[str, asyncio.Task[None]]) -> None:
        """Forget subscriptions that have ended. Raises BadHubRequest: *key* cannot be one more."""
        for ended in [name for name, task in tasks.items() if task.done()]:
            del tasks[ended]
        if key in tasks:
            raise BadHubRequest(
                f'subscription "{key}" exists', hint="choose another id or unsubscribe first"
            )
        if len(tasks) >= self._settings.max_subscriptions:
            raise BadHubRequest(
                f"{len(tasks)} subscriptions on one connection are the most",
                code="E_OVERLOAD",
                hint="end one, open another connection, or raise"
                " PENSTOCK_NOTIFIER_MAX_SUBSCRIPTIONS",
            )

    # ---------------------------------------------------------------- subscriptions

    async def _pump(
        self,
        connection: ServerConnection,
        key: str,
        feed: Feed,
        subscription: Subscription,
        permit: Callable[[], None],
    ) -> None:
        """Give one subscription everything behind its cursor, for as long as it lives and *permit*
        raises nothing.
        """
        listening = await self._feeds.listen(feed)
        try:
            while True:
                arrived = listening.arrival()
                quiet = await self._give_pending(connection, key, listening, subscription, permit)
                catalog = self._catalog.catalog
                after = readers.turn(catalog, listening.feed.topic, subscription.cursor)
                if after is not None:
                    topic, subscription.cursor = readers.resume(
                        self._catalog.catalog, listening.feed.topic, after
                    )
                    listening.close()
                    listening = await self._feeds.listen(await self._feeds.of(topic))
                elif quiet:
                    await arrived.wait()
        except (ConnectionClosed, asyncio.CancelledError):
            raise
        except PenstockError as error:
            await _send(connection, {"id": key, "type": "error", **error.to_dict()})
        except vital.FAULTS as error:
            log.exception("subscription ended")
            await _send(
                connection,
                {
                    "id": key,
                    "type": "error",
                    "code": "E_INTERNAL",
                    "message": f"the subscription ended: {type(error).__name__}",
                },
            )
        finally:
            listening.close()

    async def _give_pending(
        self,
        connection: ServerConnection,
        key: str,
        listening: Listening,
        subscription: Subscription,
        permit: Callable[[], None],
    ) -> bool:
        """Send what lies behind the cursor in each partition; return True if that is all there is
        for now.
        """
        quiet = True
        ends = self._catalog.catalog.ends(listening.feed.topic)
        for partition, offset in list(subscription.cursor.offsets.items()):
            end = ends.get(partition)
            if end is not None and offset > end:
                continue
            pieces, near = await listening.since(partition, offset, end)
            quiet = quiet and near
            permit()  # rights may have been revoked since
            for piece in pieces:
                await self._give(connection, key, subscription, piece)
        return quiet

    async def _give(
        self, connection: ServerConnection, key: str, subscription: Subscription, piece: Slice
    ) -> None:
        message = await work_on(subscription.take, piece)
        if message is not None:
            skipped = {"skipped": message.skipped} if message.skipped else {}
            head = json.dumps(
                {"id": key, "type": message.kind, "token": subscription.cursor.token(), **skipped}
            )
            spans = push_spans.begin(message)
            await connection.send(f'{head[:-1]},"{message.kind}":{message.payload}}}')
            push_spans.finish(spans)
            self._metrics.sent.labels(message.kind).inc()
            self._metrics.delay.observe(
                max(milliseconds(self._clock) - int(piece.batch.timestamps[-1]), 0) / 1000
            )
        else:
            await asyncio.sleep(0)  # much that is not for this one must not keep the loop

    def close(self) -> None:
        self._feeds.stop()


def _key(request: dict[str, Any]) -> str:
    return str(request.get("id", ""))


async def _unsubscribe(
    connection: ServerConnection,
    request: dict[str, Any],
    tasks: dict[str, asyncio.Task[None]],
) -> None:
    key = _key(request)
    task = tasks.pop(key, None)
    if task is not None:
        task.cancel()
    await _send(connection, {"id": key, "type": "unsubscribed"})


async def _send(connection: ServerConnection, message: dict[str, Any]) -> None:
    await connection.send(json.dumps(message))


def _remote(connection: ServerConnection) -> str:
    return str((connection.remote_address or [""])[0])


def _refuse(connection: ServerConnection, error: PenstockError) -> Response:
    """Return the answer to a handshake that is refused."""
    status = HTTPStatus.TOO_MANY_REQUESTS
    if isinstance(error, AuthError):
        status = HTTPStatus.UNAUTHORIZED if error.code == "E_AUTH" else HTTPStatus.FORBIDDEN
    elif isinstance(error, BusError):
        status = HTTPStatus.SERVICE_UNAVAILABLE
    response = connection.respond(status, f"{error.code}: {error.message}\n")
    if status is HTTPStatus.UNAUTHORIZED:
        response.headers["WWW-Authenticate"] = 'Basic realm="penstock"'
    return response

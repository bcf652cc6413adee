"""`/ws`: subscriptions over WebSocket.

A client sends {"action": "subscribe", "id": "a", "stream": "db.name" | "table": "db.name", "what":
"rows" | "events", "tables": [child, …], "from": "latest" | "earliest" | token} and gets {"id",
"type": "subscribed", "token"}, then {"id", "type": "rows" | "events", …, "token"}. The token of the
last message it has handled continues exactly behind it, on any notifier. {"action": "unsubscribe",
"id"} ends one. Errors are {"id", "type": "error", "code", "message", …} and cost only their
subscription.

A slow client is waited for by its own task alone: it reads from memory or Kafka at its own pace,
nothing is queued for it.
"""

from __future__ import annotations

import asyncio
import json
import weakref
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, TypeVar

from prometheus_client import Counter, Gauge, Histogram
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from penstock import audit, names, turning, vital
from penstock.access import Access
from penstock.catalog.model import Database, StreamEntry, Table
from penstock.catalog.reader import CatalogReader, Changed
from penstock.clock import SystemClock, milliseconds
from penstock.cursor import Cursor, TokenError
from penstock.errors import AuthError, CatalogError, PenstockError
from penstock.feed import Feed, Feeds, Slice, work_on
from penstock.health import SECONDS, Health
from penstock.limits import Open
from penstock.log import get
from penstock.login import Login
from services.notifier.settings import NotifierSettings
from services.notifier.subscription import EventSubscription, RowSubscription

log = get(__name__)
Subscription = RowSubscription | EventSubscription
T = TypeVar("T")


class BadRequest(PenstockError):
    code = "E_REQUEST"


class Hub:
    """All clients of one notifier."""

    def __init__(self, settings: NotifierSettings, catalog: CatalogReader, health: Health) -> None:
        self._settings = settings
        self._catalog = catalog
        self._feeds = Feeds(settings.kafka_bootstrap, catalog, memory=settings.feed_bytes)
        self._connected = 0
        self._clock = SystemClock()
        self._login = Login(
            lambda: catalog.catalog,
            settings.user,
            settings.root_password,
            self._clock,
            settings.signing_key,
        )
        self._open = Open(0)
        self._access = Access(lambda: catalog.catalog, settings.user)
        self._users: weakref.WeakKeyDictionary[ServerConnection, str] = weakref.WeakKeyDictionary()
        self._clients = Gauge(
            "penstock_notifier_clients", "Connected clients", registry=health.registry
        )
        self._sent = Counter(
            "penstock_notifier_messages",
            "Messages sent to clients",
            ["kind"],
            registry=health.registry,
        )
        self._delay = Histogram(
            "penstock_notifier_delay_seconds",
            "From the newest record of a message in the log until it is sent",
            buckets=SECONDS,
            registry=health.registry,
        )

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
        origin = request.headers.get("Origin")
        if origin is not None and origin not in self._settings.origins:
            return connection.respond(
                HTTPStatus.FORBIDDEN,
                "E_ORIGIN: pages of this origin may not connect; see PENSTOCK_NOTIFIER_ORIGINS\n",
            )
        try:
            given = request.headers.get("Authorization")
            remote = _remote(connection)
            user = await self._login.admit(given, where=remote)
            self._users[connection] = user
        except AuthError as wrong:
            response = connection.respond(HTTPStatus.UNAUTHORIZED, f"E_AUTH: {wrong.message}\n")
            response.headers["WWW-Authenticate"] = 'Basic realm="penstock"'
            return response
        except PenstockError as later:
            return connection.respond(
                HTTPStatus.TOO_MANY_REQUESTS, f"{later.code}: {later.message}\n"
            )
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
        tasks: dict[str, asyncio.Task[None]] = {}
        remote = _remote(connection)
        self._open.enter(remote)
        self._connected += 1
        self._clients.set(self._connected)
        try:
            async for text in connection:
                await self._handle(connection, text, tasks)
        except ConnectionClosed:
            pass
        finally:
            self._open.leave(remote)
            self._connected -= 1
            self._clients.set(self._connected)
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)

    async def _handle(
        self, connection: ServerConnection, text: str | bytes, tasks: dict[str, asyncio.Task[None]]
    ) -> None:
        request: dict[str, Any] = {}
        try:
            request = _request(text)
            key = str(request.get("id", ""))
            if request.get("action") == "unsubscribe":
                task = tasks.pop(key, None)
                if task is not None:
                    task.cancel()
                await _send(connection, {"id": key, "type": "unsubscribed"})
                return
            if request.get("action") != "subscribe":
                raise BadRequest(
                    f"no such action: {request.get('action')}", hint="subscribe or unsubscribe"
                )
            if key in tasks and not tasks[key].done():
                raise BadRequest(
                    f'subscription "{key}" exists', hint="choose another id or unsubscribe first"
                )
            if len(tasks) >= self._settings.max_subscriptions:
                raise BadRequest(
                    f"more than {self._settings.max_subscriptions} subscriptions on one connection",
                    code="E_OVERLOAD",
                )
            user = self._users[connection]
            feed, subscription, subject = await self._prepare(request, user)
            await _send(
                connection, {"id": key, "type": "subscribed", "token": subscription.cursor.token()}
            )
            tasks[key] = asyncio.create_task(
                self._pump(
                    connection,
                    key,
                    feed,
                    subscription,
                    lambda: self._access.require(user, "READ", subject),
                )
            )
        except PenstockError as error:
            if error.code == "E_FORBIDDEN":
                audit.note_refusal(self._users[connection], _remote(connection), error)
            await _send(
                connection, {"id": str(request.get("id", "")), "type": "error", **error.to_dict()}
            )

    # ---------------------------------------------------------------- subscriptions

    async def _prepare(
        self, request: dict[str, Any], user: str
    ) -> tuple[Feed, Subscription, StreamEntry | Table]:
        """Resolve what is asked for, whether *user* may read it, and where it begins."""
        what = request.get("what", "rows")
        tables = request.get("tables")
        if tables is not None and (
            not isinstance(tables, list) or not all(isinstance(t, str) for t in tables)
        ):
            raise BadRequest("tables must be a list of child-table names")
        if what == "events":
            stream = await self._known(lambda: self._stream(str(request.get("stream", "")), user))
            if stream.plan.notify is None:
                raise BadRequest(
                    f'stream "{stream.name}" makes no window events',
                    code="E_NO_EVENTS",
                    hint="create it with NOTIFY ON ('WINDOW_OPEN', 'WINDOW_CLOSE')",
                )
            feed = await self._feeds.of(names.EVENTS)
            return (
                feed,
                EventSubscription(await _cursor(_start(request), feed), stream.id, tables),
                stream,
            )
        if what != "rows":
            raise BadRequest(f"what is rows or events, not {what}")
        table = await self._known(lambda: self._table(request, user))
        source = self._stream(str(request["stream"]), user) if "stream" in request else None
        # READ on a stream goes with it to its own result table only
        subject = source if source is not None and table.result_of == source.id else table
        if tables is None and request.get("_child"):
            tables = [request["_child"]]
        feed, cursor = await self._place(request, table)
        return (
            feed,
            RowSubscription(cursor, lambda: self._catalog.catalog.table_by_id(table.id), tables),
            subject,
        )

    async def _known(self, look: Callable[[], T]) -> T:
        """What *look* finds, also when it was made or granted just now and that has not come here
        yet. Raises what *look* does.
        """
        try:
            return look()
        except (
            CatalogError,
            AuthError,
        ):  # who has no right on the database is not told that there is no such table
            await asyncio.to_thread(self._catalog.catch_up)
            return look()

    async def _place(self, request: dict[str, Any], table: Table) -> tuple[Feed, Cursor]:
        """The topic, of those that the table's database has had, in which a subscription begins,
        and where. Raises TokenError.
        """
        catalog = self._catalog.catalog
        start = _start(request)
        topic = table.topic
        if isinstance(start, Cursor):
            topic, start = turning.resume(catalog, topic, start)
        elif start == "earliest":
            topic = turning.earliest(catalog, topic)
        feed = await self._feeds.of(topic)
        return feed, await _cursor(start, feed)

    def _stream(self, name: str, user: str) -> StreamEntry:
        database, _, plain = name.rpartition(".")
        entry = self._catalog.catalog.stream(database, plain)
        if entry is not None:
            self._access.require(user, "READ", entry)
        else:
            self._access.require_named(user, "READ", database, plain)
            raise CatalogError(
                f'there is no stream "{name}"',
                code="E_STREAM_NOT_EXIST",
                hint="write database.stream; SHOW STREAMS lists them",
            )
        return entry

    def _table(self, request: dict[str, Any], user: str) -> Table:
        """The table asked for: a stream's result, a supertable, a plain table or a child table."""
        catalog = self._catalog.catalog
        if "stream" in request:
            stream = self._stream(str(request["stream"]), user)
            target = stream.plan.target
            table = catalog.table(target.database, target.table)
            if table is not None and table.result_of != stream.id:
                self._access.require(user, "READ", table)
        else:
            database, _, name = str(request.get("table", "")).rpartition(".")
            table = catalog.table(database, name)
            child = catalog.child(database, name) if table is None else None
            if child is not None:
                request["_child"] = child.name
                table = catalog.table_by_id(child.stable_id)
            if table is not None:
                self._access.require(user, "READ", table, f"{database}.{name}")
            else:
                self._access.require_named(user, "READ", database, name)
        if table is None:
            raise CatalogError(
                f'there is no table "{request.get("table") or request.get("stream")}"',
                code="E_TABLE_NOT_EXIST",
                hint="write database.table",
            )
        return table

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
                quiet = True
                ends = self._catalog.catalog.ends(listening.feed.topic)
                for partition, offset in list(subscription.cursor.offsets.items()):
                    if offset > ends.get(partition, offset):
                        continue
                    pieces, near = await listening.since(partition, offset, ends.get(partition))
                    quiet = quiet and near
                    permit()  # rights may have been revoked since
                    for piece in pieces:
                        await self._give(connection, key, subscription, piece)
                if (
                    after := turning.turn(
                        self._catalog.catalog, listening.feed.topic, subscription.cursor
                    )
                ) is not None:
                    topic, subscription.cursor = turning.resume(
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

    async def _give(
        self, connection: ServerConnection, key: str, subscription: Subscription, piece: Slice
    ) -> None:
        message = await work_on(subscription.take, piece)
        if message is not None:
            head = json.dumps(
                {"id": key, "type": message.kind, "token": subscription.cursor.token()}
            )
            await connection.send(f'{head[:-1]},"{message.kind}":{message.payload}}}')
            self._sent.labels(message.kind).inc()
            self._delay.observe(
                max(milliseconds(self._clock) - int(piece.batch.timestamps[-1]), 0) / 1000
            )
        else:
            await asyncio.sleep(0)  # much that is not for this one must not keep the loop

    def close(self) -> None:
        self._feeds.stop()


def _start(request: dict[str, Any]) -> str | Cursor:
    """Where a subscription asks to begin: `latest`, `earliest` or a token's place. Raises
    TokenError when it sends none of these.
    """
    start = str(request.get("from", "latest"))
    return start if start in ("latest", "earliest") else Cursor.from_token(start)


async def _cursor(start: str | Cursor, feed: Feed) -> Cursor:
    """Where that is in a topic. Raises TokenError when it is in none like this one."""
    if not isinstance(start, Cursor):
        return Cursor(feed.ends() if start == "latest" else feed.beginnings())
    if not _within(start, feed.ends()) and not _within(
        start, await asyncio.get_running_loop().run_in_executor(None, feed.log_ends)
    ):
        raise TokenError(
            "the token points past the end of the log",
            hint="it is of another table, or the database was made anew",
        )
    missing = {p: o for p, o in feed.beginnings().items() if p not in start.offsets}
    start.offsets.update(missing)
    return start


def _within(cursor: Cursor, ends: dict[int, int]) -> bool:
    return all(p in ends and 0 <= offset <= ends[p] for p, offset in cursor.offsets.items())


def _request(text: str | bytes) -> dict[str, Any]:
    try:
        request = json.loads(text)
    except ValueError as error:
        raise BadRequest("a message must be a JSON object", detail=str(error)) from None
    if not isinstance(request, dict):
        raise BadRequest("a message must be a JSON object")
    return {k: v for k, v in request.items() if not k.startswith("_")}


async def _send(connection: ServerConnection, message: dict[str, Any]) -> None:
    await connection.send(json.dumps(message))


def _remote(connection: ServerConnection) -> str:
    return str((connection.remote_address or [""])[0])

"""`/link`: what other deployments (and clients) ask of this one, many channels over one WebSocket.

A channel begins with {"ch": n, "op": …}:
    information                               who is here, which queries and views describe   table,
    database                columns and key query      sql, database, timezone        frames of
    rows, then `end` subscribe  sql, database, from, credit    `subscribed` with a token, then
    frames of rows, each with the token that continues behind it append     table, database,
    producer      `opened`; frames {"seq"} with rows in, an `ack` for each out credit n, close
    about a channel that is open
A parameter that this build does not know is refused by name, never left out. An error ends its
channel only. A slow reader is waited for by its own channel: nothing is queued for it beyond the
credit it gave.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import pyarrow as pa
from prometheus_client import Counter, Gauge, Histogram
from sqlglot import exp
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from penstock import audit, turning, vital
from penstock.access import Access, visible
from penstock.arrow_reader import INLINE_BYTES
from penstock.catalog.model import External, Right, Table
from penstock.catalog.reader import CatalogReader
from penstock.catalog.view import Catalog
from penstock.clock import SystemClock
from penstock.cursor import Cursor
from penstock.errors import AuthError, CatalogError, PenstockError, RemoteError, SchemaError
from penstock.feed import SMALL, Feed, Feeds, work_on
from penstock.health import SECONDS, Health
from penstock.link import external
from penstock.link.description import Description, require_log
from penstock.link.frames import (
    CREDIT,
    ORIGIN_HEADER,
    PATH,
    VERSION,
    VERSION_HEADER,
    pack,
    rows_of,
    split,
)
from penstock.link.selection import point_at, source_of
from penstock.log import get
from penstock.login import Login
from penstock.reach import Outbound
from penstock.sql import parse
from penstock.sql.statements import Query
from services.federation import relay, stored
from services.federation.appenders import AnyAppender, Appenders
from services.federation.reading import StoreReader
from services.federation.scope import Scope
from services.federation.settings import FederationSettings
from services.federation.subscription import Out, Subscription, begin

T = TypeVar("T")
log = get(__name__)
#: frames of an append that may wait to be written
_FRAMES = 64
#: a quiet subscription says this often how far it has read
_TOKEN_SECONDS = 1.0
#: what each operation may be asked
_PARAMETERS: dict[str, frozenset[str]] = {
    "information": frozenset(),
    "describe": frozenset({"table", "database", "query", "serial"}),
    "query": frozenset({"sql", "database", "timezone", "positions"}),
    "subscribe": frozenset(
        {"sql", "database", "from", "positions", "cycles", "timezone", "query", "serial"}
    ),
    "append": frozenset({"table", "database", "producer"}),
}
#: what a request of any operation may have beside its parameters
_ENVELOPE = frozenset({"ch", "op", "credit"})


class BadRequest(RemoteError):
    code = "E_REQUEST"


@dataclass
class _Channel:
    """State of one channel. `credit`: frames that its reader still takes."""

    number: int
    task: asyncio.Task[None] | None = None
    credit: int = CREDIT
    more: asyncio.Event = field(default_factory=asyncio.Event)
    appender: AnyAppender | None = None
    frames: asyncio.Queue[tuple[dict[str, Any], Any]] = field(default_factory=asyncio.Queue)

    async def take_credit(self) -> None:
        while self.credit <= 0:
            self.more.clear()
            await self.more.wait()
        self.credit -= 1


@dataclass(frozen=True)
class _UnderWay:
    """Rows that came under *number* at *came* (monotonic seconds), on their way into the log."""

    number: object
    came: float
    written: asyncio.Future[int]


class Doorway:
    """All links of this process."""

    def __init__(
        self,
        settings: FederationSettings,
        catalog: CatalogReader,
        health: Health,
        store: StoreReader,
        appenders: Appenders,
        information: Callable[[Catalog], dict[str, Any]],
        born: Callable[[int, str], bool],
    ) -> None:
        """*born*: whether rows made a child table of this name known, by the supertable's id.
        Blocks.
        """
        self._settings = settings
        self._catalog = catalog
        self._store = store
        self._appenders = appenders
        self._information = information
        self._born = born
        self._feeds = Feeds(settings.kafka_bootstrap, catalog, memory=settings.feed_bytes)
        self._connected = 0
        self._login = Login(
            lambda: catalog.catalog,
            settings.user,
            settings.root_password,
            SystemClock(),
            settings.signing_key,
        )
        self._access = Access(lambda: catalog.catalog, settings.user)
        self._outbound = Outbound(settings, self._access)
        #: who each link logged in as
        self._users: WeakKeyDictionary[ServerConnection, str] = WeakKeyDictionary()
        self._links = Gauge(
            "penstock_federation_links",
            "Links that others have open here",
            registry=health.registry,
        )
        self._rows_out = Counter(
            "penstock_federation_sent_rows", "Rows sent over links", registry=health.registry
        )
        self._rows_in = Counter(
            "penstock_federation_received_rows",
            "Rows taken in over links",
            registry=health.registry,
        )
        self._took = Histogram(
            "penstock_federation_ack_seconds",
            "From rows on a link until it is told that they are in the log",
            buckets=SECONDS,
            registry=health.registry,
        )

    # ---------------------------------------------------------------- links

    async def admit(self, connection: ServerConnection, request: Request) -> Response | None:
        """Before the handshake: path, origin, credentials, version."""
        if request.path.partition("?")[0] != PATH:
            return connection.respond(HTTPStatus.NOT_FOUND, f"links live at {PATH}\n")
        if request.headers.get("Origin") is not None:
            return connection.respond(
                HTTPStatus.FORBIDDEN, "E_ORIGIN: no page of a browser may open a link\n"
            )
        if (
            self._outbound.own.identity
            and request.headers.get(ORIGIN_HEADER) == self._outbound.own.identity
        ):
            return connection.respond(
                HTTPStatus.MISDIRECTED_REQUEST,
                "E_EXTERNAL_HOST: the link leads back to where it comes from\n",
            )
        try:
            given = request.headers.get("Authorization")
            user = await self._login.admit(given, where=_remote(connection))
            self._users[connection] = user
        except AuthError as wrong:
            response = connection.respond(HTTPStatus.UNAUTHORIZED, f"E_AUTH: {wrong.message}\n")
            response.headers["WWW-Authenticate"] = 'Basic realm="penstock"'
            return response
        except PenstockError as later:
            return connection.respond(
                HTTPStatus.TOO_MANY_REQUESTS, f"{later.code}: {later.message}\n"
            )
        if request.headers.get(VERSION_HEADER, str(VERSION)) != str(VERSION):
            return connection.respond(
                HTTPStatus.UPGRADE_REQUIRED, f"E_LINK_VERSION: this side speaks version {VERSION}\n"
            )
        if self._connected >= self._settings.max_links:
            return connection.respond(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "E_OVERLOAD: as many links as PENSTOCK_FEDERATION_MAX_LINKS says\n",
            )
        return None

    async def serve(self, connection: ServerConnection) -> None:
        """One link, until it ends."""
        channels: dict[int, _Channel] = {}
        self._connected += 1
        self._links.set(self._connected)
        log.info("link opened", remote=_remote(connection))
        try:
            async for data in connection:
                await self._handle(connection, data, channels)
        except ConnectionClosed:
            pass
        finally:
            self._connected -= 1
            self._links.set(self._connected)
            tasks = [c.task for c in channels.values() if c.task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _handle(
        self, connection: ServerConnection, data: str | bytes, channels: dict[int, _Channel]
    ) -> None:
        number = 0
        try:
            header, body = split(data)
            number = int(header.get("ch", 0))
            channel = channels.get(number)
            op = header.get("op")
            if body is not None or "delete" in header:
                # an open channel says that its user may write: rows for none are not looked at
                if channel is not None:
                    rows = None if body is None else await _rows(body)
                    try:
                        channel.frames.put_nowait(
                            (header, rows)
                        )  # to wait here would make all channels of the link wait
                    except asyncio.QueueFull:
                        del channels[number]
                        if channel.task is not None:
                            channel.task.cancel()
                        raise BadRequest(
                            f"more than {_FRAMES} frames without an ack",
                            code="E_OVERLOAD",
                            hint="wait for acks",
                        ) from None
                return
            if op == "credit" and channel is not None:
                channel.credit += max(int(header.get("n", 0)), 0)
                channel.more.set()
                return
            if op == "close":
                gone = channels.pop(number, None)
                if gone is not None and gone.task is not None:
                    gone.task.cancel()
                return
            if op == "credit":
                return
            begins: dict[
                str, Callable[[ServerConnection, _Channel, dict[str, Any]], Awaitable[None]]
            ] = {
                "information": self._inform,
                "describe": self._describe,
                "query": self._query,
                "subscribe": self._subscribe,
                "append": self._append,
            }
            if op not in begins:
                raise BadRequest(f"no such operation: {op}", hint=", ".join(begins))
            _check_parameters(op, header)
            if channel is not None and channel.task is not None and not channel.task.done():
                raise BadRequest(f"channel {number} is open")
            if len(channels) >= self._settings.max_channels:
                done = [n for n, c in channels.items() if c.task is None or c.task.done()]
                for n in done:
                    del channels[n]
            if len(channels) >= self._settings.max_channels:
                raise BadRequest(
                    f"more than {self._settings.max_channels} channels on one link",
                    code="E_OVERLOAD",
                )
            channel = channels[number] = _Channel(number, credit=int(header.get("credit", CREDIT)))
            channel.frames = asyncio.Queue(_FRAMES)
            channel.task = asyncio.create_task(self._run(connection, channel, header, begins[op]))
        except PenstockError as error:
            await connection.send(json.dumps({"ch": number, "type": "error", **error.to_dict()}))
        except (ValueError, TypeError, OverflowError) as wrong:
            refused = BadRequest("a parameter is not of its type", detail=str(wrong)[:100])
            await connection.send(json.dumps({"ch": number, "type": "error", **refused.to_dict()}))

    async def _run(
        self,
        connection: ServerConnection,
        channel: _Channel,
        request: dict[str, Any],
        begin_: Callable[[ServerConnection, _Channel, dict[str, Any]], Awaitable[None]],
    ) -> None:
        try:
            await begin_(connection, channel, request)
        except (ConnectionClosed, asyncio.CancelledError):
            raise
        except PenstockError as error:
            if error.code == "E_FORBIDDEN":
                audit.note_refusal(self._users[connection], _remote(connection), error)
            await self._say(connection, channel, {"type": "error", **error.to_dict()})
        except vital.FAULTS as error:
            log.exception("a channel ended")
            words = {"code": "E_INTERNAL", "message": f"the channel ended: {type(error).__name__}"}
            await self._say(connection, channel, {"type": "error", **words})

    async def _say(
        self, connection: ServerConnection, channel: _Channel, header: dict[str, Any]
    ) -> None:
        await connection.send(json.dumps({"ch": channel.number, **header}))

    # ---------------------------------------------------------------- questions

    async def _inform(
        self, connection: ServerConnection, channel: _Channel, _: dict[str, Any]
    ) -> None:
        found = await asyncio.to_thread(
            self._information, visible(self._catalog.catalog, self._access, self._users[connection])
        )
        await self._say(connection, channel, {"type": "answer", **found})

    async def _describe(
        self, connection: ServerConnection, channel: _Channel, request: dict[str, Any]
    ) -> None:
        scope = Scope.of(request)
        user = self._users[connection]
        database = str(request.get("database") or "")
        name = str(request.get("table", ""))

        def look(born: bool) -> tuple[Table, str | None]:
            if scope is None:
                return self._find_for(user, "READ", database, name, born)
            found = scope.table(self._catalog.catalog, name, partial(self._find, born=born))
            self._access.require(user, "READ", found[0])
            return found

        table, child = await self._known(look)
        await self._say(
            connection, channel, {"type": "answer", "table": Description.of(table, child).to_json()}
        )

    async def _known(self, look: Callable[[bool], T]) -> T:
        """What *look* finds, also when it was made or granted just now and that has not come here
        yet, or only rows know of it.

        Args:
            look: told whether to ask, and wait, for child tables that only rows know.

        Raises:
            PenstockError: of *look*.
        """
        try:
            return look(False)
        except (
            CatalogError,
            AuthError,
        ):  # who has no right on the database is not told that there is no such table
            await asyncio.to_thread(self._catalog.catch_up)
            return await asyncio.to_thread(look, True)

    def _may_read(self, user: str, sql: str, database: str) -> None:
        """READ on every table of a query; of what is not there nothing is said. Raises AuthError,
        SqlError.
        """
        if user == self._access.root:
            return
        for statement in parse(sql):
            for node in statement.query.find_all(exp.Table) if isinstance(statement, Query) else ():
                home = node.db or database
                try:
                    table, _ = self._find(home, node.name, born=True)
                except CatalogError:
                    self._access.require_named(user, "READ", home, node.name)
                else:
                    self._access.require(user, "READ", table, f"{home}.{node.name}")

    def _find_for(
        self, user: str, right: Right, database: str, name: str, born: bool
    ) -> tuple[Table, str | None]:
        """The same for somebody who needs *right*: who may not know is not told whether it exists.
        Raises AuthError, CatalogError.
        """
        try:
            table, child = self._find(database, name, born=born)
        except CatalogError:
            home, _, plain = name.partition(".") if "." in name else (database, "", name)
            self._access.require_named(user, right, home, plain)
            raise
        self._access.require(user, right, table, name if "." in name else f"{database}.{name}")
        return table, child

    def _find(self, database: str, name: str, *, born: bool = False) -> tuple[Table, str | None]:
        """A table, or the supertable and spelling of a child table; of a stream or view its result.
        Raises CatalogError.

        *born*: look for child tables that only rows know, too.
        """
        catalog = self._catalog.catalog
        if "." in name:
            database, _, name = name.partition(".")
        if catalog.database(database) is None:
            raise CatalogError(f'there is no database "{database}"', code="E_NO_DATABASE")
        table = catalog.table(database, name)
        if table is not None:
            return table, None
        child = catalog.child(database, name)
        stable = catalog.table_by_id(child.stable_id) if child is not None else None
        if child is not None and stable is not None:
            return stable, child.name
        view = catalog.view(database, name)
        table = catalog.table_by_id(view.target_id) if view is not None else None
        if table is not None:
            return table, None
        stream = catalog.stream(database, name)
        target = catalog.table_by_id(stream.plan.target.table_id) if stream is not None else None
        if target is not None:
            return target, None
        for stable in catalog.tables(database) if born else ():
            if stable.kind == "stable" and self._born(stable.id, name):
                return stable, name
        raise CatalogError(
            f'there is no table "{name}" in database "{database}"', code="E_NO_TABLE"
        )

    async def _query(
        self, connection: ServerConnection, channel: _Channel, request: dict[str, Any]
    ) -> None:
        loop = asyncio.get_running_loop()
        sql = str(request["sql"])
        database = str(request.get("database", ""))
        timezone = str(request.get("timezone") or "UTC")
        await asyncio.to_thread(self._catalog.catch_up)
        await asyncio.to_thread(self._may_read, self._users[connection], sql, database)
        pieces = self._store.run(sql, database, timezone, self._settings.frame_rows)

        def following() -> tuple[bytes, int] | None:
            piece = next(pieces, None)
            return (
                None
                if piece is None
                else (pack({"ch": channel.number, "type": "rows"}, piece), piece.num_rows)
            )

        ahead = loop.run_in_executor(None, following)
        while (made := await ahead) is not None:
            ahead = loop.run_in_executor(
                None, following
            )  # the next is read while this one is on its way
            await channel.take_credit()
            await connection.send(made[0])
            self._rows_out.inc(made[1])
        await self._say(connection, channel, {"type": "end"})

    # ---------------------------------------------------------------- subscriptions

    async def _subscribe(
        self, connection: ServerConnection, channel: _Channel, request: dict[str, Any]
    ) -> None:
        _, select, node = source_of(str(request["sql"]))
        user = self._users[connection]
        home = node.db or str(request.get("database") or "")

        def look(born: bool) -> External | tuple[Table, str | None]:
            entry = self._external(home, node.name)
            if entry is None:
                return self._find_for(user, "READ", home, node.name, born)
            self._access.require(user, "READ", entry)
            return entry

        found = await self._known(look)
        if isinstance(found, External):
            await self._relay(connection, channel, request, found, select)
            return
        table, child = found
        require_log(table)
        feed = await self._feeds.of(table.topic)
        start = str(request.get("from", "latest"))
        cursor = begin(start, table.id, feed.ends(), feed.beginnings())
        if start not in ("latest", "earliest"):
            feed, cursor = await self._resumed(feed, cursor)
        subscription = Subscription(
            cursor,
            table.id,
            child,
            str(request["sql"]),
            str(request.get("timezone") or "UTC"),
            time.time_ns(),
            lambda: self._catalog.catalog.table_by_id(table.id),
            partitions=len(feed.partitions),
            positions=bool(request.get("positions")),
            cycles=bool(request.get("cycles")),
        )
        first = subscription.schema_message().header
        scope = Scope.of(request)
        if scope is not None:
            scope.check(self._catalog.catalog)
        await self._say(
            connection, channel, {**first, "type": "subscribed", "token": subscription.token()}
        )
        await self._pump(
            connection, channel, feed, subscription, table, lambda: self._permit(user, table, scope)
        )

    def _present(self, table: Table) -> Table:
        """The table as it is now. Raises CatalogError when it is gone."""
        found = self._catalog.catalog.table_by_id(table.id)
        if found is None:
            raise CatalogError(f"table {table.name} was dropped", code="E_NO_TABLE")
        return found

    async def _resumed(self, present: Feed, cursor: Cursor) -> tuple[Feed, Cursor]:
        """Where a token goes on: in the topic that it is of, which may be of an earlier generation,
        if that still has what is wanted.
        """
        topic, cursor = turning.resume(self._catalog.catalog, present.topic, cursor)
        feed = await self._feeds.of(topic)
        beginnings = feed.beginnings()
        if topic != present.topic and any(
            offset < beginnings[p] for p, offset in cursor.offsets.items()
        ):
            # rows that have left the log are in segments of the present generation
            feed = present
            cursor = turning.spread(cursor, len(present.partitions))
        for partition in feed.beginnings():
            cursor.offsets.setdefault(partition, 0)
        return feed, cursor

    def _external(self, database: str, name: str) -> External | None:
        """The external stream *name*, or the one that a view of this name writes."""
        catalog = self._catalog.catalog
        view = catalog.view(database, name)
        target = catalog.by_id(view.target_id) if view is not None else None
        return catalog.external(database, name) or (
            target if isinstance(target, External) else None
        )

    async def _relay(
        self,
        connection: ServerConnection,
        channel: _Channel,
        request: dict[str, Any],
        entry: External,
        select: exp.Select,
    ) -> None:
        """Rows of an external stream come from where it is."""
        flags = {"positions": bool(request.get("positions")), "cycles": bool(request.get("cycles"))}
        found = relay.messages(
            external.addresses(
                entry, self._settings.data_dir, self._outbound.reach(entry.maker, link=True)
            ),
            point_at(select, entry.remote_database, entry.remote_name),
            entry.remote_database,
            str(request.get("from", "latest")),
            **flags,
            timezone=str(request.get("timezone") or "UTC"),
            patience=self._settings.connect_seconds,
        )
        async with contextlib.aclosing(found):
            async for message in found:
                await self._give(connection, channel, [Out(message.header, message.rows)])

    def _permit(self, user: str, table: Table, scope: Scope | None) -> None:
        """What must hold while a subscription lives. Raises PenstockError."""
        self._present(table)
        self._access.require(user, "READ", table)
        if scope is not None:
            scope.check(self._catalog.catalog)

    async def _pump(
        self,
        connection: ServerConnection,
        channel: _Channel,
        feed: Feed,
        subscription: Subscription,
        table: Table,
        permit: Callable[[], None],
    ) -> None:
        """Give one subscription everything behind its cursor, for as long as it lives and *permit*
        raises nothing.
        """
        listening = await self._feeds.listen(feed)
        feed = listening.feed
        said = subscription.token()
        told = time.monotonic()
        try:
            while True:
                arrived = listening.arrival()
                permit()
                quiet = True
                ends = self._catalog.catalog.ends(feed.topic)
                for partition, offset in list(subscription.cursor.offsets.items()):
                    if offset > ends.get(partition, offset):
                        continue
                    if offset < feed.beginnings().get(partition, 0):
                        quiet = False
                        await self._from_segments(
                            connection,
                            channel,
                            subscription,
                            table,
                            partition,
                            offset,
                            feed.beginnings()[partition],
                        )
                        continue
                    pieces, near = await listening.since(partition, offset, ends.get(partition))
                    quiet = quiet and near
                    for piece in pieces:
                        made = await work_on(subscription.take, piece)
                        if made:
                            made[-1].header["behind"] = _behind(subscription, feed)
                        await self._give(connection, channel, made)
                if (
                    after := turning.turn(self._catalog.catalog, feed.topic, subscription.cursor)
                ) is not None:
                    feed, subscription.cursor = await self._resumed(
                        await self._feeds.of(self._present(table).topic), after
                    )
                    listening.close()
                    listening = await self._feeds.listen(feed)
                    feed, quiet, subscription.partitions = (
                        listening.feed,
                        False,
                        len(feed.partitions),
                    )
                now = time.monotonic()
                if now - told >= _TOKEN_SECONDS and (token := subscription.token()) != said:
                    said = token
                    told = now
                    await self._say(
                        connection,
                        channel,
                        {"type": "token", "token": token, "behind": _behind(subscription, feed)},
                    )
                if quiet:
                    try:
                        await asyncio.wait_for(arrived.wait(), _TOKEN_SECONDS)
                    except TimeoutError:
                        continue
        finally:
            listening.close()

    async def _from_segments(
        self,
        connection: ServerConnection,
        channel: _Channel,
        subscription: Subscription,
        table: Table,
        partition: int,
        start: int,
        begins: int,
    ) -> None:
        """Records that left the log are in segments."""
        loop = asyncio.get_running_loop()
        table = self._present(table)
        owner = self._catalog.catalog.topic_owner(table.topic)
        where = await loop.run_in_executor(
            None, stored.position, self._settings.segments_dir, table, partition, owner
        )
        pieces = stored.read(self._settings.segments_dir, table, partition, where, start)
        while (piece := await loop.run_in_executor(None, next, pieces, None)) is not None:
            made = await loop.run_in_executor(
                None, subscription.take_stored, partition, piece, int(piece["_offset"][-1]) + 1
            )
            await self._give(connection, channel, made)
        subscription.cursor.offsets[partition] = max(where.next, begins)
        for producer, place in where.producers.items():
            subscription.cursor.check_seen(partition, producer, *place)

    async def _give(self, connection: ServerConnection, channel: _Channel, made: list[Out]) -> None:
        for out in made:
            header = {**out.header, "ch": channel.number}
            if out.rows is None:
                await connection.send(json.dumps(header))
                continue
            await channel.take_credit()
            if out.rows.nbytes < SMALL:
                frame = pack(header, out.rows)
            else:
                frame = await asyncio.get_running_loop().run_in_executor(
                    None, pack, header, out.rows
                )
            await connection.send(frame)
            self._rows_out.inc(out.rows.num_rows)
        if not made:
            await asyncio.sleep(0)  # much that is not for this one must not keep the loop

    # ---------------------------------------------------------------- appends

    async def _append(
        self, connection: ServerConnection, channel: _Channel, request: dict[str, Any]
    ) -> None:
        user = self._users[connection]
        table, child = await self._known(
            lambda born: self._find_for(
                user, "WRITE", str(request.get("database", "")), str(request.get("table", "")), born
            )
        )
        require_log(table, writing=True)
        if child is not None:
            raise SchemaError(
                f"{child} is a child table",
                code="E_CHILD_TABLE",
                hint=f"append to {table.name} and name it in tbname",
            )
        producer = request.get("producer")
        owner = self._catalog.catalog.topic_owner(table.topic)
        appender, places = await asyncio.to_thread(
            self._appenders.open,
            table,
            None if producer is None else str(producer),
            owner,
            lambda: self._catalog.catalog.table_by_id(table.id),
        )
        held = {str(p): list(place) for p, place in places.items()}
        await self._say(
            connection,
            channel,
            {"type": "opened", "table": Description.of(table).to_json(), "places": held},
        )
        acks: asyncio.Queue[_UnderWay] = asyncio.Queue(CREDIT)
        answering = asyncio.create_task(self._acknowledge(connection, channel, acks))
        frame: asyncio.Future[tuple[dict[str, Any], Any]] | None = None
        try:
            while True:
                frame = asyncio.ensure_future(channel.frames.get())
                await asyncio.wait({frame, answering}, return_when=asyncio.FIRST_COMPLETED)
                if answering.done():
                    answering.result()
                    return
                header, rows = frame.result()
                came = time.monotonic()
                self._access.require(user, "WRITE", table)  # it may have been revoked since
                if rows is None:
                    what = header["delete"]
                    tables = what.get("tables")
                    only = what.get("partition")
                    place = (int(what["low"]), int(what["high"]), int(what["offset"]))
                    sent = await asyncio.to_thread(
                        appender.delete, tables, only, *place, self._noted
                    )
                else:
                    sent = await asyncio.to_thread(appender.append, rows, self._noted)
                    self._rows_in.inc(rows.num_rows)
                await acks.put(_UnderWay(header.get("seq"), came, asyncio.wrap_future(sent)))
        finally:
            answering.cancel()
            if frame is not None:
                frame.cancel()

    async def _acknowledge(
        self, connection: ServerConnection, channel: _Channel, acks: asyncio.Queue[_UnderWay]
    ) -> None:
        while True:
            oldest = await acks.get()
            # a channel that ends does not cancel its writes: what confirms them would trip over a
            # future that is settled already
            rows = await asyncio.shield(oldest.written)
            await self._say(
                connection, channel, {"type": "ack", "seq": oldest.number, "rows": rows}
            )
            self._took.observe(time.monotonic() - oldest.came)

    def _noted(self, topic: str, partition: int, offset: int) -> None:
        """A record is on all replicas."""

    def close(self) -> None:
        self._feeds.stop()


def _check_parameters(op: str, header: dict[str, Any]) -> None:
    """Raises BadRequest: to leave out what a newer peer asks for would be another answer than it
    means to get.
    """
    unknown = sorted(header.keys() - _PARAMETERS[op] - _ENVELOPE)
    if unknown:
        hint = (
            f"this side speaks version {VERSION} of the link; parameters are"
            f" {', '.join(sorted(_PARAMETERS[op]))}"
        )
        raise BadRequest(f"{op} has no parameter {unknown[0][:64]}", hint=hint)


async def _rows(body: memoryview) -> pa.Table:
    """Rows of a frame; large ones are read beside the event loop. Raises FrameError."""
    if len(body) <= INLINE_BYTES:
        return rows_of(body)
    return await asyncio.to_thread(rows_of, body)


def _behind(subscription: Subscription, feed: Feed) -> int:
    """Records of the topic that the subscription has not come to."""
    ends = feed.ends()
    return sum(max(ends.get(p, o) - o, 0) for p, o in subscription.cursor.offsets.items())


def _remote(connection: ServerConnection) -> str:
    return str((connection.remote_address or [""])[0])

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
import json
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any
from weakref import WeakKeyDictionary

from prometheus_client import Counter, Gauge, Histogram
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from penstock.auth.access import Access
from penstock.auth.login import Login
from penstock.catalog.reader import CatalogReader
from penstock.catalog.view import Catalog
from penstock.errors import AuthError, PenstockError
from penstock.link.frames import CREDIT, ORIGIN_HEADER, PATH, VERSION, VERSION_HEADER, split
from penstock.outbound.reach import Outbound
from penstock.runtime import audit, vital
from penstock.runtime.clock import SystemClock
from penstock.runtime.health import SECONDS, Health
from penstock.runtime.log import get
from services.federation.appenders import Appenders
from services.federation.appends import LinkAppends
from services.federation.channel import (
    MAX_FRAMES,
    BadLinkRequest,
    LinkChannel,
    check_parameters,
    read_rows,
)
from services.federation.lookup import TableLookup
from services.federation.questions import Questions
from services.federation.reading import StoreReader
from services.federation.settings import FederationSettings
from services.federation.subscriptions import LinkSubscriptions

log = get(__name__)
#: serves one channel until it ends, as its request says
Operation = Callable[[LinkChannel, dict[str, Any]], Awaitable[None]]


class LinkServer:
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
        """
        Args:
            information: describes this deployment as far as somebody sees the catalog.
            born: tells if rows made a child table of this name known, by the supertable's id.
                Blocks.
        """
        self._settings = settings
        self._connected = 0
        self._login = Login(
            lambda: catalog.catalog,
            settings.user,
            settings.root_password,
            SystemClock(),
            settings.signing_key,
        )
        access = Access(lambda: catalog.catalog, settings.user)
        self._outbound = Outbound(settings, access)
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
        rows_in = Counter(
            "penstock_federation_received_rows",
            "Rows taken in over links",
            registry=health.registry,
        )
        ack_seconds = Histogram(
            "penstock_federation_ack_seconds",
            "From rows on a link until it is told that they are in the log",
            buckets=SECONDS,
            registry=health.registry,
        )
        tables = TableLookup(catalog, access, born)
        questions = Questions(catalog, access, tables, store, information, settings.frame_rows)
        appends = LinkAppends(catalog, access, tables, appenders, rows_in, ack_seconds)
        self._subscriptions = LinkSubscriptions(settings, catalog, access, tables, self._outbound)
        self._operations: dict[str, Operation] = {
            "information": questions.inform,
            "describe": questions.describe,
            "query": questions.query,
            "subscribe": self._subscriptions.serve,
            "append": appends.serve,
        }

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
        channels: dict[int, LinkChannel] = {}
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
        self, connection: ServerConnection, data: str | bytes, channels: dict[int, LinkChannel]
    ) -> None:
        number = 0
        try:
            header, body = split(data)
            number = int(header.get("ch", 0))
            if body is not None or "delete" in header:
                await _take_frame(channels, number, header, body)
            elif header.get("op") == "credit":
                if number in channels:
                    channels[number].add_credit(int(header.get("n", 0)))
            elif header.get("op") == "close":
                if number in channels:
                    channels.pop(number).cancel()
            else:
                self._open(connection, channels, number, header)
        except PenstockError as error:
            await connection.send(json.dumps({"ch": number, "type": "error", **error.to_dict()}))
        except (ValueError, TypeError, OverflowError) as wrong:
            refused = BadLinkRequest("a parameter is not of its type", detail=str(wrong)[:100])
            await connection.send(json.dumps({"ch": number, "type": "error", **refused.to_dict()}))

    def _open(
        self,
        connection: ServerConnection,
        channels: dict[int, LinkChannel],
        number: int,
        header: dict[str, Any],
    ) -> None:
        """Open a channel and begin its operation. Raises BadLinkRequest."""
        op = header.get("op")
        if op not in self._operations:
            raise BadLinkRequest(f"no such operation: {op}", hint=", ".join(self._operations))
        check_parameters(op, header)
        if number in channels and channels[number].is_open:
            raise BadLinkRequest(f"channel {number} is open")
        if len(channels) >= self._settings.max_channels:
            for done in [n for n, channel in channels.items() if not channel.is_open]:
                del channels[done]
        if len(channels) >= self._settings.max_channels:
            raise BadLinkRequest(
                f"more than {self._settings.max_channels} channels on one link",
                code="E_OVERLOAD",
            )
        channel = channels[number] = LinkChannel(
            connection,
            self._users[connection],
            number,
            self._rows_out,
            credit=int(header.get("credit", CREDIT)),
        )
        channel.task = asyncio.create_task(self._run(channel, header, self._operations[op]))

    async def _run(
        self, channel: LinkChannel, request: dict[str, Any], operation: Operation
    ) -> None:
        try:
            await operation(channel, request)
        except (ConnectionClosed, asyncio.CancelledError):
            raise
        except PenstockError as error:
            if error.code == "E_FORBIDDEN":
                audit.note_refusal(channel.user, _remote(channel.connection), error)
            await channel.say({"type": "error", **error.to_dict()})
        except vital.FAULTS as error:
            log.exception("a channel ended")
            words = {"code": "E_INTERNAL", "message": f"the channel ended: {type(error).__name__}"}
            await channel.say({"type": "error", **words})

    def close(self) -> None:
        self._subscriptions.close()


async def _take_frame(
    channels: dict[int, LinkChannel], number: int, header: dict[str, Any], body: memoryview | None
) -> None:
    """Queue a frame of an append for its channel.

    Raises:
        FrameError: its rows cannot be read.
        BadLinkRequest: too many wait already; the channel ends.
    """
    # an open channel says that its user may write: rows for none are not looked at
    channel = channels.get(number)
    if channel is None:
        return
    rows = None if body is None else await read_rows(body)
    try:
        # to wait here would make all channels of the link wait
        channel.frames.put_nowait((header, rows))
    except asyncio.QueueFull:
        del channels[number]
        channel.cancel()
        raise BadLinkRequest(
            f"more than {MAX_FRAMES} frames without an ack",
            code="E_OVERLOAD",
            hint="wait for acks",
        ) from None


def _remote(connection: ServerConnection) -> str:
    return str((connection.remote_address or [""])[0])

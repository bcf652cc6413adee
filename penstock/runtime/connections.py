"""Connections of a port: counted per address and in all, and ended when they do not send what they
owe.

`Connections` holds the counts and deadlines of one port. `GuardedSite` serves an aiohttp
application and `counting_connection` a WebSocket server behind them. Event loop only.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, cast

from aiohttp import hdrs, web, web_response
from websockets.asyncio.server import ServerConnection

from penstock.errors import OverloadError
from penstock.runtime import vital
from penstock.runtime.file_limit import raise_file_limit
from penstock.runtime.limits import Open
from penstock.runtime.networks import network_of

if TYPE_CHECKING:
    from penstock.config.settings import Settings

_SWEEP_SECONDS = 1.0
_HEAD = (
    "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nConnection: close\r\nContent-Type:"
    " application/json\r\nContent-Length: "
)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
#: answers a connection that is one too many with a message and a hint, and closes it
Refuse = Callable[[asyncio.BaseTransport, str, str], None]
# answers to requests that cannot be parsed pass no application, and would name Python's version
web_response.SERVER_SOFTWARE = "penstock"  # type: ignore[attr-defined]


class Connections:
    """Counts of one port, and what its connections owe until when."""

    def __init__(self, settings: Settings, refuse: Refuse | None = None) -> None:
        """
        Args:
            refuse: answers and closes a connection that is one too many, given a message and a
                hint; None: as HTTP does.
        """
        self._refuse = refuse or _refuse
        self.header_seconds = settings.header_seconds
        self.body_seconds = settings.body_seconds
        self._open = Open(settings.max_connections_per_address)
        self._most = settings.max_connections
        self._count = 0
        self._due: dict[_Guarded, float] = {}
        self._sweeper: asyncio.Task[None] | None = None
        raise_file_limit()

    def enter(self, transport: asyncio.BaseTransport) -> str | None:
        """Count a new connection; return the address it is counted under. When there are too many,
        refuse it and return None.
        """
        peer = transport.get_extra_info("peername")
        address = network_of(str(peer[0])) if peer else ""
        if self._most and self._count >= self._most:
            self._refuse(transport, "too many connections to this port", "try again later")
            return None
        try:
            self._open.enter(address)
        except OverloadError:
            self._refuse(transport, "too many connections from this address", "close some of them")
            return None
        self._count += 1
        return address

    def leave(self, address: str) -> None:
        self._count -= 1
        self._open.leave(address)

    def owe(self, connection: _Guarded, seconds: float) -> None:
        """End *connection* in so many seconds unless it pays what it owes."""
        self._due[connection] = asyncio.get_running_loop().time() + seconds

    def paid(self, connection: _Guarded) -> None:
        self._due.pop(connection, None)

    def owes(self, connection: _Guarded) -> bool:
        return connection in self._due

    def start(self) -> None:
        """Look after deadlines until `stop`."""
        self._sweeper = vital.task(self._sweep(), "connection deadlines")

    async def stop(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sweeper

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            now = asyncio.get_running_loop().time()
            for connection in [c for c, due in self._due.items() if due <= now]:
                self.paid(connection)
                connection.overdue()


def _refuse(transport: asyncio.BaseTransport, message: str, hint: str) -> None:
    """Answer and close."""
    refused = cast(asyncio.Transport, transport)
    body = json.dumps({"error": {"code": OverloadError.code, "message": message, "hint": hint}})
    refused.write(f"{_HEAD}{len(body)}\r\n\r\n{body}".encode())
    refused.close()


class _Guarded(asyncio.Protocol):
    """aiohttp's protocol of one connection, with deadlines for headers and bodies."""

    def __init__(self, inner: asyncio.Protocol, connections: Connections) -> None:
        self._inner = inner
        self._connections = connections
        self._address: str | None = None
        self._transport: asyncio.Transport | None = None
        self._request: web.Request | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._address = self._connections.enter(transport)
        if self._address is None:
            return
        self._connections.owe(self, self._connections.header_seconds)
        self._inner.connection_made(transport)

    def began(self, request: web.Request) -> None:
        """The headers are complete; what is missing of the body has to follow."""
        self._request = request
        if request.content.is_eof():
            self._connections.paid(self)
        else:
            self._connections.owe(self, self._connections.body_seconds)

    def finish(self) -> None:
        self._request = None
        self._connections.paid(self)

    def overdue(self) -> None:
        """End the connection, unless the body came in time."""
        complete = self._request is not None and self._request.content.is_eof()
        if self._transport is not None and not complete:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._address is None:
            return
        if self._request is None and not self._connections.owes(self):
            self._connections.owe(self, self._connections.header_seconds)
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received() if self._address is not None else None

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.paid(self)
        if self._address is not None:
            self._connections.leave(self._address)
            self._inner.connection_lost(exc)


@web.middleware
async def _tell_connection(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Tell the connection when a request begins and ends."""
    transport = request.transport
    connection = transport.get_protocol() if transport is not None else None
    if not isinstance(connection, _Guarded):
        return await handler(request)
    connection.began(request)
    try:
        return await handler(request)
    finally:
        connection.finish()


async def _anonymous(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.pop(hdrs.SERVER, None)


def prepare(application: web.Application) -> web.Application:
    """Return *application*, made to be served by `GuardedSite`."""
    application.middlewares.insert(0, _tell_connection)
    application.on_response_prepare.append(_anonymous)
    return application


class GuardedSite(web.BaseSite):
    """Serves a runner's prepared application at one address."""

    __slots__ = ("_connections", "_settings")

    def __init__(
        self, runner: web.AppRunner, settings: Settings, context: ssl.SSLContext | None
    ) -> None:
        super().__init__(runner, ssl_context=context, backlog=1024)
        self._settings = settings
        self._connections = Connections(settings)

    @property
    def name(self) -> str:
        return f"{'https' if self._ssl_context else 'http'}://{self._settings.host}:{self._settings.port}"

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(cast(asyncio.Server, self._server).sockets[0].getsockname()[1])

    async def start(self) -> None:
        await super().start()
        inner = self._runner.server
        assert inner is not None
        self._connections.start()
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _Guarded(inner(), self._connections),
            self._settings.host,
            self._settings.port,
            ssl=self._ssl_context,
            ssl_handshake_timeout=self._connections.header_seconds if self._ssl_context else None,
            backlog=self._backlog,
            reuse_address=True,
        )

    async def stop(self) -> None:
        await super().stop()
        await self._connections.stop()


def counting_connection(connections: Connections) -> type[ServerConnection]:
    """Return the connections of a WebSocket server, counted in *connections*."""

    class Guarded(ServerConnection):
        _address: str | None = None

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self._address = connections.enter(transport)
            if self._address is not None:
                super().connection_made(transport)

        def data_received(self, data: bytes) -> None:
            if self._address is not None:
                super().data_received(data)

        def eof_received(self) -> None:
            if self._address is not None:
                super().eof_received()

        def connection_lost(self, exc: Exception | None) -> None:
            if self._address is not None:
                connections.leave(self._address)
                super().connection_lost(exc)

    return Guarded

"""TDengine's WebSocket, /ws: as taosAdapter answers it.

A client logs in with its first message (`conn`), or as any request does (header, `?token=`). Then
its messages are answered one after another; with some unanswered nothing more is read, so TCP slows
the client down. Before the login a connection lives for seconds and may send little, and an address
has few of them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial

from aiohttp import WSCloseCode, WSMsgType, web

from gateway.guard import RequestGuard, credentials_of
from gateway.wires.tdengine import frames
from gateway.wires.tdengine.connection import ConnectionActions
from gateway.wires.tdengine.frames import ActionRequest, Reply
from gateway.wires.tdengine.login_gate import login_gate
from gateway.wires.tdengine.session import SessionServices, WireSession
from penstock.errors import AuthError, BusError, PenstockError, SchemaError
from penstock.runtime import audit, log
from penstock.runtime.limits import Open, Rate

_log = log.get("gateway.tdengine")
_PING_S = 20.0
#: bytes of a message
MOST_MESSAGE = 4 << 20
#: seconds until a client has to have logged in …
LOGIN_S = 10.0
#: … and bytes that it may send until then
MOST_UNKNOWN = 64 << 10
#: seconds that a client has for its half of a closing
_CLOSING_S = 2.0
#: connections of one address that have not
_MOST_WAITING = 16
#: messages that are read and not answered
_MOST_UNANSWERED = 8
#: actions that cost as a request does
_COSTLY = frozenset(("query", "binary_query", "insert", "exec", "stmt2_exec"))
Handler = Callable[[ActionRequest], Awaitable[Reply]]
#: the handlers of one connection by their actions, and what ends it
Made = tuple[dict[str, Handler], Callable[[], None]]


class TdengineSocket:
    """The route; one instance serves all connections."""

    def __init__(
        self,
        services: SessionServices,
        make: Callable[[WireSession], Made],
        max_body: int,
        login_s: float = LOGIN_S,
    ) -> None:
        """
        Args:
            make: makes the handlers of a connection.
            max_body: bytes that any request may have.
        """
        self._services = services
        self._make = make
        self._most = min(max_body, MOST_MESSAGE)
        self.login_s = login_s
        self._waiting = Open(_MOST_WAITING)
        self._open: set[web.WebSocketResponse] = set()

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        return [web.get("/ws", guard.wrap_unknown(partial(self._connect, guard)))]

    async def close(self) -> None:
        """Tell every client that we go away."""
        for socket in list(self._open):
            await socket.close(code=WSCloseCode.GOING_AWAY, message=b"the gateway stops")

    async def _connect(self, guard: RequestGuard, request: web.Request) -> web.WebSocketResponse:
        session = WireSession(self._services, request.remote or "")
        credentials = credentials_of(request)
        if credentials is not None:
            await session.log_in(credentials)
        socket = web.WebSocketResponse(
            max_msg_size=self._most, heartbeat=_PING_S, compress=False, timeout=_CLOSING_S
        )
        if not socket.can_prepare(request):
            raise SchemaError("this is a WebSocket", code="E_BODY", hint="ask for an upgrade")
        handlers, end = self._make(session)
        client = _WireClient(socket, session, handlers, guard.rate)
        try:
            with self._waiting.inside(session.remote):
                await socket.prepare(request)
                self._open.add(socket)
                await client.wait_for_login(request.transport, self.login_s)
            if session.user:
                await client.serve()
        finally:
            self._open.discard(socket)
            end()
        return socket


class _WireClient:
    """One connection: reads messages, has them answered, sends the answers."""

    def __init__(
        self,
        socket: web.WebSocketResponse,
        session: WireSession,
        handlers: dict[str, Handler],
        rate: Rate,
    ) -> None:
        self._socket = socket
        self._session = session
        self._handlers = handlers
        self._rate = rate
        self._audited: set[str] = set()
        self._over = False
        self._room = asyncio.Semaphore(_MOST_UNANSWERED)
        self._unanswered: asyncio.Queue[str | bytes | None] = asyncio.Queue()

    async def wait_for_login(self, transport: asyncio.Transport | None, seconds: float) -> None:
        """Answer messages until the client is logged in, its time is over, or it has sent too
        much.
        """
        if transport is None or self._session.user:
            return  # it has left already, or logged in with its request
        gate = None
        try:
            async with asyncio.timeout(seconds) as until:
                with login_gate(transport, MOST_UNKNOWN, partial(_expire, until)) as gate:
                    await self._answer_until_login()
        except TimeoutError:
            full = gate is not None and gate.is_full
            code = WSCloseCode.MESSAGE_TOO_BIG if full else WSCloseCode.POLICY_VIOLATION
            reason = b"log in before you send this much" if full else b"log in within seconds"
            await self._socket.close(code=code, message=reason)

    async def _answer_until_login(self) -> None:
        while not self._session.user:
            message = await self._socket.receive()
            if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                return
            await self._answer(message.data)

    async def serve(self) -> None:
        """Answer messages until the connection ends."""
        # without answers there is no room for more messages: if they fail, the connection ends
        async with asyncio.TaskGroup() as both:
            both.create_task(self._answer_all())
            try:
                async for message in self._socket:
                    if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                        await self._room.acquire()
                        self._unanswered.put_nowait(message.data)
            finally:
                self._unanswered.put_nowait(None)

    async def _answer_all(self) -> None:
        while (data := await self._unanswered.get()) is not None:
            await self._answer(data)
            self._room.release()

    async def _answer(self, data: str | bytes) -> None:
        reply = await self._reply(data)
        try:
            if isinstance(reply, bytes):
                await self._socket.send_bytes(reply)
            elif reply is not None:
                await self._socket.send_str(json.dumps(reply, separators=(",", ":")))
            if self._over:
                await self._socket.close(code=WSCloseCode.POLICY_VIOLATION, message=b"log in again")
        except ConnectionError:
            return  # what it asked for is done all the same

    async def _reply(self, data: str | bytes) -> Reply:
        request = ActionRequest("", {})
        try:
            request = frames.read(data)
            if request.action not in ConnectionActions.BEFORE_LOGIN:
                await self._admit(request)
            handler = self._handlers.get(request.action)
            if handler is None:
                raise SchemaError(
                    f"unknown action {request.action}",
                    code="E_UNSUPPORTED_STATEMENT",
                    hint="docs/tdengine.md has those that there are",
                )
            return await handler(request)
        except PenstockError as error:
            self._note(error)
            return request.refusal(error)
        except Exception:
            _log.exception("a message found a bug", action=request.action)
            bug = BusError(
                "this is a bug in the gateway; its log has the details", code="E_INTERNAL"
            )
            return request.refusal(bug)

    async def _admit(self, request: ActionRequest) -> None:
        """Raise PenstockError when the login is over, or asks for too much."""
        try:
            await self._session.require_login()
        except AuthError:
            self._over = bool(self._session.user)
            raise
        if request.action in _COSTLY:
            self._rate.spend(self._session.user)

    def _note(self, error: PenstockError) -> None:
        """Write into the audit log that something was refused: once, not each time."""
        if error.code == "E_FORBIDDEN" and error.message not in self._audited:
            self._audited.add(error.message)
            audit.note_refusal(self._session.user, self._session.remote, error)


def _expire(until: asyncio.Timeout) -> None:
    """End the time that is left now."""
    if not until.expired():
        until.reschedule(asyncio.get_running_loop().time())

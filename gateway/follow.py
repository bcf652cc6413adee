"""WS /v1/follow: rows, window events and counters as they come, for pages of the gateway.

What a client asks is passed on to the notifier's `/ws` as it is, under a token of its user, and so
are the answers: the notifier reads each topic once for all and checks rights as it sends. `what:
counters` is answered here: what streams count, each second. The session is looked at again every
few seconds, so a log-out ends what it has opened.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

import aiohttp
from aiohttp import WSCloseCode, WSMsgType, web

from gateway.guard import RequestGuard, user_of
from gateway.information.viewer import Viewer
from gateway.ingest import parse_json
from gateway.stream_counters import EVERY_S, StreamSampler, counters
from penstock.auth.login import Login
from penstock.errors import AuthError, PenstockError, RemoteError, SchemaError
from penstock.runtime import log

_log = log.get("gateway.follow")
_PING_S = 20.0
_SESSION_S = 5.0
#: bytes of a client's message, which may hold a resume token
_MOST_ASKED = 1 << 20
#: bytes of a message of the notifier
_MOST_TOLD = 64 << 20


class FollowSocket:
    """The handler; one instance serves all connections."""

    def __init__(
        self,
        notifier_url: str,
        context: ssl.SSLContext,
        sampler: StreamSampler,
        viewer_of: Callable[[str], Viewer],
        login: Login,
    ) -> None:
        self._url = notifier_url + "/ws"
        self._context = context
        self._sampler = sampler
        self._viewer_of = viewer_of
        self._login = login
        self._open: set[web.WebSocketResponse] = set()

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        return [web.get("/v1/follow", guard.wrap(partial(self._connect, guard)))]

    async def close(self) -> None:
        """Tell every client that we go away."""
        for socket in list(self._open):
            await socket.close(code=WSCloseCode.GOING_AWAY, message=b"the gateway stops")

    async def _connect(self, guard: RequestGuard, request: web.Request) -> web.WebSocketResponse:
        user = user_of(request)
        remote = request.remote or ""
        token = partial(self._login.token, user, until=guard.ends(request), where=remote)
        socket = web.WebSocketResponse(max_msg_size=_MOST_ASKED, heartbeat=_PING_S, compress=False)
        await socket.prepare(request)
        self._open.add(socket)
        try:
            async with aiohttp.ClientSession() as session:
                follower = _Follower(
                    socket,
                    partial(self._dial, session, token),
                    partial(self._count, user),
                    lambda: guard.admit(request),
                )
                await follower.serve()
        finally:
            self._open.discard(socket)
        return socket

    async def _dial(
        self, session: aiohttp.ClientSession, token: Callable[[], str]
    ) -> aiohttp.ClientWebSocketResponse:
        """Connect to the notifier. Raises PenstockError."""
        headers = {"Authorization": f"Bearer {token()}"}
        try:
            return await session.ws_connect(
                self._url,
                headers=headers,
                ssl=self._context,
                heartbeat=_PING_S,
                max_msg_size=_MOST_TOLD,
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as away:
            raise RemoteError(
                "the notifier does not take the connection",
                detail=str(away)[:200],
                hint="try again in a second; `penstock status` shows its state",
            ) from None

    async def _count(self, user: str) -> dict[str, Any]:
        before, newest = await self._sampler.sample()
        return counters(before, newest, self._viewer_of(user))


class _Follower:
    """One client: its questions go to the notifier, or are answered here."""

    def __init__(
        self,
        socket: web.WebSocketResponse,
        dial: Callable[[], Awaitable[aiohttp.ClientWebSocketResponse]],
        count: Callable[[], Awaitable[dict[str, Any]]],
        admit: Callable[[], Awaitable[str]],
    ) -> None:
        self._socket = socket
        self._dial = dial
        self._count = count
        self._admit = admit
        self._notifier: aiohttp.ClientWebSocketResponse | None = None
        #: the only subscription to counters
        self._counting: tuple[str, asyncio.Task[None]] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Answer the client until it leaves, its session ends, or the notifier is away."""
        self._start(self._watch_session())
        try:
            async for message in self._socket:
                if message.type is WSMsgType.TEXT:
                    await self._take(message.data)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            if self._notifier is not None:
                await self._notifier.close()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _take(self, text: str) -> None:
        key = ""
        try:
            asked = parse_json(text)
            if not isinstance(asked, dict):
                raise SchemaError("a message must be a JSON object", code="E_BODY")
            key = str(asked.get("id", ""))
            if self._counting is not None and key == self._counting[0]:
                await self._take_own(key, asked)
            elif asked.get("action") == "subscribe" and asked.get("what") == "counters":
                await self._begin_counting(key)
            else:
                await self._pass_on(text)
        except PenstockError as error:
            await self._send({"id": key, "type": "error", **error.to_dict()})

    # ---------------------------------------------------------------- the notifier

    async def _pass_on(self, text: str) -> None:
        """Send a question to the notifier. Raises PenstockError."""
        if self._notifier is None:
            self._notifier = await self._dial()
            self._start(self._pass_back(self._notifier))
        with contextlib.suppress(ConnectionError):  # the client is told when its end is read
            await self._notifier.send_str(text)

    async def _pass_back(self, notifier: aiohttp.ClientWebSocketResponse) -> None:
        """Send on what the notifier says; a slow client is waited for, and the notifier with it."""
        with contextlib.suppress(ConnectionError):
            async for message in notifier:
                if message.type is WSMsgType.TEXT:
                    await self._socket.send_str(message.data)
        await self._socket.close(
            code=WSCloseCode.TRY_AGAIN_LATER, message=b"the notifier has gone away"
        )

    # ---------------------------------------------------------------- counters

    async def _begin_counting(self, key: str) -> None:
        if self._counting is not None:
            raise SchemaError(
                f'subscription "{self._counting[0]}" has the counters',
                code="E_BODY",
                hint="unsubscribe it first",
            )
        await self._send({"id": key, "type": "subscribed"})
        self._counting = (key, self._start(self._tell_counters(key)))

    async def _take_own(self, key: str, asked: dict[str, Any]) -> None:
        """Take a message about the subscription to counters. Raises SchemaError."""
        assert self._counting is not None
        if asked.get("action") != "unsubscribe":
            raise SchemaError(
                f'subscription "{key}" exists',
                code="E_BODY",
                hint="choose another id or unsubscribe first",
            )
        self._counting[1].cancel()
        self._counting = None
        await self._send({"id": key, "type": "unsubscribed"})

    async def _tell_counters(self, key: str) -> None:
        while True:
            try:
                told: dict[str, Any] = {"type": "counters", "counters": await self._count()}
            except PenstockError as error:
                told = {"type": "error", **error.to_dict()}
            await self._send({"id": key, **told})
            await asyncio.sleep(EVERY_S)

    # ---------------------------------------------------------------- the session

    async def _watch_session(self) -> None:
        """Close the connection of who is logged out, or may no longer log in."""
        while True:
            await asyncio.sleep(_SESSION_S)
            try:
                await self._admit()
            except AuthError as ended:
                await self._socket.close(
                    code=WSCloseCode.POLICY_VIOLATION, message=ended.message.encode()[:100]
                )
                return
            except PenstockError as later:
                _log.info("a session cannot be looked at now", reason=later.message)

    async def _send(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(ConnectionError):  # the client is gone, which is read next
            await self._socket.send_json(message)

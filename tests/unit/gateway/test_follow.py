"""/v1/follow: what a page asks goes to the notifier under a token of its user and comes back as it is;
counters are the gateway's own; who is logged out is cut off.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pyarrow as pa
import pytest
from aiohttp import WSMsgType, WSServerHandshakeError, web
from aiohttp.test_utils import TestClient, TestServer

from gateway import follow
from gateway.follow import FollowSocket
from gateway.guard import RequestGuard
from gateway.information.viewer import Viewer
from gateway.stream_counters import StreamSampler
from penstock.auth.access import Access
from penstock.auth.cookies import COOKIE, CookieSessions
from penstock.auth.login import Login
from penstock.catalog.model import User
from penstock.catalog.view import Catalog
from penstock.errors import BusError
from penstock.runtime.clock import ManualClock
from penstock.runtime.limits import Open, Rate
from tests.unit.services.memory_redis import MemoryRedis

NOW = 1_800_000_000_000_000_000
ASKED = {"action": "subscribe", "id": "a", "table": "d.t", "limit": 5}


class Notifier:
    """Echoes what it is asked, and notes by whom."""

    def __init__(self, login: Login) -> None:
        self._login = login
        self.users: list[str] = []
        self.sockets: list[web.WebSocketResponse] = []
        app = web.Application()
        app.add_routes([web.get("/ws", self._serve)])
        self.server = TestServer(app)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.users.append(await self._login.admit(request.headers.get("Authorization")))
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.sockets.append(socket)
        async for message in socket:
            await socket.send_str(f'{{"id":"a","type":"rows","asked":{message.data}}}')
        return socket


class Here:
    """A gateway in front of that notifier."""

    client: TestClient[Any, Any]

    def __init__(self) -> None:
        clock = ManualClock(NOW)
        self.catalog = Catalog([User(900, "ann", "hash")])
        self.login = Login(lambda: self.catalog, "root", "secret", clock, "k" * 64)
        redis: Any = MemoryRedis(clock)
        self.cookies = CookieSessions(redis, self.login, clock)
        self.guard = RequestGuard(self.login, self.cookies, (), Rate(0, clock), Open(0))
        self.notifier = Notifier(self.login)
        self.access = Access(lambda: self.catalog, "root")
        self.redis = redis
        self.down = False
        self.sampler = StreamSampler(self._streams, clock)

    def _streams(self) -> Any:
        if self.down:
            raise BusError("Redis is away", code="E_REDIS_DOWN")
        return pa.table({"stream_id": pa.array([], pa.int64())})

    def viewer_of(self, user: str) -> Viewer:
        return Viewer(lambda: self.catalog, self.redis, self.access, user)

    async def start(self) -> None:
        await self.notifier.server.start_server()
        url = str(self.notifier.server.make_url("")).rstrip("/").replace("http", "ws", 1)
        context = ssl.create_default_context()
        self.socket = FollowSocket(url, context, self.sampler, self.viewer_of, self.login)
        app = web.Application()
        app.add_routes(self.socket.routes(self.guard))
        self.client = TestClient(TestServer(app))
        await self.client.start_server()

    def cookie(self, user: str = "ann") -> dict[str, str]:
        return {"Cookie": f"{COOKIE}={self.cookies.begin(user)}"}

    async def open(self, **headers: str) -> aiohttp.ClientWebSocketResponse:
        return await self.client.ws_connect("/v1/follow", headers=self.cookie() | headers)

    async def close(self) -> None:
        await self.client.close()
        await self.notifier.server.close()


@pytest.fixture
async def here() -> AsyncIterator[Here]:
    made = Here()
    await made.start()
    yield made
    await made.close()


async def test_questions_and_answers_pass_as_they_are(here: Here) -> None:
    socket = await here.open()
    await socket.send_json(ASKED)
    answer = await socket.receive_json(timeout=20)
    assert answer == {"id": "a", "type": "rows", "asked": ASKED}
    await socket.send_json({"action": "unsubscribe", "id": "a"})
    await socket.receive_json(timeout=20)
    assert here.notifier.users == ["ann"], "one connection, under the user's own name"
    await socket.close()


async def test_nobody_and_pages_of_others_are_refused(here: Here) -> None:
    for headers, status in (
        ({}, 401),
        ({"Cookie": f"{COOKIE}=made-up"}, 401),
        ({"Authorization": "Bearer a.b.c"}, 401),
        (here.cookie() | {"Origin": "http://evil.example"}, 403),
        (here.cookie() | {"Sec-Fetch-Site": "cross-site"}, 401),
    ):
        with pytest.raises(WSServerHandshakeError) as refused:
            await here.client.ws_connect("/v1/follow", headers=headers)
        assert refused.value.status == status
    assert not here.notifier.users


async def test_counters_come_from_here(here: Here) -> None:
    socket = await here.open()
    await socket.send_json({"action": "subscribe", "id": "c", "what": "counters"})
    assert await socket.receive_json(timeout=20) == {"id": "c", "type": "subscribed"}
    told = await socket.receive_json(timeout=20)
    assert (told["id"], told["type"]) == ("c", "counters")
    assert told["counters"] == {"at": NOW // 10**6, "seconds": None, "streams": []}
    for again in ({"id": "c", "table": "d.t"}, {"id": "other", "what": "counters"}):
        await socket.send_json({"action": "subscribe", **again})
        assert (await _skip_counters(socket))["type"] == "error"
    await socket.send_json({"action": "unsubscribe", "id": "c"})
    assert (await _skip_counters(socket))["type"] == "unsubscribed"
    assert not here.notifier.users, "nothing of this is the notifier's"
    await socket.close()


async def test_counters_that_cannot_be_read_say_why(here: Here) -> None:
    here.down = True
    socket = await here.open()
    await socket.send_json({"action": "subscribe", "id": "c", "what": "counters"})
    await socket.receive_json(timeout=20)
    told = await socket.receive_json(timeout=20)
    assert (told["type"], told["code"]) == ("error", "E_REDIS_DOWN")
    await socket.close()


@pytest.mark.parametrize("text", ["", "[]", "{", '"a"', "null", '{"id": "\\ud800"}', "[" * 5000])
async def test_hostile_messages_cost_nothing_but_themselves(here: Here, text: str) -> None:
    socket = await here.open()
    await socket.send_str(text)
    answer = await socket.receive_json(timeout=20)
    assert (answer["type"], answer["code"]) == ("error", "E_BODY")
    await socket.send_bytes(b"\xff")
    await socket.send_json(ASKED)
    assert (await socket.receive_json(timeout=20))["type"] == "rows"
    await socket.close()


async def test_a_log_out_closes_what_was_opened(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "_SESSION_S", 0.02)
    headers = here.cookie()
    socket = await here.client.ws_connect("/v1/follow", headers=headers)
    await socket.send_json(ASKED)
    await socket.receive_json(timeout=20)
    here.cookies.end(headers["Cookie"].partition("=")[2])
    assert (await socket.receive(timeout=20)).type in (WSMsgType.CLOSE, WSMsgType.CLOSED)
    assert socket.close_code == 1008


async def test_a_notifier_that_is_away_is_told_of(here: Here) -> None:
    socket = await here.open()
    await socket.send_json(ASKED)
    await socket.receive_json(timeout=20)
    await here.notifier.sockets[0].close()
    assert (await socket.receive(timeout=20)).type in (WSMsgType.CLOSE, WSMsgType.CLOSED)
    assert socket.close_code == 1013
    await here.notifier.server.close()
    later = await here.open()
    await later.send_json(ASKED)
    answer = await later.receive_json(timeout=20)
    assert (answer["id"], answer["type"], answer["code"]) == ("a", "error", "E_REMOTE")
    await later.close()


async def test_a_gateway_that_stops_says_so(here: Here) -> None:
    socket = await here.open()
    await socket.send_json(ASKED)
    await socket.receive_json(timeout=20)
    task = asyncio.create_task(here.socket.close())
    await socket.receive(timeout=20)
    await task
    assert socket.close_code == 1001


async def _skip_counters(socket: aiohttp.ClientWebSocketResponse) -> dict[str, Any]:
    while True:
        told: dict[str, Any] = json.loads(await socket.receive_str(timeout=20))
        if told["type"] != "counters":
            return told

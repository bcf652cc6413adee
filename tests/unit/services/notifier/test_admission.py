"""Pages of a browser at `/ws`, over its real server: tokens, first messages, the console's cookie."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import SecretStr
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed, InvalidStatus

from penstock.auth.cookies import COOKIE, CookieSessions
from penstock.auth.login import Login
from penstock.catalog.model import User
from penstock.catalog.view import Catalog
from penstock.runtime.clock import ManualClock
from penstock.runtime.health import Health
from services.notifier import admission
from services.notifier.admission import HubAdmission, choose_protocol
from services.notifier.server import Hub
from services.notifier.settings import NotifierSettings
from tests.unit.services.memory_redis import NOW, MemoryRedis

PAGE = "https://dash.example.com"
KEY = "k" * 64


class ServedHub:
    """A notifier that lists PAGE; `login` and `sessions` are those of a gateway beside it."""

    def __init__(self) -> None:
        self.catalog = Catalog([User(9, "ann", "hash")])
        self.clock = ManualClock(NOW)
        client = cast(Any, MemoryRedis(self.clock))
        self.login = Login(lambda: self.catalog, "root", "secret", self.clock, KEY)
        self.sessions = CookieSessions(client, self.login, self.clock)
        settings = NotifierSettings(
            password="secret",  # type: ignore[arg-type]
            token_key=SecretStr(KEY),
            origins=(PAGE,),
            login_seconds=0.2,
        )
        reader = SimpleNamespace(catalog=self.catalog, catch_up=lambda: None)
        self.reader = reader
        self.health = Health("notifier", 0)
        self.hub = Hub(settings, cast(Any, reader), self.health, client, self.clock)
        self.url = ""

    def dial(
        self, *offered: str, origin: str | None = PAGE, cookie: str | None = None, **more: Any
    ) -> Any:
        headers = {"Cookie": f"other=1; {COOKIE}={cookie}"} if cookie is not None else {}
        protocols = cast(Any, list(offered) or None)
        return connect(
            self.url,
            origin=cast(Any, origin),
            subprotocols=protocols,
            additional_headers=headers | more.get("headers", {}),
        )

    @property
    def token(self) -> str:
        return self.login.token("ann", seconds=60)


@pytest.fixture
async def served() -> AsyncIterator[ServedHub]:
    made = ServedHub()
    async with serve(
        made.hub.serve,
        "127.0.0.1",
        0,
        process_request=made.hub.admit,
        select_subprotocol=choose_protocol,
    ) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        made.url = f"ws://127.0.0.1:{port}/ws"
        yield made
    made.health.close()


async def who(socket: ClientConnection) -> str:
    """The name that a refusal tells."""
    request = {"action": "subscribe", "id": "a", "table": "plant.secrets"}
    await socket.send(json.dumps(request))
    told = json.loads(await socket.recv())
    assert told["code"] == "E_FORBIDDEN", told
    return str(told["message"].partition(" ")[0])


async def ending(socket: ClientConnection) -> tuple[int | None, str]:
    """How the other side closes."""
    with pytest.raises(ConnectionClosed) as closed:
        while True:
            await socket.recv()
    assert closed.value.rcvd is not None
    return closed.value.rcvd.code, closed.value.rcvd.reason


async def test_a_token_comes_as_a_subprotocol(served: ServedHub) -> None:
    async with served.dial("penstock", f"bearer.{served.token}") as socket:
        assert socket.subprotocol == "penstock"
        assert await who(socket) == "ann"


async def test_a_token_comes_in_the_first_message(served: ServedHub) -> None:
    async with served.dial("penstock") as socket:
        await socket.send(json.dumps({"action": "login", "token": served.token}))
        assert json.loads(await socket.recv()) == {"type": "logged_in", "user": "ann"}
        assert await who(socket) == "ann"


@pytest.mark.parametrize(
    "message",
    [
        '{"action": "subscribe", "id": "a", "table": "plant.meters"}',
        '{"action": "login"}',
        '{"action": "login", "token": "a.b.c"}',
        '{"action": "login", "token": "root:secret"}',
        '{"action": "login", "token": {"a": 1}}',
        "[]",
        "{",
        "[" * 100_000,
        b"\xff\xfe",
    ],
)
async def test_a_first_message_that_logs_nobody_in_is_the_last(
    served: ServedHub, message: str | bytes
) -> None:
    async with served.dial("penstock") as socket:
        await socket.send(message)
        told = json.loads(await socket.recv())
        assert (told["type"], told["code"]) == ("error", "E_AUTH")
        assert (await ending(socket))[0] == 1008


async def test_who_says_nothing_is_closed(served: ServedHub) -> None:
    async with served.dial("penstock") as socket:
        assert await ending(socket) == (1008, "no login came")


async def test_few_connections_wait_for_a_login(
    served: ServedHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "MOST_WAITING", 0)
    with pytest.raises(InvalidStatus, match="429"):
        async with served.dial("penstock"):
            pass
    async with served.dial("penstock", f"bearer.{served.token}"):
        pass


async def test_the_consoles_cookie_counts_on_a_listed_page(served: ServedHub) -> None:
    cookie = served.sessions.begin("ann")
    async with served.dial(cookie=cookie) as socket:
        assert await who(socket) == "ann"
    for origin, status in ((None, "401"), ("https://evil.example", "403")):
        with pytest.raises(InvalidStatus, match=status):
            async with served.dial(cookie=cookie, origin=origin):
                pass
    served.sessions.end(cookie)
    with pytest.raises(InvalidStatus, match="401"):
        async with served.dial(cookie=cookie):
            pass


async def test_a_log_out_closes_what_its_cookie_has_opened(
    served: ServedHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "SESSION_CHECK_S", 0.01)
    cookie = served.sessions.begin("ann")
    async with served.dial(cookie=cookie) as socket:
        assert await who(socket) == "ann"
        served.sessions.end(cookie)
        assert await ending(socket) == (1008, "the session has ended")


@pytest.mark.parametrize("way", ["header", "subprotocol", "message"])
async def test_a_connection_ends_with_the_token_that_opened_it(
    served: ServedHub, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(admission, "SESSION_CHECK_S", 0.01)
    token = served.token
    headers = {"Authorization": f"Bearer {token}"} if way == "header" else {}
    offered = ("penstock", f"bearer.{token}") if way == "subprotocol" else ("penstock",)
    async with served.dial(*offered, headers=headers) as socket:
        if way == "message":
            await socket.send(json.dumps({"action": "login", "token": token}))
            assert json.loads(await socket.recv())["user"] == "ann"
        served.clock.advance(59.0)
        assert await who(socket) == "ann", "the token is good for a second more"
        served.clock.advance(1.0)
        assert await ending(socket) == (1008, "the token has expired")


async def test_a_new_password_closes_what_older_tokens_have_opened(
    served: ServedHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "SESSION_CHECK_S", 0.01)
    async with served.dial("penstock", f"bearer.{served.token}") as socket:
        assert await who(socket) == "ann"
        served.reader.catalog = served.catalog = Catalog([User(9, "ann", "another hash")])
        code, reason = await ending(socket)
    assert (code, "another password" in reason) == (1008, True)


async def test_only_who_came_with_a_password_may_stay(served: ServedHub) -> None:
    made = HubAdmission(served.login, served.sessions, (PAGE,), 0.2)
    for header, ends in (("Bearer root:secret", False), (f"Bearer {served.token}", True)):
        caller = await made.of_handshake(Headers(Authorization=header), "192.0.2.1")
        assert caller is not None and caller.ends is ends


@pytest.mark.parametrize(
    "offered",
    [
        ("penstock", "bearer.a.b.c"),
        ("penstock", "bearer."),
        ("bearer.secret",),
        ("other",),
        (),
    ],
)
async def test_pages_without_a_good_token_stay_out(
    served: ServedHub, offered: tuple[str, ...]
) -> None:
    with pytest.raises(InvalidStatus, match="401"):
        async with served.dial(*offered):
            pass


async def test_tokens_of_other_pages_do_not_count(served: ServedHub) -> None:
    for origin, status in (("https://evil.example", "403"), (None, "401")):
        for offered in (("penstock", f"bearer.{served.token}"), ("penstock",)):
            with pytest.raises(InvalidStatus, match=status):
                async with served.dial(*offered, origin=origin):
                    pass


async def test_programs_offer_what_they_like(served: ServedHub) -> None:
    headers = {"Authorization": f"Bearer {served.token}"}
    async with served.dial("penstock", origin=None, headers=headers) as socket:
        assert await who(socket) == "ann"
    async with served.dial(origin=None, headers=headers) as socket:
        assert socket.subprotocol is None

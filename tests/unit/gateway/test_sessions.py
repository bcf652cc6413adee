"""The console's log-in and log-out over HTTP, and what whoami tells."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import encode_basic_auth, web
from aiohttp.test_utils import TestClient, TestServer

from gateway.guard import RequestGuard
from gateway.information.viewer import Viewer
from gateway.sessions import Sessions
from penstock.auth.access import Access
from penstock.auth.cookies import COOKIE, CookieSessions
from penstock.auth.login import Login
from penstock.auth.passwords import hash_setting
from penstock.auth.tokens import SESSION_S
from penstock.catalog.model import Database, Grant, Role, User
from penstock.catalog.view import Catalog
from penstock.runtime.clock import ManualClock
from penstock.runtime.limits import Open, Rate
from tests.unit.services.memory_redis import MemoryRedis

NOW = 1_800_000_000_000_000_000
ASKER = {"X-Requested-With": "penstock-console"}
ANN = {"user": "ann", "password": "right"}
Client = TestClient[Any, Any]


class Here:
    def __init__(self) -> None:
        self.clock = ManualClock(NOW)
        self.catalog = Catalog(
            [
                Database(1, "plant"),
                Role(800, "operators", grants=(Grant("READ", 1), Grant("READ", 0))),
                User(
                    900,
                    "ann",
                    hash_setting("right"),
                    roles=(800,),
                    grants=(Grant("WRITE", 1), Grant("READ", 1), Grant("ALTER", 77)),
                ),
                User(901, "bob", hash_setting("right"), grants=(Grant("ADMIN", 0),)),
            ]
        )
        login = self.login = Login(lambda: self.catalog, "root", "secret", self.clock, "k" * 64)
        redis: Any = MemoryRedis(self.clock)
        cookies = CookieSessions(redis, login, self.clock)
        access = Access(lambda: self.catalog, "root")
        self.guard = RequestGuard(login, cookies, (), Rate(0, self.clock), Open(0))
        self.sessions = Sessions(
            login,
            cookies,
            lambda user: Viewer(lambda: self.catalog, redis, access, user),
            redis,
            secure=True,
        )

    def client(self) -> Client:
        """A browser of its own."""
        app = web.Application()
        app.add_routes(self.sessions.routes(self.guard))
        return TestClient(TestServer(app))


@pytest.fixture
def here() -> Here:
    return Here()


@pytest.fixture
async def client(here: Here) -> AsyncIterator[Client]:
    async with here.client() as made:
        yield made


async def _log_in(client: Client, **given: str) -> str:
    answer = await client.post("/v1/login", json=given or ANN)
    assert answer.status == 200, await answer.text()
    return answer.cookies[COOKIE].value


def _in(cookie: str) -> dict[str, str]:
    return {"Cookie": f"{COOKIE}={cookie}"}


async def test_a_password_begins_a_session_that_scripts_cannot_read(client: Client) -> None:
    answer = await client.post("/v1/login", json=ANN)
    told = await answer.json()
    assert (told["user"], told["by"], told["expires"]) == (
        "ann",
        "session",
        NOW // 10**9 + SESSION_S,
    )
    morsel = answer.cookies[COOKIE]
    assert morsel["httponly"] and morsel["secure"] and morsel["samesite"] == "Strict"
    assert answer.headers["Cache-Control"] == "no-store"
    assert morsel.value not in await answer.text()


async def test_whoami_tells_roles_and_rights_once_each(client: Client) -> None:
    cookie = await _log_in(client)
    answer = await client.get("/v1/whoami", headers=_in(cookie))
    told = await answer.json()
    assert told["roles"] == ["operators"] and told["admin"] is False
    assert told["rights"] == [
        {"right": "WRITE", "kind": "database", "database": "plant", "name": None},
        {"right": "READ", "kind": "database", "database": "plant", "name": None},
        {"right": "READ", "kind": "all", "database": None, "name": None},
    ], "a right on what is gone is none"


@pytest.mark.parametrize(("user", "password"), [("bob", "right"), ("root", "secret")])
async def test_whoami_tells_who_may_do_everything(client: Client, user: str, password: str) -> None:
    answer = await client.get(
        "/v1/whoami", headers={"Authorization": encode_basic_auth(user, password)}
    )
    told = await answer.json()
    assert (told["admin"], told["by"], told["expires"]) == (True, "password", None)
    assert told["rights"] == [{"right": "ADMIN", "kind": "all", "database": None, "name": None}]


@pytest.mark.parametrize("headers", [{}, ASKER])
async def test_only_the_console_gets_no_challenge(client: Client, headers: dict[str, str]) -> None:
    answer = await client.get("/v1/whoami", headers=headers)
    assert answer.status == 401
    assert ("WWW-Authenticate" in answer.headers) == (not headers)
    wrong = await client.post("/v1/login", json={**ANN, "password": "wrong"}, headers=headers)
    assert wrong.status == 401 and COOKIE not in wrong.cookies
    assert ("WWW-Authenticate" in wrong.headers) == (not headers)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "E_BODY"),
        (b"[]", "E_BODY"),
        (b"\xff\x00", "E_BODY"),
        (b"[" * 4000, "E_BODY"),
        (b'{"user": "ann"}', "E_BODY"),
        (b'{"user": "", "password": "x"}', "E_BODY"),
        (b'{"user": 1, "password": 2}', "E_BODY"),
        (rb'{"user": "\ud800", "password": "x"}', "E_BODY"),
        (b'{"user": "ann", "password": "' + b"x" * 5000 + b'"}', "E_TOO_LARGE"),
    ],
)
async def test_a_log_in_that_is_none(client: Client, body: bytes, code: str) -> None:
    json_type = {"Content-Type": "application/json"}
    answer = await client.post("/v1/login", data=body, headers=json_type)
    assert (await answer.json())["error"]["code"] == code
    assert answer.status == (413 if code == "E_TOO_LARGE" else 400)


async def test_pages_of_others_log_nobody_in(client: Client) -> None:
    form = await client.post("/v1/login", data=b'{"user": "ann", "password": "right"}')
    assert form.status == 415 and COOKIE not in form.cookies
    foreign = {"Origin": "http://evil.example"}
    answer = await client.post("/v1/login", json=ANN, headers=foreign)
    assert answer.status == 403 and COOKIE not in answer.cookies


async def test_a_log_out_ends_one_session_or_all(here: Here) -> None:
    async with here.client() as one, here.client() as two:
        first, second = await _log_in(one), await _log_in(two)
        third = await _log_in(two, user="bob", password="right")
        answer = await one.post("/v1/logout", headers=_in(first))
        assert await answer.json() == {"ended": 1} and not answer.cookies[COOKIE].value
        assert (await one.get("/v1/whoami", headers=_in(first))).status == 401
        assert (await two.get("/v1/whoami", headers=_in(second))).status == 200
        more = [await _log_in(one), await _log_in(one)]
        answer = await two.post("/v1/logout", json={"everywhere": True}, headers=_in(second))
        assert await answer.json() == {"ended": 3}
        for cookie in (second, *more):
            assert (await one.get("/v1/whoami", headers=_in(cookie))).status == 401
        assert (await one.get("/v1/whoami", headers=_in(third))).status == 200, "another user's"


@pytest.mark.parametrize("body", [b"[]", b'{"everywhere": 1}', b"\xff", b"x" * 5000])
async def test_a_log_out_that_is_none_ends_nothing(client: Client, body: bytes) -> None:
    cookie = await _log_in(client)
    answer = await client.post("/v1/logout", data=body, headers=_in(cookie))
    assert answer.status in (400, 413)
    assert (await client.get("/v1/whoami", headers=_in(cookie))).status == 200


async def test_nobody_logs_out_of_nothing(client: Client) -> None:
    for headers in ({}, _in("made up")):
        answer = await client.post("/v1/logout", headers=headers)
        assert (answer.status, await answer.json()) == (200, {"ended": 0})


async def test_a_link_opens_once_and_a_used_one_leads_to_a_page(here: Here) -> None:
    async with here.client() as browser:
        tokens = here.login.tokens
        link = f"/login?token={tokens.issue('ann', here.login.mark('ann'), kind='login')}"
        opened = await browser.get(link, allow_redirects=False)
        assert (opened.status, opened.headers["Location"]) == (
            303,
            "/",
        ) and COOKIE in opened.cookies
        used = await browser.get(link, allow_redirects=False, headers={"Accept": "text/html,*/*"})
        assert (used.status, used.headers["Location"]) == (303, "/?link=ended")
        program = await browser.get(link, allow_redirects=False)
        assert program.status == 401 and "WWW-Authenticate" not in program.headers
        assert COOKIE not in used.cookies and COOKIE not in program.cookies

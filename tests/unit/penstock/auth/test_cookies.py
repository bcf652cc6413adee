"""Sessions of the console: whose they are, when they end, and what Redis has of them."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.auth.cookies import CookieSessions
from penstock.auth.login import Login
from penstock.auth.tokens import SESSION_S
from penstock.catalog.model import User
from penstock.catalog.view import Catalog
from penstock.errors import AuthError, BusError
from penstock.runtime.clock import ManualClock
from tests.unit.services.memory_redis import MemoryRedis

NOW = 1_800_000_000_000_000_000


class Here:
    def __init__(self) -> None:
        self.clock = ManualClock(NOW)
        self.redis = MemoryRedis(ManualClock(NOW))
        self.catalog = Catalog([User(900, "ann", "hash")])
        login = Login(lambda: self.catalog, "root", "secret", self.clock, "k" * 64)
        client: Any = self.redis
        self.sessions = CookieSessions(client, login, self.clock)


def test_a_session_is_its_users_until_it_ends() -> None:
    here = Here()
    cookie = here.sessions.begin("ann")
    assert here.sessions.user_of(cookie) == ("ann", NOW // 10**9 + SESSION_S)
    here.clock.advance(SESSION_S)
    with pytest.raises(AuthError, match="the session has ended"):
        here.sessions.user_of(cookie)


def test_redis_holds_nothing_that_opens_a_session() -> None:
    here = Here()
    cookie = here.sessions.begin("ann")
    assert cookie not in str(here.redis.texts)
    assert here.sessions.begin("ann") != cookie


def test_a_log_out_ends_it_everywhere() -> None:
    here = Here()
    cookie = here.sessions.begin("ann")
    other = here.sessions.begin("ann")
    here.sessions.end(cookie)
    with pytest.raises(AuthError):
        here.sessions.user_of(cookie)
    assert here.sessions.user_of(other)[0] == "ann"
    with pytest.raises(AuthError):
        here.sessions.user_of("made up")


def test_a_session_ends_with_its_user_and_with_their_password() -> None:
    here = Here()
    cookie = here.sessions.begin("ann")
    here.catalog.put(User(900, "ann", "another hash"))
    with pytest.raises(AuthError):
        here.sessions.user_of(cookie)
    root = here.sessions.begin("root")
    assert here.sessions.user_of(root)[0] == "root"


def test_redis_that_is_away_is_said() -> None:
    here = Here()
    here.redis.down = True
    with pytest.raises(BusError):
        here.sessions.begin("ann")


def test_sessions_that_are_over_are_not_kept_in_mind() -> None:
    here = Here()
    here.sessions.begin("ann")
    here.clock.advance(SESSION_S)
    cookie = here.sessions.begin("ann")
    noted = next(h for key, h in here.redis.hashes.items() if key.endswith(":ann"))
    assert len(noted) == 1
    assert here.sessions.end(cookie, everywhere=True) == 1
    assert not noted
    assert here.sessions.end(cookie) == 0

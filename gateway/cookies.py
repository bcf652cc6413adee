"""Sessions of the console, kept in Redis: every gateway knows them, and a log-out ends them at all.

Redis holds a digest of the cookie's secret, so its contents open no session.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from typing import Any

import redis

from penstock import names
from penstock.auth.login import Login
from penstock.auth.tokens import SESSION_S
from penstock.coordination.redis_link import ask
from penstock.errors import AuthError
from penstock.runtime.clock import Clock


class CookieSessions:
    """Begin, look up and end sessions. Blocks; any thread."""

    def __init__(self, client: redis.Redis, login: Login, clock: Clock) -> None:
        self._redis = client
        self._login = login
        self._clock = clock

    def begin(self, user: str) -> str:
        """Return the cookie of a new session of *user*."""
        cookie = secrets.token_urlsafe(32)
        ends = self._clock.now() // 10**9 + SESSION_S
        session = json.dumps({"user": user, "mark": self._login.mark(user), "ends": ends})
        ask(lambda: self._redis.set(_key(cookie), session, ex=SESSION_S))
        return cookie

    def user_of(self, cookie: str) -> tuple[str, int]:
        """Return whose session it is and when it ends, in seconds since 1970.

        Raises:
            AuthError: it has ended, or its user may no longer log in.
        """
        found = ask(lambda: self._redis.get(_key(cookie)))
        session: dict[str, Any] = json.loads(found) if found is not None else {"ends": 0}
        if session["ends"] <= self._clock.now() // 10**9:
            raise AuthError(
                "the session has ended", hint="`penstock login` prints a link for another"
            )
        return self._login.still(session["user"], session["mark"]), int(session["ends"])

    def end(self, cookie: str) -> None:
        ask(lambda: self._redis.delete(_key(cookie)))


def _key(cookie: str) -> str:
    return names.session(hashlib.sha256(cookie.encode()).hexdigest())

"""Sessions of the console, kept in Redis: every gateway and notifier knows them, and a log-out ends
them at all.

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

#: holds the secret of the console's session
COOKIE = "penstock_session"


class CookieSessions:
    """Begin, look up and end sessions. Blocks; any thread."""

    def __init__(self, client: redis.Redis, login: Login, clock: Clock) -> None:
        self._redis = client
        self._login = login
        self._clock = clock

    def begin(self, user: str) -> str:
        """Return the cookie of a new session of *user*."""
        cookie = secrets.token_urlsafe(32)
        now = self._clock.now() // 10**9
        ends = now + SESSION_S
        session = json.dumps({"user": user, "mark": self._login.mark(user), "ends": ends})
        ask(lambda: self._note(user, _digest(cookie), now, ends))
        ask(lambda: self._redis.set(_key(cookie), session, ex=SESSION_S))
        return cookie

    def _note(self, user: str, digest: str, now: int, ends: int) -> None:
        """Note a session among those of its user, and forget those that have ended."""
        mine = names.sessions_of(user)
        over = [d for d, until in self._redis.hgetall(mine).items() if int(until) <= now]
        if over:
            self._redis.hdel(mine, *over)
        self._redis.hset(mine, digest, ends)
        self._redis.expire(mine, SESSION_S)

    def user_of(self, cookie: str) -> tuple[str, int]:
        """Return whose session it is and when it ends, in seconds since 1970.

        Raises:
            AuthError: it has ended, or its user may no longer log in.
        """
        session = self._find(cookie)
        if session is None:
            raise AuthError(
                "the session has ended", hint="`penstock login` prints a link for another"
            )
        return self._login.still(session["user"], session["mark"]), int(session["ends"])

    def end(self, cookie: str, *, everywhere: bool = False) -> int:
        """End a session; return how many ended.

        Args:
            everywhere: end all sessions of its user.
        """
        session = self._find(cookie)
        if session is None:
            return 0
        mine = names.sessions_of(session["user"])
        ended = [_digest(cookie)]
        if everywhere:
            ended = [_text(digest) for digest in ask(lambda: self._redis.hkeys(mine))]
        gone = ask(lambda: self._redis.delete(*map(names.session, ended)))
        ask(lambda: self._redis.hdel(mine, *ended))
        return int(gone)

    def _find(self, cookie: str) -> dict[str, Any] | None:
        """Return a session as Redis has it; None: it has ended."""
        found = ask(lambda: self._redis.get(_key(cookie)))
        session: dict[str, Any] = json.loads(found) if found is not None else {"ends": 0}
        return session if session["ends"] > self._clock.now() // 10**9 else None


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()


def _key(cookie: str) -> str:
    return names.session(_digest(cookie))


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value

"""Who somebody is: `Authorization` headers checked against the mesh's own user, the catalog's users, and tokens.

A password check costs tens of milliseconds by design; so a header that was accepted is remembered as a keyed digest, together with the
password it was checked against, and forgotten when that changes. `known` is for event loops and never blocks; `check` may. Wrong logins
from one address are slowed down. Refused: keeping or logging a password. Every login, accepted or not, is audited; what somebody may
do is `penstock.access`'s.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock import audit
from penstock.catalog.model import User
from penstock.catalog.view import Catalog
from penstock.clock import Clock
from penstock.errors import AuthError, OverloadError
from penstock.passwords import hashed_setting, matches
from penstock.tokens import DAY_S, LONGEST_S, Tokens, looks_like_one, mark_of

_REMEMBERED = 4096
#: hashes worked on at a time: each takes 19 MiB
_AT_ONCE = 4
#: wrong logins as one user from one address within a minute, before more are looked at
_WRONG_A_MINUTE = 20
_NEVER = 2**62


@dataclass(frozen=True)
class _Remembered:
    user: str
    mark: str
    #: seconds since 1970
    expires: int


class Login:
    """One per process. Any thread."""

    def __init__(self, catalog: Callable[[], Catalog], root: str, password: str, clock: Clock) -> None:
        """
        Args:
            catalog: what users there are now.
            root: the mesh's own user; can log in also while there is no catalog.
            password: of that user.
            clock: for what expires.
        """
        self._catalog, self.root, self._clock = catalog, root, clock
        self._root_hash = hashed_setting(password)
        self._nobody = hashed_setting(secrets.token_urlsafe())
        self._basic = _basic_header(root, password)
        self.tokens = Tokens(password, clock)
        self._secret = secrets.token_bytes(32)
        self._remembered: OrderedDict[bytes, _Remembered] = OrderedDict()
        self._lock = threading.Lock()
        self._hashing = threading.Semaphore(_AT_ONCE)
        self._wrong: OrderedDict[tuple[str, str], tuple[int, int]] = OrderedDict()

    # ---------------------------------------------------------------- headers

    def known(self, header: str | None) -> str | None:
        """The user of a header that was accepted before and still would be; None: ask `check`. Never blocks."""
        if not header:
            return None
        digest = self._digest(header)
        found = self._remembered.get(digest)
        if found is None:
            return None
        if found.user != self.root:
            user = self._catalog().user(found.user)
            if user is None or not user.enabled or mark_of(user) != found.mark:
                return None
        if found.expires <= self._clock.now() // 10**9:
            return None
        return found.user

    def check(self, header: str | None, *, where: str = "") -> str:
        """The user an `Authorization` header stands for. Blocks for tens of milliseconds at a new password.

        Raises:
            AuthError: there is none, or it is wrong.
            OverloadError: too many wrong ones from this address.
        """
        if not header:
            raise AuthError("no auth info", hint="send basic auth, or a token as Authorization: Bearer …")
        header = header.strip()
        found = self.known(header)
        if found is not None:
            return found
        scheme, _, value = header.partition(" ")
        scheme, value = scheme.lower(), value.strip()
        if scheme in ("bearer", "token", "taosd") and looks_like_one(value):
            return self._by_token(header, value, where)
        if scheme == "taosd":
            raise AuthError("unknown or expired token", hint="GET /rest/login/<user>/<password> gives a new one")
        if scheme == "basic":
            name, password = _basic(value)
        elif scheme in ("token", "bearer"):  # InfluxDB 2 clients: the token may be user:password
            name, password = _pair(value)
        else:
            raise AuthError("invalid auth type", hint="Basic, or Bearer with a token of POST /v1/tokens")
        user = self.login(name, password, where=where)
        self._remember(header, _Remembered(user, mark_of(self._user(user)), _NEVER))
        return user

    def _by_token(self, header: str, token: str, where: str) -> str:
        self._slow_down(where, "")
        try:
            claims = self.tokens.read(token)
            name = self.still(claims.user, claims.mark)
        except AuthError as refused:
            self._note_wrong(where, "")
            audit.write("login refused", user="", remote=where, by="token", reason=refused.message)
            raise
        audit.write("login", user=name, remote=where, by="token", token=claims.id)
        self._remember(header, _Remembered(name, claims.mark, claims.expires))
        return name

    def still(self, name: str, mark: str) -> str:
        """The name of the user a token was given to. Raises AuthError when its rights are gone."""
        user = self._user(name)
        if name != self.root and (user is None or not user.enabled) or not hmac.compare_digest(mark_of(user), mark):
            raise AuthError("the token was given to a user who is gone or has another password now", hint="log in again")
        return name

    # ---------------------------------------------------------------- passwords

    def login(self, name: str, password: str, *, where: str = "") -> str:
        """Check a password; the user's name as it was created. Blocks. Raises AuthError, OverloadError."""
        self._slow_down(where, name)
        user = None
        if name == self.root:
            expected = self._root_hash
        else:
            user = self._user(name)
            # an unknown user costs as much time as a wrong password
            expected = user.password if user is not None else self._nobody
        if name == self.root and hmac.compare_digest(_basic_header(name, password).encode(), self._basic.encode()):
            right = True  # rooms log in so at each other: no need to spend 20 ms for each
        else:
            with self._hashing:
                right = matches(password, expected)
        if not right or (name != self.root and (user is None or not user.enabled)):
            self._note_wrong(where, name)
            audit.write("login refused", user=name[:64], remote=where, by="password")
            raise AuthError("authentication failure", hint="check user name and password")
        found = user.name if user is not None else self.root
        audit.write("login", user=found, remote=where, by="password")
        return found

    # ---------------------------------------------------------------- tokens

    def token(self, user: str, *, seconds: int = DAY_S, where: str = "") -> str:
        """A token for somebody who is logged in. Raises AuthError when they are gone."""
        if not 1 <= seconds <= LONGEST_S:
            raise AuthError("a token lives for 1 second to 366 days", code="E_BAD_OPTION")
        held = self._user(user)
        if user != self.root and held is None:
            raise AuthError("authentication failure", hint="check user name and password")
        audit.write("token issued", user=user, remote=where, seconds=seconds)
        return self.tokens.issue(user, mark_of(held), seconds=seconds)

    # ---------------------------------------------------------------- parts

    def _user(self, name: str) -> User | None:
        return None if name == self.root else self._catalog().user(name)

    def _digest(self, header: str) -> bytes:
        # keyed blake2 rather than OpenSSL's HMAC, which lets go of the interpreter's lock and has to queue for it again on every request
        return hashlib.blake2b(header.encode(), key=self._secret).digest()

    def _remember(self, header: str, what: _Remembered) -> None:
        with self._lock:
            self._remembered[self._digest(header)] = what
            while len(self._remembered) > _REMEMBERED:
                self._remembered.popitem(last=False)

    def _slow_down(self, where: str, name: str) -> None:
        minute, count = self._wrong.get((where, name[:64]), (0, 0))
        if minute == self._clock.now() // 60_000_000_000 and count >= _WRONG_A_MINUTE:
            raise OverloadError("too many wrong logins from this address", hint="try again in a minute")

    def _note_wrong(self, where: str, name: str) -> None:
        now, key = self._clock.now() // 60_000_000_000, (where, name[:64])
        with self._lock:
            minute, count = self._wrong.pop(key, (now, 0))
            self._wrong[key] = (now, count + 1 if minute == now else 1)
            while len(self._wrong) > _REMEMBERED:
                self._wrong.popitem(last=False)


def _basic_header(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _basic(value: str) -> tuple[str, str]:
    try:
        text = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode()  # some clients leave the padding out
    except (binascii.Error, UnicodeDecodeError) as wrong:
        raise AuthError("invalid basic auth") from wrong
    return _pair(text)


def _pair(text: str) -> tuple[str, str]:
    user, colon, password = text.partition(":")
    if not colon or not user or not password:
        raise AuthError("invalid basic auth", hint="user and password, separated by a colon, neither of them empty")
    return user, password


def query_credentials(query: Mapping[str, str]) -> str | None:
    """InfluxDB 1 clients may put `u` and `p` into the URL: the same as a basic auth header."""
    if "u" not in query or "p" not in query:
        return None
    return _basic_header(query["u"], query["p"])

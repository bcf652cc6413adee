"""Who somebody is: `Authorization` headers checked against the mesh's own user, the catalog's
users, and tokens.

A password check costs tens of milliseconds by design; so a header that was accepted is remembered
as a keyed digest, together with the password it was checked against, and forgotten when that
changes. `known` never blocks; `admit` is for event loops, `check` for threads. The mesh's own
services (root's password), tokens and what was accepted before are recognised at once: neither
others' wrong logins nor the queue of hashes holds them up. Refused: keeping or logging a password.
Every login, accepted or not, is audited; what somebody may do is `penstock.auth.access`'s.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import Future

from penstock.auth.accepted import AcceptedHeaders, AcceptedLogin
from penstock.auth.hashing import HashQueue
from penstock.auth.passwords import hash_setting, matches
from penstock.auth.tokens import DAY_S, LONGEST_S, Tokens, looks_like_one, mark_of
from penstock.auth.wrong_logins import WrongLogins
from penstock.basic_auth import basic_header
from penstock.catalog.model import User
from penstock.catalog.view import Catalog
from penstock.errors import AuthError
from penstock.runtime import audit, log
from penstock.runtime.clock import Clock

_log = log.get("penstock.login")
_KEY_BYTES = 48
_NEVER = 2**62
#: schemes whose value may be a token
_TOKEN_SCHEMES = ("bearer", "token", "taosd")
#: parts of a URL that InfluxDB 1 clients may put user and password into
USER_PARAMETER = "u"
PASSWORD_PARAMETER = "p"
#: and that TDengine's clients may put a token into
TOKEN_PARAMETER = "token"


class Login:
    """One per process. Any thread."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        root: str,
        password: str,
        clock: Clock,
        key: str | None = None,
        learn: Callable[[str, str], None] | None = None,
    ) -> None:
        """
        Args:
            catalog: what users there are now.
            root: the mesh's own user; can log in also while there is no catalog.
            password: of that user.
            clock: for what expires.
            key: the mesh's signing key; without one tokens made here are good here only.
            learn: told user and password once they were right; must neither block nor raise.
        """
        self._catalog = catalog
        self.root = root
        self._clock = clock
        self._nobody = hash_setting(secrets.token_urlsafe())
        self._password = password.encode()
        if key is None:
            _log.warning(
                "there is no signing key: tokens made here are good here only",
                hint="set PENSTOCK_TOKEN_KEY_FILE",
            )
        self.tokens = Tokens(key or secrets.token_urlsafe(_KEY_BYTES), clock)
        self._root_mark = self.tokens.root_mark(password)
        self._accepted = AcceptedHeaders()
        self._hashes = HashQueue()
        self._wrong = WrongLogins(clock)
        self._learn = learn

    # ---------------------------------------------------------------- headers

    def recall(self, header: str | None) -> str | None:
        """Return the user of a header that was accepted before and still would be, or None if
        `check` has to look at it. Never blocks.
        """
        if not header:
            return None
        found = self._accepted.find(header)
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
        """The user an `Authorization` header stands for. Blocks for tens of milliseconds at a new
        password.

        Raises:
            AuthError: there is none, or it is wrong.
            OverloadError: too many wrong ones from this address, or too many wait to be checked.
        """
        found = self._attempt(header, where)
        return found if isinstance(found, str) else found.result()

    async def admit(self, header: str | None, *, where: str = "") -> str:
        """Do what `check` does without blocking the event loop or its worker threads."""
        return await _outcome(self._attempt(header, where))

    def _attempt(self, header: str | None, where: str) -> str | Future[str]:
        if not header:
            raise AuthError(
                "no auth info", hint="send basic auth, or a token as Authorization: Bearer …"
            )
        header = header.strip()
        found = self.recall(header)
        if found is not None:
            return found
        scheme, value = _split(header)
        if is_token(header):
            return self._by_token(header, value, where)
        if scheme == "taosd":
            raise AuthError(
                "unknown or expired token", hint="GET /rest/login/<user>/<password> gives a new one"
            )
        if scheme == "basic":
            name, password = _basic(value)
        elif scheme in _TOKEN_SCHEMES:  # InfluxDB 2 clients: the token may be user:password
            name, password = _pair(value)
        else:
            raise AuthError(
                "invalid auth type", hint="Basic, or Bearer with a token of POST /v1/tokens"
            )
        return self._by_password(name, password, where, header)

    def _by_token(self, header: str, token: str, where: str) -> str:
        try:
            claims = self.tokens.read(token)
            name = self.still(claims.user, claims.mark)
        except AuthError as refused:
            # a good token is never held up by wrong ones from the same address
            self._wrong.require(where, "")
            self._wrong.note(where, "")
            audit.write("login refused", user="", remote=where, by="token", reason=refused.message)
            raise
        audit.write("login", user=name, remote=where, by="token", token=claims.id)
        self._accepted.keep(header, AcceptedLogin(name, claims.mark, claims.expires))
        return name

    def expiry(self, header: str | None) -> int | None:
        """Return when the token in *header* expires, in seconds since 1970; None for a password.

        Raises:
            AuthError: the token is not valid.
        """
        if header is None or not is_token(header):
            return None
        return self.tokens.read(_split(header)[1]).expires

    def require_current(self, header: str) -> None:
        """Raise AuthError when the token in *header* has expired, or its user may no longer log in.
        Unlike `check`, this is no attempt: nothing is counted or audited.
        """
        claims = self.tokens.read(_split(header)[1])
        self.still(claims.user, claims.mark)

    def still(self, name: str, mark: str) -> str:
        """The name of the user a token was given to. Raises AuthError when its rights are gone."""
        user = self._user(name)
        gone = name != self.root and (user is None or not user.enabled)
        if gone or not hmac.compare_digest(self._mark(user), mark):
            raise AuthError(
                "the token was given to a user who is gone or has another password now",
                hint="log in again",
            )
        return name

    def mark(self, name: str) -> str:
        """Return what ties a session or a token of the user *name* to its password as it is now."""
        return self._mark(self._user(name))

    # ---------------------------------------------------------------- passwords

    def login(self, name: str, password: str, *, where: str = "") -> str:
        """Check a password; the user's name as it was created. Blocks. Raises AuthError,
        OverloadError.
        """
        found = self._by_password(name, password, where, basic_header(name, password))
        return found if isinstance(found, str) else found.result()

    async def log_in(self, name: str, password: str, *, where: str = "") -> str:
        """Do what `login` does without blocking the event loop or its worker threads."""
        return await _outcome(
            self._by_password(name, password, where, basic_header(name, password))
        )

    def _by_password(self, name: str, password: str, where: str, header: str) -> str | Future[str]:
        plain = basic_header(name, password)
        found = self.recall(plain)
        if found is not None:
            self._accepted.keep(header, AcceptedLogin(found, self.mark(found), _NEVER))
            return found
        if name == self.root and hmac.compare_digest(password.encode(), self._password):
            return self._accept(self.root, where, header)
        self._wrong.require(where, name)
        user = self._user(name)

        def compare() -> str:
            # an unknown user costs as much time as a wrong password
            right = matches(password, user.password if user is not None else self._nobody)
            if not right or user is None or not user.enabled:
                self._wrong.note(where, name)
                audit.write("login refused", user=name[:64], remote=where, by="password")
                raise AuthError("authentication failure", hint="check user name and password")
            self._accepted.keep(plain, AcceptedLogin(user.name, mark_of(user), _NEVER))
            if self._learn is not None:
                self._learn(user.name, password)
            return self._accept(user.name, where, header, user)

        return self._hashes.submit(self._accepted.digest(plain), where, compare)

    def _accept(self, name: str, where: str, header: str, user: User | None = None) -> str:
        audit.write("login", user=name, remote=where, by="password")
        self._accepted.keep(header, AcceptedLogin(name, self._mark(user), _NEVER))
        return name

    # ---------------------------------------------------------------- tokens

    def token(
        self, user: str, *, seconds: int | None = None, until: int | None = None, where: str = ""
    ) -> str:
        """A token for somebody who is logged in.

        Args:
            seconds: how long it lives; a day when nothing is said, or as long as *until* lets it.
            until: seconds since 1970; when what its owner came with, itself a token or a session,
                ends.

        Raises:
            AuthError: the user is gone, or the token would live too long.
        """
        left = LONGEST_S if until is None else until - self._clock.now() // 10**9
        wanted = min(DAY_S, left) if seconds is None else seconds
        if not 1 <= wanted <= LONGEST_S:
            raise AuthError("a token lives for 1 second to 366 days", code="E_BAD_OPTION")
        if wanted > left:
            hint = "ask for fewer seconds, or send the password"
            raise AuthError(
                f"a token makes no token that outlives it: it ends in {left} s",
                code="E_FORBIDDEN",
                hint=hint,
            )
        held = self._user(user)
        if user != self.root and held is None:
            raise AuthError("authentication failure", hint="check user name and password")
        audit.write("token issued", user=user, remote=where, seconds=wanted)
        return self.tokens.issue(user, self._mark(held), seconds=wanted)

    # ---------------------------------------------------------------- parts

    def _user(self, name: str) -> User | None:
        return None if name == self.root else self._catalog().user(name)

    def _mark(self, user: User | None) -> str:
        return self._root_mark if user is None else mark_of(user)


async def _outcome(found: str | Future[str]) -> str:
    if isinstance(found, str):
        return found
    # several connections may wait for one check: one that gives up ends it for nobody
    return await asyncio.shield(asyncio.wrap_future(found))


def is_token(header: str) -> bool:
    """Tell a header that holds a token from one that holds a password."""
    scheme, value = _split(header)
    return scheme in _TOKEN_SCHEMES and looks_like_one(value)


def _split(header: str) -> tuple[str, str]:
    scheme, _, value = header.strip().partition(" ")
    return scheme.lower(), value.strip()


def _basic(value: str) -> tuple[str, str]:
    try:
        text = base64.b64decode(
            value + "=" * (-len(value) % 4), validate=True
        ).decode()  # some clients leave the padding out
    except (binascii.Error, UnicodeDecodeError) as wrong:
        raise AuthError("invalid basic auth") from wrong
    return _pair(text)


def _pair(text: str) -> tuple[str, str]:
    user, colon, password = text.partition(":")
    if not colon or not user or not password:
        raise AuthError(
            "invalid basic auth",
            hint="user and password, separated by a colon, neither of them empty",
        )
    return user, password


def query_credentials(query: Mapping[str, str]) -> str | None:
    """Return the header that a URL's parameters stand for: `token` (TDengine's clients) is a bearer
    token, `u` and `p` (InfluxDB 1) are basic auth; None: it has none of them.
    """
    if TOKEN_PARAMETER in query:
        return f"Bearer {query[TOKEN_PARAMETER]}"
    if USER_PARAMETER not in query or PASSWORD_PARAMETER not in query:
        return None
    return basic_header(query[USER_PARAMETER], query[PASSWORD_PARAMETER])

"""Who may come in: users, passwords and tokens.

Owns the users (root only so far) as scrypt hashes in memory, and the tokens given out by `/rest/login`. A password check costs tens of
milliseconds by design; so a header that was accepted once is remembered as a keyed digest and found again by that. Refuses to keep or
log any password. Every login, accepted or not, leaves an audit line.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Mapping

from penstock import log
from penstock.errors import AuthError

_log = log.get("gateway.auth")
_REMEMBERED = 1024
_SALT_BYTES = 16


def _hash(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=2**14, r=8, p=1, maxmem=64 << 20)


class Users:
    """Checks credentials. One instance per process; not shared between threads."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._hashes: dict[str, tuple[bytes, bytes]] = {}
        for user, password in passwords.items():
            salt = secrets.token_bytes(_SALT_BYTES)
            self._hashes[user] = (salt, _hash(password, salt))
        # an unknown user costs as much time as a wrong password
        self._nobody = (secrets.token_bytes(_SALT_BYTES), secrets.token_bytes(64))
        self._secret = secrets.token_bytes(32)
        self._remembered: OrderedDict[bytes, str] = OrderedDict()

    def login(self, user: str, password: str, *, where: str = "") -> str:
        """Check a password; the user's name. Raises AuthError."""
        salt, expected = self._hashes.get(user, self._nobody)
        if not hmac.compare_digest(_hash(password, salt), expected):
            _log.warning("login refused", audit=True, user=user[:64], remote=where)
            raise AuthError("authentication failure", hint="check user name and password")
        _log.info("login", audit=True, user=user, remote=where)
        return user

    def token(self, user: str, password: str, *, where: str = "") -> str:
        """A token for `Authorization: Taosd …`; good as long as this process lives and a thousand others were not given out since."""
        name = self.login(user, password, where=where)
        token = secrets.token_urlsafe(36)
        self._remember(self._digest(f"Taosd {token}"), name)
        return token

    def check(self, header: str | None, *, where: str = "") -> str:
        """The user an `Authorization` header stands for. Raises AuthError."""
        if not header:
            raise AuthError("no auth info", hint="send basic auth")
        header = header.strip()
        digest = self._digest(header)
        known = self._remembered.get(digest)
        if known is not None:
            self._remembered.move_to_end(digest)
            return known
        scheme, _, value = header.partition(" ")
        if scheme.lower() == "taosd":
            raise AuthError("unknown or expired token", hint="GET /rest/login/<user>/<password> gives a new one")
        if scheme.lower() == "basic":
            user, password = _basic(value)
        elif scheme.lower() in ("token", "bearer"):  # InfluxDB 2 clients: the token is user:password
            user, password = _pair(value.strip())
        else:
            raise AuthError("invalid auth type", hint="use Basic, or Taosd with a token from /rest/login")
        self._remember(digest, self.login(user, password, where=where))
        return user

    def _digest(self, header: str) -> bytes:
        # keyed blake2 rather than OpenSSL's HMAC, which lets go of the interpreter's lock and has to queue for it again on every request
        return hashlib.blake2b(header.encode(), key=self._secret).digest()

    def _remember(self, digest: bytes, user: str) -> None:
        self._remembered[digest] = user
        while len(self._remembered) > _REMEMBERED:
            self._remembered.popitem(last=False)


def _basic(value: str) -> tuple[str, str]:
    try:
        text = base64.b64decode(value.strip(), validate=True).decode()
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
    return "Basic " + base64.b64encode(f"{query['u']}:{query['p']}".encode()).decode()

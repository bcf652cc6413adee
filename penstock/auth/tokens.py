"""Signed tokens that stand for a user until they expire; every service can check them without
asking another.

A token is a JWT (HS256) under the mesh's signing key, a random secret (`PENSTOCK_TOKEN_KEY`).
`mark` ties it to the user's password as it was: a new password, ENABLE 0, DROP USER and REVOKE
TOKENS end the tokens given out before. A `login` token is what `penstock up` prints: it is good
once, for a session in a browser. The only file that calls jwt.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import jwt

from penstock.errors import AuthError
from penstock.runtime.clock import Clock

if TYPE_CHECKING:
    from penstock.catalog.model import User

Kind = Literal["access", "login"]
DAY_S = 86_400
LONGEST_S = 366 * DAY_S
#: how long the link that `penstock up` prints may be opened, and the session that it begins
LOGIN_S = 900
SESSION_S = 12 * 3600
_ISSUER = "penstock"
_ALGORITHM = "HS256"


@dataclass(frozen=True)
class Claims:
    """The content of a token; `expires` in seconds since 1970."""

    user: str
    mark: str
    kind: Kind
    id: str
    expires: int


class Tokens:
    """Makes and reads the tokens of one mesh."""

    def __init__(self, key: str, clock: Clock) -> None:
        """
        Args:
            key: the mesh's signing key.
            clock: says what has expired.
        """
        self._key = key.encode()
        self._clock = clock

    def issue(self, user: str, mark: str, *, seconds: int = DAY_S, kind: Kind = "access") -> str:
        now = self._clock.now() // 10**9
        body = {
            "iss": _ISSUER,
            "sub": user,
            "mrk": mark,
            "aud": kind,
            "jti": secrets.token_hex(8),
            "iat": now,
            "exp": now + seconds,
        }
        return jwt.encode(body, self._key, algorithm=_ALGORITHM)

    def read(self, token: str, kind: Kind = "access") -> Claims:
        """Read *token*. Raises AuthError: not ours, of another kind, or expired."""
        try:
            body: dict[str, Any] = jwt.decode(
                token,
                self._key,
                algorithms=[_ALGORITHM],
                audience=kind,
                issuer=_ISSUER,
                options={
                    "require": ["exp", "sub", "jti"],
                    "verify_exp": False,
                    "verify_iat": False,
                },
            )
        except jwt.PyJWTError:
            raise AuthError(
                "this token is not valid here", hint="POST /v1/tokens gives a new one"
            ) from None
        if int(body["exp"]) <= self._clock.now() // 10**9:
            raise AuthError("the token has expired", hint="POST /v1/tokens gives a new one")
        return Claims(
            str(body["sub"]), str(body.get("mrk", "")), kind, str(body["jti"]), int(body["exp"])
        )

    def root_mark(self, password: str) -> str:
        """Return what ties a token of root to its password; tells nothing about it without the
        key.
        """
        key = hashlib.blake2b(self._key).digest()
        return hashlib.blake2b(password.encode(), key=key, digest_size=12).hexdigest()


def looks_like_one(text: str) -> bool:
    """Tell whether *text* has the form of a token, not that of `user:password`."""
    return text.count(".") == 2 and ":" not in text


def mark_of(user: User | None) -> str:
    """What ties a token to a user's password and generation; empty for root, who has a mark of the
    key's.
    """
    if user is None:
        return ""
    return hashlib.blake2b(
        f"{user.id} {user.generation} {user.password}".encode(), digest_size=12
    ).hexdigest()

from __future__ import annotations

import hmac

import jwt
import pytest

from penstock.auth.tokens import Tokens, looks_like_one, mark_of
from penstock.catalog.model import User
from penstock.errors import AuthError
from penstock.runtime.clock import ManualClock

CLOCK = ManualClock(1_772_355_600 * 10**9)
KEY = "k" * 48
TOKENS = Tokens(KEY, CLOCK)


def test_a_token_says_who_and_until_when() -> None:
    claims = TOKENS.read(TOKENS.issue("ann", "m", seconds=60))
    assert (claims.user, claims.mark, claims.expires) == ("ann", "m", 1_772_355_660)


def test_it_expires() -> None:
    token = TOKENS.issue("ann", "m", seconds=60)
    later = Tokens(KEY, ManualClock(CLOCK.now() + 60 * 10**9))
    with pytest.raises(AuthError, match="expired"):
        later.read(token)


@pytest.mark.parametrize(
    "token",
    [
        "",
        "a.b.c",
        Tokens("o" * 48, CLOCK).issue("ann", "m"),
        TOKENS.issue("ann", "m", kind="login"),
        jwt.encode(
            {"iss": "penstock", "sub": "root", "aud": "access", "jti": "1", "exp": 2**40},
            "",
            algorithm="none",
        ),
        TOKENS.issue("ann", "m")[:-4] + "AAAA",
        # as tokens were signed before there was a key of their own
        jwt.encode(
            {"iss": "penstock", "sub": "root", "aud": "access", "jti": "1", "exp": 2**40},
            hmac.digest(b"secret", b"penstock tokens", "sha256"),
            algorithm="HS256",
        ),
    ],
)
def test_what_is_not_ours_is_worth_nothing(token: str) -> None:
    with pytest.raises(AuthError):
        TOKENS.read(token)


def test_the_mark_changes_with_password_and_generation() -> None:
    marks = {mark_of(User(1, "a", p, generation=g)) for p in ("x", "y") for g in (0, 1)} | {
        mark_of(User(2, "a", "x")),
        mark_of(None),
    }
    assert len(marks) == 6


def test_roots_mark_changes_with_its_password_and_tells_nothing_without_the_key() -> None:
    assert (
        len(
            {
                TOKENS.root_mark("secret"),
                TOKENS.root_mark("other"),
                Tokens("o" * 48, CLOCK).root_mark("secret"),
            }
        )
        == 3
    )


def test_a_token_is_told_from_user_and_password() -> None:
    assert looks_like_one(TOKENS.issue("a", "")) and not looks_like_one("a:b.c.d")

from __future__ import annotations

import base64

import pytest

from gateway.auth import Users, query_credentials
from penstock.errors import AuthError

USERS = Users({"root": "secret"})


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize("header", [basic("root:secret"), "Token root:secret", "Bearer root:secret"])
def test_known_credentials(header: str) -> None:
    assert USERS.check(header) == "root"
    assert USERS.check(header) == "root"  # remembered


@pytest.mark.parametrize(
    "header",
    [None, "", basic("root:wrong"), basic("nobody:secret"), basic("root"), "Basic !!!", "Taosd nothing", "Digest x", basic("root:")],
)
def test_everything_else_is_refused(header: str | None) -> None:
    with pytest.raises(AuthError):
        USERS.check(header)


def test_a_token_from_login_is_as_good_as_the_password() -> None:
    token = USERS.token("root", "secret")
    assert USERS.check(f"Taosd {token}") == "root"
    with pytest.raises(AuthError):
        USERS.token("root", "guess")


def test_credentials_in_the_url() -> None:
    assert USERS.check(query_credentials({"u": "root", "p": "secret"})) == "root"
    assert query_credentials({"u": "root"}) is None

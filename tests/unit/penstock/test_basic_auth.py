from __future__ import annotations

import base64

import pytest

from penstock.basic_auth import basic_header


@pytest.mark.parametrize(
    ("user", "password"), [("root", "x"), ("ann", "with:colon"), ("änne", "schlüssel"), ("ann", "")]
)
def test_a_header_says_user_and_password(user: str, password: str) -> None:
    scheme, _, value = basic_header(user, password).partition(" ")
    assert scheme == "Basic"
    assert base64.b64decode(value, validate=True).decode() == f"{user}:{password}"

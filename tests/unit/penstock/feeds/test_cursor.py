from __future__ import annotations

import base64
import json
import tracemalloc
import zlib

import pytest

from penstock.feeds.cursor import MAX_INFLATED, MAX_TOKEN, Cursor, TokenError


def token(body: bytes) -> str:
    return base64.urlsafe_b64encode(zlib.compress(body, 9)).decode()


def test_a_token_of_many_producers_is_read() -> None:
    cursor = Cursor(
        {p: p * 1000 for p in range(64)},
        {f"{i % 64}/stream-{i}.operator": (i, 1) for i in range(10_000)},
    )
    assert Cursor.from_token(cursor.token()) == cursor


def test_a_token_is_inflated_up_to_its_bound_only() -> None:
    bomb = token(b" " * (200 << 20))
    tracemalloc.start()
    with pytest.raises(TokenError):
        Cursor.from_token(bomb)
    assert tracemalloc.get_traced_memory()[1] < 2 * MAX_INFLATED + len(bomb) * 2
    tracemalloc.stop()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "ü",
        "\ud83d",
        "A" * (MAX_TOKEN + 4),
        token(b'{"o": {"0": 1}, "p": {}}')[:-8],
        token(b"[" * 100_000),
        token(b'{"o": {"0": 1e999}, "p": {}}'),
        token(b'{"o": {"0": 1}, "p": {"a": []}}'),
        token(b'{"o": {"0": ' + b"9" * 30 + b'}, "p": {}}'),
        token(b'{"o": {"-7": 1}, "p": {}}'),
        token(json.dumps({"o": {"9" * 5000: 1}, "p": {}}).encode()),
    ],
)
def test_anything_else_is_one_error(text: str) -> None:
    with pytest.raises(TokenError):
        Cursor.from_token(text)

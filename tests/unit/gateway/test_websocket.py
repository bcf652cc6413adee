from __future__ import annotations

import asyncio
from typing import Any, cast

import pyarrow as pa
import pytest
from aiohttp import WSMessage, WSMsgType, web

from gateway.websocket import _Connection, from_binary, from_text
from penstock.client.wire import to_stream
from penstock.errors import SchemaError
from penstock.rows import arrow_reader


def test_text_frames() -> None:
    assert from_text('{"seq": 7, "table": "a.b", "rows": [{"x": 1}], "key": 5}') == (
        7,
        "a.b",
        [{"x": 1}],
        "5",
    )
    assert from_text('{"rows": []}') == (None, None, [], None)


def test_binary_frames() -> None:
    table = pa.table({"x": [1, 2]})
    seq, name, rows, key = from_binary(
        to_stream(table, {"penstock.seq": "12", "penstock.table": "a.b"})
    )
    assert (seq, name, key) == (12, "a.b", None)
    # once it is known that they may be written
    assert rows.read().equals(table)
    found = from_binary(to_stream(table, {"penstock.seq": "x", "penstock.key": "k"}))
    assert (found[0], found[3]) == ("x", "k")


@pytest.mark.parametrize(
    "frame", ["", "[]", "1", '{"rows": {}}', '{"seq": 1}', '{"rows": [NaN]}', "[" * 100_000]
)
def test_frames_that_are_none(frame: str) -> None:
    with pytest.raises(SchemaError):
        from_text(frame)


@pytest.mark.parametrize("frame", [b"", b"x" * 100, to_stream(pa.table({"x": [1]}))[:40]])
def test_binary_frames_that_are_none(frame: bytes) -> None:
    with pytest.raises(SchemaError):
        from_binary(frame)


class Silent(web.WebSocketResponse):
    """A connection over which frames come, and nothing can be sent."""

    def __aiter__(self) -> Silent:
        return self

    async def __anext__(self) -> WSMessage:
        return WSMessage(WSMsgType.TEXT, "{}", None)

    @property
    def closed(self) -> bool:
        return False

    async def send_str(self, data: str, compress: int | None = None) -> None:
        raise RuntimeError("a bug")


async def test_a_connection_ends_that_can_get_no_answers() -> None:
    connection = _Connection(Silent(), cast(Any, None), 2, "a.b", "root", "", arrow_reader.DEFAULT)
    async with asyncio.timeout(30):
        with pytest.raises(ExceptionGroup):
            await connection.serve()

from __future__ import annotations

import asyncio

import pyarrow as pa
import pytest

from gateway.ingest import parse_body
from penstock.client.wire import to_stream
from penstock.errors import SchemaError


async def test_one_row_several_rows_and_lines() -> None:
    assert await parse_body("application/json", b'{"a": 1}') == [{"a": 1}]
    assert await parse_body("application/json", b'[{"a": 1}, {"a": 2}]') == [{"a": 1}, {"a": 2}]
    assert await parse_body("application/x-ndjson", b'{"a": 1}\r\n\n {"a": 2}\n') == [
        {"a": 1},
        {"a": 2},
    ]


@pytest.mark.parametrize(
    ("kind", "body", "code"),
    [
        ("application/json", b"", "E_BODY"),
        ("application/json", b"5", "E_BODY"),
        ("application/json", b'{"a": Infinity}', "E_BODY"),
        ("application/json", b'{"a": "\\ud83d"}', "E_BODY"),
        ("application/json", b'{"\\uDE00": 1}', "E_BODY"),
        ("application/json", b'{"a": ' + b"9" * 5000 + b"}", "E_BODY"),
        ("application/json", b"[" * 100_000, "E_BODY"),
        ("application/x-ndjson", b'{"a": 1},{"a": 2}', "E_BODY"),
        ("text/plain", b"x", "E_MEDIA_TYPE"),
    ],
)
async def test_what_is_refused(kind: str, body: bytes, code: str) -> None:
    with pytest.raises(SchemaError) as caught:
        await parse_body(kind, body)
    assert caught.value.code == code


async def test_whole_pairs_of_surrogates_and_backslashes_are_text() -> None:
    assert await parse_body("application/json", rb'{"a": "\ud83d\ude00 \\ud83d"}') == [
        {"a": "\U0001f600 \\ud83d"}
    ]


async def test_a_large_body_is_read_beside_the_event_loop() -> None:
    """The loop turns while rows are read, checked and counted: in its own thread it would not turn
    once.
    """
    texts = pa.array([f"ü {i}" for i in range(300_000)])
    body = to_stream(pa.table({"a": texts, "b": texts}))
    reading = asyncio.create_task(parse_body("application/vnd.apache.arrow.stream", body))
    turns = 0
    while not reading.done():
        await asyncio.sleep(0)
        turns += 1
    assert (await reading).num_rows == 300_000
    assert turns > 20

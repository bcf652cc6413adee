"""Bytes that no client sends: an error or the end of the connection, never a bug, and bounded
memory.
"""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fuzz.endpoints import mutated
from tests.unit.gateway.postgres.kit import (
    PASSWORD,
    PgWire,
    Wire,
    bind,
    message,
    parse,
    serving,
    text,
)

GOOD = [
    message(b"Q", text("SELECT 1; SHOW ALL")),
    message(
        b"Q", text("SELECT relname::text, $$a$$ FROM pg_class WHERE oid = 'd.plain'::regclass")
    ),
    message(b"P", parse("s", "SELECT n FROM plain WHERE n = $1::int", (23, 0)))
    + message(b"D", b"Ss\0")
    + message(b"B", bind("p", "s", [b"1", None], (0, 1), (1,)))
    + message(b"D", b"Pp\0")
    + message(b"E", text("p") + struct.pack("!i", 1))
    + message(b"C", b"Pp\0")
    + message(b"H", b""),
    message(b"p", text("again")),
]
STARTUP = b"user\0root\0database\0d\0options\0-c search_path=d\0\0"
#: mutations of each good message
_TRIES = 40


@pytest.fixture
async def wire(tmp_path: Path) -> AsyncIterator[Wire]:
    async with serving(tmp_path, max_body=4096, body_seconds=0.2, header_seconds=0.5) as made:
        yield made


async def _ends_or_answers(client: PgWire) -> None:
    client.writer.write(message(b"S", b""))
    async with asyncio.timeout(30):
        while True:
            reply = await client.reply()
            if reply.ended or reply.kinds:
                return


@pytest.mark.parametrize("number", range(len(GOOD)))
async def test_mutated_messages_are_answered_or_end_the_connection(
    wire: Wire, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(number)
    client = await PgWire.log_in(wire, database="d")
    for _ in range(_TRIES):
        if client.writer.is_closing() or client.reader.at_eof():
            client = await PgWire.log_in(wire, database="d")
        client.writer.write(mutated(GOOD[number], chance))
        await _ends_or_answers(client)
    assert "found a bug" not in caplog.text
    after = await PgWire.log_in(wire, database="d")
    assert (await after.query("SELECT 1")).rows == [["1"]]


async def test_mutated_beginnings_are_refused(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(7)
    whole = struct.pack("!ii", len(STARTUP) + 8, 3 << 16) + STARTUP
    for good in (
        whole,
        struct.pack("!ii", 8, 80_877_103),
        struct.pack("!iiII", 16, 80_877_102, 1, 2),
    ):
        for _ in range(_TRIES // 2):
            client = await PgWire.open(wire.port)
            client.writer.write(mutated(good, chance) + message(b"p", text(PASSWORD)))
            client.writer.write_eof()
            async with asyncio.timeout(30):
                await client.reader.read()
    assert "found a bug" not in caplog.text


async def test_a_length_that_is_too_large_ends_the_connection(wire: Wire) -> None:
    client = await PgWire.log_in(wire)
    client.writer.write(b"Q" + struct.pack("!i", 2**31 - 1) + b"x" * 1000)
    reply = await client.reply()
    assert reply.ended and reply.error["C"] == "08P01"


async def test_a_message_that_stops_in_the_middle_ends_the_connection(wire: Wire) -> None:
    client = await PgWire.log_in(wire)
    client.writer.write(b"Q" + struct.pack("!i", 100) + b"SELECT")
    assert (await client.reply()).ended


async def test_a_connection_keeps_bounded_statements_and_portals(wire: Wire) -> None:
    client = await PgWire.log_in(wire)
    await client.query("BEGIN")
    for number in range(300):
        client.send(b"P", parse(f"s{number}", "SELECT 'a long enough statement to fill it up'"))
        client.send(b"B", bind(f"p{number}", f"s{number}", []))
    client.send(b"S")
    reply = await client.reply()
    assert reply.error["C"] == "53400" and reply.kinds.count("1") < 150


async def test_values_with_impossible_counts_are_refused(wire: Wire) -> None:
    client = await PgWire.log_in(wire)
    client.send(b"B", text("") + text("") + b"\xff\xff" * 8)
    reply = await client.reply(until=b"EZ")
    assert reply.error["C"] == "08P01"

"""The PostgreSQL wire over real sockets: both protocols, errors, transactions, cancelling."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.rows.parameters import Moment
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

AT = datetime(2026, 3, 1, 9, 0, 5, 500_000, tzinfo=UTC)
ROWS = pa.table(
    {
        "ts": pa.array([AT, None], pa.timestamp("ms", "UTC")),
        "volts": pa.array([219.5, float("nan")]),
        "price": pa.array([Decimal("-12345.60"), Decimal("0.00")], pa.decimal128(10, 2)),
        "n": pa.array([-3, None], pa.int32()),
        "ok": pa.array([True, False]),
        "raw": pa.array([b"\x00\xff", None], pa.binary()),
        "who": ["ü", None],
    }
)


@pytest.fixture
async def wire(tmp_path: Path) -> AsyncIterator[Wire]:
    async with serving(tmp_path) as made:
        yield made


@pytest.fixture
async def client(wire: Wire) -> AsyncIterator[PgWire]:
    made = await PgWire.log_in(wire, database="d")
    yield made
    await made.close()


# -------------------------------------------------------------------- beginnings


async def test_a_connection_begins_with_settings_and_a_key(client: PgWire) -> None:
    told = dict(body.split(b"\0")[:2] for kind, body in client.begun.messages if kind == b"S")
    assert told[b"server_version"] == b"15.0" and told[b"client_encoding"] == b"UTF8"
    assert told[b"TimeZone"] == b"UTC" and told[b"default_transaction_read_only"] == b"on"
    assert client.begun.kinds.endswith("KZ") and client.begun.status == "I"


async def test_a_newer_minor_version_is_told_the_one_that_is_spoken(wire: Wire) -> None:
    client = await PgWire.open(wire.port)
    client.begin(version=(3 << 16) + 2, **{"user": "root", "_pq_.odd": "1"})
    assert (await client.reply(until=b"R")).kinds == "R"
    client.send(b"p", text(PASSWORD))
    reply = await client.reply()
    assert dict(reply.messages)[b"v"] == struct.pack("!ii", 0, 1) + b"_pq_.odd\0"


async def test_settings_come_with_the_beginning(wire: Wire) -> None:
    client = await PgWire.log_in(
        wire, database="d", TimeZone="Europe/Berlin", options="-c statement_timeout=5s"
    )
    assert (await client.query("SHOW timezone; SHOW statement_timeout")).rows == [
        ["Europe/Berlin"],
        ["5000"],
    ]


async def test_a_database_that_is_none_is_refused(wire: Wire) -> None:
    client = await PgWire.log_in(wire, database="nowhere")
    assert client.begun.ended and client.begun.error["C"] == "3F000"


# -------------------------------------------------------------------- the simple protocol


async def test_rows_come_as_text_of_postgresqls(wire: Wire, client: PgWire) -> None:
    wire.store.answer = ROWS
    reply = await client.query("SELECT * FROM meters")
    assert reply.kinds == "TDDCZ" and reply.tags == ["SELECT 2"]
    assert [oid for _, oid in reply.columns] == [1184, 701, 1700, 23, 16, 17, 25]
    assert reply.rows == [
        ["2026-03-01 09:00:05.5+00", "219.5", "-12345.60", "-3", "t", "\\x00ff", "ü"],
        [None, "NaN", "0.00", None, "f", None, None],
    ]


async def test_times_are_in_the_clients_zone(wire: Wire, client: PgWire) -> None:
    wire.store.answer = ROWS.select(["ts"]).slice(0, 1)
    await client.query("SET TIME ZONE 'Asia/Kolkata'")
    assert (await client.query("SELECT ts FROM meters")).rows == [["2026-03-01 14:30:05.5+05:30"]]


async def test_several_statements_are_answered_up_to_the_first_that_fails(client: PgWire) -> None:
    reply = await client.query("SELECT 1; SELECT 'a;b' AS x; FORM d; SELECT 3")
    assert reply.kinds == "TDCTDCEZ" and reply.rows == [["1"], ["a;b"]]
    assert reply.error["C"] == "42601" and reply.error["P"] == "30"


async def test_an_empty_text_is_answered(client: PgWire) -> None:
    assert (await client.query(" ; -- nothing\n")).kinds == "IZ"


async def test_words_of_postgresqls_become_the_dialects(wire: Wire, client: PgWire) -> None:
    reply = await client.query(
        'SELECT "volts"::int FROM penstock."d"."meters" WHERE who = \'a\\b\''
    )
    assert not reply.error
    assert wire.store.asked[-1][1] == (
        "SELECT CAST(`volts` AS INT) FROM `d`.`meters` WHERE who = 'a\\\\b'"
    )


async def test_an_error_names_the_place_in_the_clients_text(client: PgWire) -> None:
    reply = await client.query("SELECT \"volts\"::int,\n  'a\\b' FORM meters x y")
    assert reply.error["C"] == "42601"
    place = int(reply.error["P"])
    assert "SELECT \"volts\"::int,\n  'a\\b' FORM meters x y"[place - 1 :].startswith("FORM")


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO meters VALUES (now, 1)",
        "CREATE TABLE x (ts TIMESTAMP, a INT)",
        "DROP DATABASE d",
        "UPDATE meters SET volts = 1",
        "GRANT READ ON *.* TO ann",
        "PAUSE STREAM s",
        "SET default_transaction_read_only = off",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
    ],
)
async def test_what_would_change_something_is_refused(wire: Wire, client: PgWire, sql: str) -> None:
    changes = len(wire.gateway.writer.changes)
    reply = await client.query(sql)
    assert reply.error["C"] == "25006" and "HTTP" in reply.error["H"]
    assert len(wire.gateway.writer.changes) == changes and wire.gateway.catalog.database("d")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 FROM meters \\; DROP TABLE meters",
        "SELECT 'a\\'; DROP TABLE meters; --'",
        "SELECT E'a\\'; DROP TABLE meters; --'",
        "SELECT $$a'; DROP TABLE meters; --$$",
        'SELECT "a`; DROP TABLE meters; --"',
        "SELECT /* /* */ ; DROP TABLE meters; */ 1 FROM meters",
        "EXPLAIN DROP TABLE meters",
    ],
)
async def test_quotes_smuggle_nothing_past_the_refusal(
    wire: Wire, client: PgWire, sql: str
) -> None:
    await client.query(sql)
    assert wire.gateway.catalog.table("d", "meters") is not None


async def test_other_words_of_postgresqls_say_what_to_do(client: PgWire) -> None:
    reply = await client.query("COPY meters TO STDOUT")
    assert reply.error["C"] == "0A000" and "export" in reply.error["H"]


async def test_lists_of_the_dialect_are_answered(client: PgWire) -> None:
    assert (await client.query("SHOW STABLES")).rows == [["meters"]]
    assert (await client.query("DESCRIBE plain")).rows[0][0] == "ts"
    asked = "SELECT stable_name FROM information_schema.ins_stables"
    assert (await client.query(asked)).rows == [["meters"]]


async def test_use_names_the_database(wire: Wire, client: PgWire) -> None:
    assert (await client.query("USE hidden")).tags == ["USE"]
    assert (await client.query("SHOW search_path")).rows == [["hidden"]]
    assert (await client.query("USE nowhere")).error["C"] == "3F000"


# -------------------------------------------------------------------- transactions


async def test_transactions_are_taken_and_fail_as_postgresqls(client: PgWire) -> None:
    assert (await client.query("BEGIN READ ONLY")).status == "T"
    assert (await client.query("SELECT 1")).status == "T"
    assert (await client.query("SELECT nothing FORM x")).status == "E"
    refused = await client.query("SELECT 1")
    assert refused.error["C"] == "25P02" and refused.status == "E"
    ended = await client.query("COMMIT")
    assert ended.tags == ["ROLLBACK"] and ended.status == "I"
    assert (await client.query("SELECT 1")).rows == [["1"]]


# -------------------------------------------------------------------- the extended protocol


async def test_values_are_bound_and_never_text(wire: Wire, client: PgWire) -> None:
    sql = "SELECT volts FROM meters WHERE site = $2 AND ts >= $1 AND volts > $3 AND site <> $2"
    values: list[bytes | None] = [b"2026-03-01 09:00:00+01", b"it's; DROP", b"1.5"]
    reply = await client.prepared(sql, values)
    assert reply.kinds == "12TDCZ" and not reply.error
    assert wire.store.parameters == [
        "it's; DROP",
        Moment("2026-03-01 09:00:00+01"),
        1.5,
        "it's; DROP",
    ]
    assert wire.store.asked[-1][1].count("?") == 4


async def test_values_come_in_binary(wire: Wire, client: PgWire) -> None:
    micros = struct.pack("!q", int((AT.timestamp() - 946_684_800) * 1_000_000))
    numeric = struct.pack("!hhHh3h", 3, 1, 0x4000, 2, 1, 2345, 6000)
    values: list[bytes | None] = [micros, numeric, None, struct.pack("!q", -7)]
    await client.prepared(
        "SELECT n FROM plain WHERE ts = $1 AND n = $2 AND n = $3 AND n = $4",
        values,
        oids=(1184, 1700, 0, 20),
        formats=(1,),
    )
    assert wire.store.parameters == [
        Moment("2026-03-01T09:00:05.500000+00:00"),
        Decimal("-12345.60"),
        None,
        -7,
    ]


async def test_rows_come_in_binary(wire: Wire, client: PgWire) -> None:
    wire.store.answer = ROWS
    reply = await client.prepared("SELECT * FROM meters", results=(1,))
    micros = int((AT.timestamp() - 946_684_800) * 1_000_000)
    assert reply.raw_rows[0] == [
        struct.pack("!q", micros),
        struct.pack("!d", 219.5),
        struct.pack("!hhHh3h", 3, 1, 0x4000, 2, 1, 2345, 6000),
        struct.pack("!i", -3),
        b"\x01",
        b"\x00\xff",
        "ü".encode(),
    ]
    assert reply.raw_rows[1][2] == struct.pack("!hhHh", 0, 0, 0, 2)


async def test_a_statement_is_described_before_it_has_values(wire: Wire, client: PgWire) -> None:
    columns = b'[["ts", "TIMESTAMP"], ["volts", "DOUBLE"], ["site", "VARCHAR(16)"]]'
    wire.store.answer = pa.table({"plan": ["x"]}).replace_schema_metadata(
        {b"penstock.columns": columns}
    )
    sql = "SELECT ts, volts, site FROM meters WHERE ts > $1 AND site = $2 LIMIT $3"
    client.send(b"P", parse("s", sql))
    client.send(b"D", b"Ss\0")
    client.send(b"S")
    reply = await client.reply()
    assert reply.kinds == "1tTZ"
    assert struct.unpack("!H3I", dict(reply.messages)[b"t"]) == (3, 1184, 25, 20)
    assert reply.columns == [("ts", 1184), ("volts", 701), ("site", 25)]
    assert wire.store.asked[-1][1].startswith("EXPLAIN\n") and len(wire.store.asked) == 1


async def test_rows_of_a_portal_come_some_at_a_time(wire: Wire, client: PgWire) -> None:
    wire.store.answer = pa.table({"n": [1, 2, 3]})
    await client.query("BEGIN")
    client.send(b"P", parse("", "SELECT n FROM plain"))
    client.send(b"B", bind("p", "", []))
    for _ in range(2):
        client.send(b"E", text("p") + struct.pack("!i", 2))
    client.send(b"S")
    reply = await client.reply()
    assert reply.kinds == "12DDsDCZ" and reply.rows == [["1"], ["2"], ["3"]]
    assert len(wire.store.asked) == 1


async def test_after_an_error_all_is_skipped_until_sync(client: PgWire) -> None:
    client.send(b"P", parse("", "SELECT FORM x y"))
    client.send(b"B", bind("", "", []))
    client.send(b"E", text("") + struct.pack("!i", 0))
    client.send(b"P", parse("other", "SELECT 1"))
    client.send(b"S")
    reply = await client.reply()
    assert reply.kinds == "12EZ" and reply.error["P"] == "15"
    client.send(b"D", b"Sother\0")
    client.send(b"S")
    assert (await client.reply()).error["C"] == "26000"


async def test_statements_keep_their_names_until_they_are_closed(client: PgWire) -> None:
    client.send(b"P", parse("s", "SELECT 1 AS one"))
    client.send(b"P", parse("s", "SELECT 2"))
    client.send(b"S")
    assert (await client.reply()).error["C"] == "42P05"
    await client.query('DEALLOCATE "s"')
    client.send(b"P", parse("s", "SELECT $1 AS x"))
    client.send(b"C", b"Ss\0")
    client.send(b"C", b"Ss\0")
    client.send(b"H")
    client.send(b"S")
    assert (await client.reply()).kinds == "133Z"


async def test_what_does_not_fit_is_refused(wire: Wire, client: PgWire) -> None:
    few = await client.prepared("SELECT n FROM plain WHERE n = $1", [])
    assert few.error["C"] == "22P02"
    odd = await client.prepared("SELECT n FROM plain WHERE n = $1", [b"x"])
    assert odd.error["C"] == "22P02" and "$1" in odd.error["M"]
    two = await client.prepared("SELECT 1; SELECT 2")
    assert two.error["C"] == "42601"
    assert not wire.store.asked


# -------------------------------------------------------------------- ends


class _Slow:
    """A store that answers when it is told to."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def select_for(self, user: str, question: object) -> pa.Table:
        self.begun.set()
        await asyncio.Event().wait()


async def test_another_connection_ends_a_statement_by_its_key(wire: Wire, client: PgWire) -> None:
    slow = _Slow()
    wire.store.select_for = slow.select_for  # type: ignore[method-assign, assignment]
    client.send(b"Q", text("SELECT n FROM plain"))
    await slow.begun.wait()
    key = dict(client.begun.messages)[b"K"]
    for wrong in (True, False):
        other = await PgWire.open(wire.port)
        sent = key[:4] + bytes(4) if wrong else key
        other.writer.write(struct.pack("!ii", 16, 80_877_102) + sent)
        assert (await other.reply()).ended
        if wrong:
            assert not client.reader.at_eof()
    reply = await client.reply()
    assert reply.error["C"] == "57014" and reply.status == "I"
    assert (await client.query("SELECT 1")).rows == [["1"]]


async def test_a_statement_ends_when_its_time_is_over(wire: Wire, client: PgWire) -> None:
    slow = _Slow()
    wire.store.select_for = slow.select_for  # type: ignore[method-assign, assignment]
    await client.query("SET statement_timeout TO 20")
    reply = await client.query("SELECT n FROM plain")
    assert reply.error["C"] == "57014" and "statement_timeout" in reply.error["M"]


async def test_a_client_that_leaves_ends_its_statement(wire: Wire, client: PgWire) -> None:
    ended = asyncio.Event()

    async def select_for(user: str, question: object) -> pa.Table:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    begun = asyncio.Event()
    wire.store.select_for = select_for  # type: ignore[method-assign, assignment]
    client.send(b"Q", text("SELECT n FROM plain"))
    await begun.wait()
    client.writer.transport.abort()
    async with asyncio.timeout(20):
        await ended.wait()


async def test_leaving_is_no_error(wire: Wire, client: PgWire) -> None:
    client.writer.write(message(b"X", b""))
    assert (await client.reply()).messages == []

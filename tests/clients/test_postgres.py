"""Drivers of PostgreSQL on the gateway's wire for reading, each doing a user's work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients import facts
from tests.clients.conftest import Start
from tests.clients.jdbc import Jdbc
from tests.clients.program import Answer, ClientError, Program

CLIENTS = ("psycopg", "asyncpg", "node-pg", "pgx", "pq", "jdbc-postgresql")
TYPES = (
    *("timestamptz", "bool", "int2", "int2", "int2", "int4", "int4", "int8", "int8", "numeric"),
    *("float4", "float8", "numeric", "text", "text", "bytea"),
)
#: digits of a second that a client's times have, where they are not PostgreSQL's six
PLACES = {"node-pg": 3}
#: what asks for all at once, reads in pieces, and runs transactions
ABLE = {
    "at_once": ("psycopg", "node-pg", "pgx"),
    "many": ("psycopg", "asyncpg", "node-pg", "pgx", "pq", "jdbc-postgresql"),
}


class Postgres:
    """One client, whichever it is; parameters are `$1`, `$2` in their order."""

    def __init__(self, name: str, program: Program | Jdbc) -> None:
        self.name = name
        self.program = program

    def query(self, sql: str, *values: str) -> Answer:
        if isinstance(self.program, Jdbc):
            for number in range(len(values)):
                sql = sql.replace(f"${number + 1}", "?")
        return self.program.query(sql, *values)

    def ask(self, *words: str) -> Any:
        found = self.program.ask(*words)
        if isinstance(self.program, Jdbc):
            (found,) = found
            return [int(word) for word in found] if words[0] == "many" else found
        return found

    def require(self, command: str) -> None:
        if self.name not in ABLE[command]:
            pytest.skip(f"{self.name} has no such thing")


def _connect(name: str, start: Start, options: dict[str, Any], zone: str) -> Program | Jdbc:
    if name != "jdbc-postgresql":
        return start(name, zone=zone)
    url = (
        f"jdbc:postgresql://127.0.0.1:{options['postgres']}/{options['database']}"
        f"?user={options['user']}&password={options['password']}"
        f"&options=-c%20TimeZone={zone}&prepareThreshold=1"
    )
    return Jdbc("jdbc-postgresql", url)


@pytest.fixture(scope="module", params=CLIENTS)
def client(
    request: pytest.FixtureRequest, start: Start, options: dict[str, Any]
) -> Iterator[Postgres]:
    program = _connect(request.param, start, options, "UTC")
    yield Postgres(request.param, program)
    if isinstance(program, Jdbc):
        program.close()


def test_the_list_of_tables_and_columns(client: Postgres) -> None:
    listed = client.query(
        "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = $1"
        " ORDER BY table_name",
        f"text:{facts.DATABASE}",
    )
    assert listed.rows == [[name, "BASE TABLE"] for name in facts.TABLES]
    described = client.query(
        "SELECT column_name, data_type, is_nullable FROM information_schema.columns"
        " WHERE table_schema = $1 AND table_name = $2 ORDER BY ordinal_position",
        f"text:{facts.DATABASE}",
        "text:meters",
    )
    assert described.rows == [
        ["ts", "timestamp with time zone", "NO"],
        ["volts", "integer", "YES"],
        ["amps", "double precision", "YES"],
        ["site", "text", "YES"],
        ["line", "integer", "YES"],
    ]


def test_types_limits_and_nulls(client: Postgres) -> None:
    found = client.query("SELECT * FROM limits ORDER BY ts")
    kinds = [[name, kind.lower()] for name, kind in found.columns]
    assert kinds == [list(pair) for pair in zip(facts.COLUMNS, TYPES, strict=True)]
    places = PLACES.get(client.name, 6)
    assert facts.disagreements(facts.LIMITS, found.rows, facts.COLUMNS, places) == []


def test_the_same_values_of_a_prepared_statement(client: Postgres) -> None:
    places = PLACES.get(client.name, 6)
    for _ in range(3):
        found = client.query("SELECT * FROM limits WHERE i32 > $1 OR i32 IS NULL", "int:0")
        expected = [facts.LIMITS[0], facts.LIMITS[2]]
        assert facts.disagreements(expected, found.rows, facts.COLUMNS, places) == []


def test_an_empty_table_has_columns(client: Postgres) -> None:
    found = client.query("SELECT * FROM empty")
    assert [name for name, _ in found.columns] == ["ts", "n"]
    assert found.rows == []


def test_sums(client: Postgres) -> None:
    found = client.query(facts.SUMS_SQL)
    names = ("site", "count", "sum", "avg", "sum", "min")
    assert facts.disagreements(facts.SUMS, found.rows, names) == []
    wide = client.query("SELECT sum(i64), sum(u64), sum(price) FROM limits").rows
    assert [str(value) for value in wide[0]] == [
        "-1",
        "18446744073709551615",
        "1234567890123456.7890",
    ]


def test_parameters_are_values(client: Postgres) -> None:
    asked = "SELECT volts FROM meters WHERE site = $1 AND volts > $2 AND ts >= $3 ORDER BY ts"
    values = ("text:it's south", "int:7", "time:2024-03-31T00:00:05+00:00")
    for _ in range(3):
        assert client.query(asked, *values).rows == [[2_000_000_000]]
    assert client.query(asked, "text:x' OR '1' = '1", *values[1:]).rows == []
    assert client.query(asked, "null:", *values[1:]).rows == []
    amps = "SELECT count(*) FROM meters WHERE amps = $1"
    assert [int(row[0]) for row in client.query(amps, "double:-0.25").rows] == [1]
    limited = "SELECT n FROM many WHERE n >= $1 ORDER BY ts LIMIT $2"
    assert [int(row[0]) for row in client.query(limited, "int:9000", "int:2").rows] == [9000, 9001]
    truth = "SELECT i8 FROM limits WHERE ok = $1"
    assert client.query(truth, "bool:false").rows == [[-128]]


def test_windows_of_our_dialect(client: Postgres) -> None:
    found = client.query(
        "SELECT _wstart, count(*) AS n FROM meters PARTITION BY site INTERVAL(10s) ORDER BY _wstart"
    )
    assert [int(row[1]) for row in found.rows] == [1, 1, 1, 1]
    assert facts.agree(facts.Time("2024-03-31T00:00:00.000000000"), found.rows[0][0], 3)


def test_many_rows_in_pieces(client: Postgres) -> None:
    client.require("many")
    asked = "SELECT n FROM many ORDER BY ts"
    assert client.ask("many", asked, "500") == [facts.MANY, facts.MANY * (facts.MANY - 1) // 2]


def test_several_questions_at_once(client: Postgres) -> None:
    client.require("at_once")
    found = client.ask("at_once", *(f"SELECT n FROM many WHERE n = {n}" for n in (7, 8, 9)))
    assert [int(rows[0][0]) for rows in found] == [7, 8, 9]


def test_errors_have_states_and_leave_the_connection(client: Postgres) -> None:
    for sql, state, words in (
        ("SELEC 1", "42601", "SELEC"),
        ("SELECT * FROM nowhere", "42P01", "nowhere"),
        ("SELECT nothing FROM meters", "42703", "nothing"),
        ("SELECT strange(1) FROM meters", "42883", "strange"),
        ("INSERT INTO many VALUES (NOW, 1)", "25006", "read"),
        ("COPY many TO STDOUT", "0A000", ""),
    ):
        with pytest.raises(ClientError) as refused:
            client.query(sql)
        assert (sql, refused.value.code) == (sql, state)
        assert words in refused.value.message
    assert client.query("SELECT count(*) FROM meters").rows in ([[4]], [["4"]])


def test_a_transaction_that_failed_stays_failed(client: Postgres) -> None:
    ended = client.ask(
        "transaction", "SELECT 1", "SELECT * FROM nowhere", "SELECT count(*) FROM meters"
    )
    assert ended == ["ok", "42P01", "25P02"]
    assert client.query("SELECT count(*) FROM meters").rows in ([[4]], [["4"]])


def test_texts_without_a_zone_are_in_the_connections(
    client: Postgres, start: Start, options: dict[str, Any]
) -> None:
    there = Postgres(client.name, _connect(client.name, start, options, "Europe/Berlin"))
    asked = "SELECT count(*) FROM limits WHERE ts >= '2024-03-31 03:00:00'"
    assert [int(row[0]) for row in there.query(asked).rows] == [2]
    assert [int(row[0]) for row in client.query(asked).rows] == [0]
    days = there.query("SELECT _wstart FROM limits INTERVAL(1d)")
    places = PLACES.get(client.name, 6)
    assert facts.agree(facts.Time("2024-03-30T23:00:00.000000000"), days.rows[0][0], places)
    if isinstance(there.program, Jdbc):
        there.program.close()


def test_a_wrong_password(client: Postgres, start: Start, options: dict[str, Any]) -> None:
    wrong = {**options, "password": "wrong"}
    with pytest.raises(ClientError) as refused:
        if client.name == "jdbc-postgresql":
            _connect(client.name, start, wrong, "UTC")
        else:
            start(client.name, password="wrong")
    assert refused.value.code in ("28P01", "OperationalError")
    assert "auth" in refused.value.message


def test_asyncpgs_pool_resets_connections(start: Start) -> None:
    pooled = start("asyncpg").ask("pool", "SELECT count(*) FROM many", "6")
    assert pooled == [facts.MANY] * 6


def test_what_a_tool_asks_by_jdbc(options: dict[str, Any], start: Start) -> None:
    """DBeaver's and others' questions before they show a database."""
    jdbc = _connect("jdbc-postgresql", start, options, "UTC")
    assert isinstance(jdbc, Jdbc)
    assert jdbc.ask("valid")[0][0] == "true"
    assert jdbc.ask("product")[0][0] == "PostgreSQL"
    assert {facts.DATABASE, "penstock"} <= set(jdbc.names("catalogs"))
    assert facts.DATABASE in jdbc.names("schemas")
    assert {"TABLE", "VIEW"} <= set(jdbc.names("table types"))
    assert "int8" in jdbc.names("types")
    assert jdbc.names("tables", "-", facts.DATABASE, "%", "TABLE,VIEW") == facts.TABLES
    listed = jdbc.ask("columns", "-", facts.DATABASE, "meters")
    assert [line[1:3] for line in listed] == [
        *(["ts", "timestamptz"], ["volts", "int4"], ["amps", "float8"]),
        *(["site", "text"], ["line", "int4"]),
    ]
    for question in ("keys", "imported", "exported", "indexes"):
        assert jdbc.names(question, "-", facts.DATABASE, "meters") == []
    for question in ("functions", "procedures", "keywords"):
        jdbc.names(question)
    jdbc.close()

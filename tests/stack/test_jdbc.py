"""TDengine's JDBC driver in its REST mode against the gateway, unchanged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.mesh.running import RunningMesh
from tests.clients.jdbc import Jdbc
from tests.stack.names import unique


@pytest.fixture(scope="module")
def database() -> str:
    return unique("jdbc")


@pytest.fixture(scope="module")
def jdbc(mesh: RunningMesh, database: str) -> Iterator[Jdbc]:
    address = mesh.gateway_url.partition("://")[2]
    url = f"jdbc:TAOS-RS://{address}/?user={mesh.user}&password={mesh.password}&timezone=UTC"
    program = Jdbc("jdbc-taos-rs", url)
    try:
        assert program.update(f"CREATE DATABASE IF NOT EXISTS {database} PARTITIONS 2") == 0
        program.update(f"USE {database}")
        program.update(
            "CREATE STABLE IF NOT EXISTS meters (ts TIMESTAMP, f FLOAT, v INT, u BIGINT UNSIGNED,"
            " note NCHAR(20), ok BOOL, raw VARBINARY(8)) TAGS (line INT, site BINARY(24))"
        )
        written = program.update(
            "INSERT INTO d1 USING meters TAGS (1, 'north') VALUES"
            " ('2024-01-01T00:00:00.123Z', 1.5, 2000000000, 18446744073709551615, 'ä', true, '\\x01ff')"
            " ('2024-01-01T00:00:01Z', 2.5, 2000000000, null, null, null, null)"
            " d2 USING meters TAGS (2, 'south')"
            " VALUES ('2024-01-01T00:00:02Z', 3.5, 2000000000, 1, 'x', false, null)"
        )
        assert written == 3
        yield program
    finally:
        program.close()


def test_the_connection_says_where_it_is(jdbc: Jdbc, database: str) -> None:
    assert jdbc.ask("valid") == [["true", database]]
    ((product, version),) = jdbc.ask("product")
    assert product == "TDengine" and version.startswith("3.")
    assert [database] in jdbc.ask("catalogs")


def test_values_have_the_classes_of_their_types(jdbc: Jdbc) -> None:
    header, first, second = jdbc.ask(
        "query", "SELECT ts, f, v, u, note, ok, line, site FROM meters WHERE line = 1 ORDER BY ts"
    )
    assert header == [
        "ts TIMESTAMP",
        "f FLOAT",
        "v INT",
        "u BIGINT UNSIGNED",
        "note NCHAR",
        "ok BOOL",
        "line INT",
        "site BINARY",
    ]
    assert first[0].startswith("Timestamp ") and first[0].endswith(":00:00.123")
    assert first[1:3] == ["Float 1.5", "Integer 2000000000"]
    assert first[3].endswith(" 18446744073709551615")
    assert first[4:] == ["String ä", "Boolean true", "Integer 1", "String north"]
    assert second[3:6] == ["null"] * 3


def test_sums_of_integers_are_long(jdbc: Jdbc) -> None:
    assert jdbc.ask("long", "SELECT sum(v) FROM meters") == [["6000000000"]]
    header, row = jdbc.ask("query", "SELECT sum(v), count(*), avg(v), sum(f) AS total FROM meters")
    assert header == ["sum(v) BIGINT", "count(*) BIGINT", "avg(v) DOUBLE", "total DOUBLE"]
    assert row == ["Long 6000000000", "Long 3", "Double 2.0E9", "Double 7.5"]


def test_prepared_statements_and_batches(jdbc: Jdbc) -> None:
    written = jdbc.ask(
        "prepared",
        "INSERT INTO ? USING meters TAGS (?, ?) VALUES (?, ?, ?, ?, ?, ?, ?)",
        *("string:d3", "int:3", "string:it's", "time:2024-01-01T00:00:03Z", "float:1.25", "int:5"),
        *("int:6", 'string:100% \\ "', "null:", "null:"),
    )
    assert written == [["1"]]
    found = jdbc.ask(
        "prepared",
        "SELECT note, v, site FROM meters WHERE site = ? AND v > ? AND ts >= ?",
        *("string:it's", "int:4", "time:2024-01-01T00:00:03Z"),
    )
    assert found[1] == ['String 100% \\ "', "Integer 5", "String it's"]
    times = ("2024-01-02T00:00:00Z", "2024-01-02T00:00:01Z")
    inserts = (
        f"INSERT INTO d4 USING meters (line) TAGS (4) (ts, v) VALUES ('{t}', 1)" for t in times
    )
    assert jdbc.ask("batch", *inserts) == [["[1, 1]"]]
    jdbc.update("DROP TABLE d3")
    jdbc.update("DROP TABLE d4")


def test_tables_and_columns_that_a_tool_lists(jdbc: Jdbc, database: str) -> None:
    jdbc.update("CREATE TABLE plain (ts TIMESTAMP, v DOUBLE)")
    assert sorted(jdbc.ask("tables", database, "-", "%", "TABLE")) == [
        ["d1", "TABLE", ""],
        ["d2", "TABLE", ""],
        ["meters", "TABLE", "STABLE"],
        ["plain", "TABLE", ""],
    ]
    assert jdbc.ask("tables", database, "-", "me%", "TABLE,VIEW") == [["meters", "TABLE", "STABLE"]]
    named = [["ts", "TIMESTAMP"], ["f", "FLOAT"], ["v", "INT"], ["u", "BIGINT UNSIGNED"]]
    named += [["note", "NCHAR"], ["ok", "BOOL"], ["raw", "VARBINARY"]]
    tags = [["line", "INT"], ["site", "VARCHAR"]]
    for table in ("meters", "d1"):
        listed = jdbc.ask("columns", database, "-", table)
        assert [row[:3] for row in listed] == [[table, *one] for one in (*named, *tags)]
        assert {row[1]: row[3] for row in listed}["note"] == "20"
    # all tables at once come out of information_schema; a supertable's columns from DESCRIBE, too
    everything = jdbc.ask("columns", database, "-", "%")
    for table, times in (("meters", 2), ("d1", 1), ("d2", 1)):
        listed = [row for row in everything if row[0] == table]
        assert sorted(row[1:3] for row in listed) == sorted([*named, *tags] * times)
        assert {row[3] for row in listed if row[1] == "note"} == {"20"}
        assert {row[3] for row in listed if row[1] == "site"} == {"24"}
    assert jdbc.ask("keys", database, "-", "meters") == [["ts"]]


def test_errors_have_tdengines_codes(jdbc: Jdbc) -> None:
    for sql, code, words in (
        ("SELECT nothing FROM meters", "2602", "there is no column nothing"),
        ("SELECT * FROM nowhere", "2603", "does not exist"),
        ("SELEC 1", "2600", "did you mean SELECT?"),
        ("USE nowhere_at_all", "388", "there is no database"),
    ):
        ((kind, found, message, _),) = jdbc.ask("query", sql)
        assert (kind, found) == ("error", code)
        assert words in message

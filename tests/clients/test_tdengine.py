"""TDengine's own connectors on the gateway's WebSocket, each doing a user's work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients import facts
from tests.clients.conftest import Start
from tests.clients.jdbc import Jdbc
from tests.clients.program import ClientError, Program
from tests.stack.names import unique

CLIENTS = ("taosws", "driver-go", "jdbc-taos-ws")
TYPES = (
    *("TIMESTAMP", "BOOL", "TINYINT", "TINYINT UNSIGNED", "SMALLINT", "SMALLINT UNSIGNED", "INT"),
    *("INT UNSIGNED", "BIGINT", "BIGINT UNSIGNED", "FLOAT", "DOUBLE", "DECIMAL", "VARCHAR"),
    *("NCHAR", "VARBINARY"),
)
#: types that a client calls otherwise
TYPE_NAMES = {"taosws": {"VARCHAR": "BINARY"}}


def _connect(
    name: str, start: Start, options: dict[str, Any], database: str, **more: str
) -> Program | Jdbc:
    if name != "jdbc-taos-ws":
        return start(name, database=database, **more)
    told = {**options, **more}
    zone = f"&timezone={more['zone']}" if "zone" in more else ""
    url = (
        f"jdbc:TAOS-WS://127.0.0.1:{told['http']}/{database}"
        f"?user={told['user']}&password={told['password']}&varcharAsString=true{zone}"
    )
    return Jdbc("jdbc-taos-ws", url)


@pytest.fixture(scope="module", params=CLIENTS)
def client(
    request: pytest.FixtureRequest, start: Start, options: dict[str, Any]
) -> Iterator[tuple[str, Program | Jdbc]]:
    program = _connect(request.param, start, options, facts.DATABASE)
    yield request.param, program
    if isinstance(program, Jdbc):
        program.close()


def test_the_list_of_tables_and_columns(client: tuple[str, Program | Jdbc]) -> None:
    _, program = client
    tables = [row[0] for row in program.query("SHOW TABLES").rows]
    assert sorted(tables) == ["d1", "d2", "empty", "limits", "many"]
    assert [row[0] for row in program.query("SHOW STABLES").rows] == ["meters"]
    described = [[row[0], row[1], row[3]] for row in program.query("DESCRIBE meters").rows]
    assert described == [
        *(["ts", "TIMESTAMP", ""], ["volts", "INT", ""], ["amps", "DOUBLE", ""]),
        *(["site", "VARCHAR", "TAG"], ["line", "INT", "TAG"]),
    ]


def test_types_limits_and_nulls(client: tuple[str, Program | Jdbc]) -> None:
    client_name, program = client
    found = program.query("SELECT * FROM limits ORDER BY ts")
    assert [name for name, _ in found.columns] == list(facts.COLUMNS)
    named = TYPE_NAMES.get(client_name, {})
    kinds = [kind.upper().partition("(")[0] for _, kind in found.columns]
    assert kinds == [named.get(kind, kind) for kind in TYPES]
    assert facts.disagreements(facts.LIMITS, found.rows, facts.COLUMNS) == []


def test_sums(client: tuple[str, Program | Jdbc]) -> None:
    _, program = client
    names = ("site", "count", "sum", "avg", "sum", "min")
    assert facts.disagreements(facts.SUMS, program.query(facts.SUMS_SQL).rows, names) == []
    wide = program.query("SELECT sum(i64), sum(u64) FROM limits").rows
    assert [[int(value) for value in row] for row in wide] == [[-1, 2**64 - 1]]


def test_many_rows_block_by_block(
    client: tuple[str, Program | Jdbc], start: Start, options: dict[str, Any]
) -> None:
    _, program = client
    if isinstance(program, Jdbc):
        numbers = [row[0] for row in program.query("SELECT n FROM many ORDER BY ts").rows]
        found = [len(numbers), sum(numbers)]
    else:
        found = program.ask("many", "SELECT n FROM many ORDER BY ts", "500")
    assert found == [facts.MANY, facts.MANY * (facts.MANY - 1) // 2]


def test_an_empty_result_has_columns(client: tuple[str, Program | Jdbc]) -> None:
    _, program = client
    found = program.query("SELECT * FROM empty")
    assert [name for name, _ in found.columns] == ["ts", "n"]
    assert found.rows == []


def test_texts_without_a_zone_are_in_the_connections(
    client: tuple[str, Program | Jdbc], start: Start, options: dict[str, Any]
) -> None:
    name, program = client
    there = _connect(name, start, options, facts.DATABASE, zone="Europe/Berlin")
    asked = "SELECT count(*) FROM limits WHERE ts >= '2024-03-31 03:00:00'"
    assert there.query(asked).rows == [[2]]
    if isinstance(there, Jdbc):
        there.close()


def test_errors_have_tdengines_codes(client: tuple[str, Program | Jdbc]) -> None:
    _, program = client
    for sql, code, words in (
        ("SELECT nothing FROM meters", "2602", "there is no column nothing"),
        ("SELECT * FROM nowhere", "2603", "does not exist"),
        ("SELEC 1", "2600", "did you mean SELECT?"),
        ("USE nowhere_at_all", "388", "there is no database"),
    ):
        with pytest.raises(ClientError) as refused:
            program.query(sql)
        assert refused.value.code.lstrip("0") == code
        assert words in refused.value.message
    assert program.query("SELECT count(*) FROM meters").rows == [[4]]


def test_a_wrong_password(
    client: tuple[str, Program | Jdbc], start: Start, options: dict[str, Any]
) -> None:
    name, _ = client
    with pytest.raises(ClientError, match=r"(?i)auth|password|login"):
        _connect(name, start, options, facts.DATABASE, password="wrong")


@pytest.fixture(scope="module")
def writing(
    client: tuple[str, Program | Jdbc], start: Start, options: dict[str, Any]
) -> Iterator[tuple[str, Program | Jdbc]]:
    """The client in a database of its own with an empty supertable."""
    name, program = client
    database = unique("tdengine")
    update = program.update if isinstance(program, Jdbc) else lambda sql: program.ask("update", sql)
    update(f"CREATE DATABASE {database} PRECISION 'ns' PARTITIONS 1")
    update(
        f"CREATE STABLE {database}.meters (ts TIMESTAMP, volts INT, amps DOUBLE, note VARCHAR(20))"
        " TAGS (line INT, site VARCHAR(16))"
    )
    there = _connect(name, start, options, database)
    yield name, there
    update(f"DROP DATABASE {database}")
    if isinstance(there, Jdbc):
        there.close()


SELECT = "SELECT tbname, ts, volts, amps, note, line, site FROM meters ORDER BY tbname, ts"
NAMES = ("tbname", "ts", "volts", "amps", "note", "line", "site")
WRITTEN: list[list[Any]] = [
    ["d1", facts.Time("2024-01-01T00:00:00.000000001"), 1, 0.5, "it's", 1, "north"],
    ["d1", facts.Time("2024-01-01T00:00:01.000000000"), 2, None, None, 1, "north"],
    ["d2", facts.Time("2024-01-01T00:00:02.000000000"), 3, 1.5, "ä", 2, "south"],
]


def test_inserts_and_deletes(writing: tuple[str, Program | Jdbc]) -> None:
    _, program = writing
    sql = (
        "INSERT INTO d1 USING meters TAGS (1, 'north') VALUES"
        " ('2024-01-01T00:00:00.000000001Z', 1, 0.5, 'it''s') ('2024-01-01T00:00:01Z', 2, NULL, NULL)"
        " d2 USING meters TAGS (2, 'south') VALUES ('2024-01-01T00:00:02Z', 3, 1.5, 'ä')"
    )
    written = program.update(sql) if isinstance(program, Jdbc) else program.ask("update", sql)
    assert written == 3
    _all_are_there(program)


def test_prepared_inserts(writing: tuple[str, Program | Jdbc]) -> None:
    name, program = writing
    sql = "INSERT INTO ? USING meters TAGS (?, ?) VALUES (?, ?, ?, ?)"
    if isinstance(program, Jdbc):
        rows = (
            "text:d1|int:1|text:north|time:2024-01-01T00:00:00.000000001Z|int:1|double:0.5|text:it's",
            "text:d1|int:1|text:north|time:2024-01-01T00:00:01Z|int:2|null:|null:",
            "text:d2|int:2|text:south|time:2024-01-01T00:00:02Z|int:3|double:1.5|text:ä",
        )
        # java.sql.Statement.SUCCESS_NO_INFO, as the driver says of each
        assert program.ask("rows", sql, *rows) == [["[-2, -2, -2]"]]
    elif name == "driver-go":
        rows = (
            "time:2024-01-01T00:00:00.000000001Z|int:1|double:0.5|text:it's",
            "time:2024-01-01T00:00:01Z|int:2|null:|null:",
        )
        one = "INSERT INTO d1 USING meters TAGS (1, 'north') VALUES (?, ?, ?, ?)"
        assert program.ask("bind", one, *rows) == 2
        two = "INSERT INTO d2 USING meters TAGS (2, 'south') VALUES (?, ?, ?, ?)"
        assert program.ask("bind", two, "time:2024-01-01T00:00:02Z|int:3|double:1.5|text:ä") == 1
    else:
        assert program.ask("bind", sql, *_TABLES) == 3
    _all_are_there(program)


_TABLES = (
    "d1|int:1,text:north|time:1704067200000000001,1704067201000000000|int:1,2|double:0.5,null"
    "|text:it's,null",
    "d2|int:2,text:south|time:1704067202000000000|int:3|double:1.5|text:ä",
)


def test_prepared_inserts_of_all_tables_at_once(writing: tuple[str, Program | Jdbc]) -> None:
    name, program = writing
    if name != "taosws":
        pytest.skip(f"{name} has no such thing")
    sql = "INSERT INTO ? USING meters TAGS (?, ?) VALUES (?, ?, ?, ?)"
    assert program.ask("bind_all", sql, *_TABLES) == 3
    asked = "SELECT volts FROM meters WHERE site = ? AND volts > ?"
    assert program.ask("ask_bound", asked, "text:north", "int:1") == [[2]]
    _all_are_there(program)


def test_line_protocol(writing: tuple[str, Program | Jdbc]) -> None:
    name, program = writing
    if isinstance(program, Jdbc):
        pytest.skip(f"{name}: its schemaless writer is no part of JDBC")
    program.ask("lines", "doors,hall=east opened=3i,wide=t 1704067200000000001")
    found = program.query("SELECT _ts, opened, wide, hall FROM doors")
    expected = [[facts.Time("2024-01-01T00:00:00.000000001"), 3, True, "east"]]
    assert facts.disagreements(expected, found.rows, ("_ts", "opened", "wide", "hall")) == []


def test_what_a_tool_asks_by_jdbc(client: tuple[str, Program | Jdbc]) -> None:
    _, program = client
    if not isinstance(program, Jdbc):
        pytest.skip("JDBC only")
    assert facts.DATABASE in program.names("catalogs")
    listed = program.names("tables", facts.DATABASE, "-", "%", "TABLE")
    assert sorted(listed) == ["d1", "d2", *facts.TABLES]
    columns = program.ask("columns", facts.DATABASE, "-", "meters")
    assert [line[1:3] for line in columns][:3] == [
        *(["ts", "TIMESTAMP"], ["volts", "INT"], ["amps", "DOUBLE"])
    ]
    assert program.names("keys", facts.DATABASE, "-", "meters") == ["ts"]


def test_a_pool_finds_a_connection_valid(start: Start, options: dict[str, Any]) -> None:
    program = _connect("jdbc-taos-ws", start, options, facts.DATABASE)
    try:
        assert program.ask("valid")[0][0] == "true"
    finally:
        program.close()


def _all_are_there(program: Program | Jdbc) -> None:
    found = program.query(SELECT).rows
    assert facts.disagreements(WRITTEN, found, NAMES) == []
    update = program.update if isinstance(program, Jdbc) else lambda sql: program.ask("update", sql)
    for table in ("d1", "d2"):
        update(f"DROP TABLE {table}")

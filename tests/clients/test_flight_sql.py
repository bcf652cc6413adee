"""ADBC's and Arrow's JDBC driver of Flight SQL, each doing a user's work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients import facts
from tests.clients.conftest import Start
from tests.clients.jdbc import Jdbc
from tests.clients.program import ClientError, Program
from tests.stack.conftest import eventually
from tests.stack.names import unique

ARROW_TYPES = (
    *("timestamp[ns, tz=UTC]", "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32"),
    *("int64", "uint64", "float", "double", "decimal128(20, 4)", "string", "string", "binary"),
)
JDBC_TYPES = (
    *("TIMESTAMP", "BOOLEAN", "TINYINT", "TINYINT", "SMALLINT", "SMALLINT", "INTEGER", "INTEGER"),
    *("BIGINT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "VARCHAR", "VARCHAR", "VARBINARY"),
)


def _connect(name: str, start: Start, options: dict[str, Any], **more: str) -> Program | Jdbc:
    if name == "adbc":
        return start(name, **more)
    told = {**options, **more}
    return Jdbc(
        name,
        f"jdbc:arrow-flight-sql://127.0.0.1:{told['flight']}/?useEncryption=false"
        f"&user={told['user']}&password={told['password']}&database={told['database']}",
    )


@pytest.fixture(scope="module", params=["adbc", "jdbc-flight-sql"])
def client(
    request: pytest.FixtureRequest, start: Start, options: dict[str, Any]
) -> Iterator[tuple[str, Program | Jdbc]]:
    program = _connect(request.param, start, options)
    yield request.param, program
    if isinstance(program, Jdbc):
        program.close()


def test_types_limits_and_nulls(client: tuple[str, Program | Jdbc]) -> None:
    name, program = client
    found = program.query("SELECT * FROM limits ORDER BY ts")
    kinds = ARROW_TYPES if name == "adbc" else JDBC_TYPES
    assert found.columns == [list(pair) for pair in zip(facts.COLUMNS, kinds, strict=True)]
    # Arrow's JDBC driver gives times by java.sql.Timestamp out of milliseconds
    places = 9 if name == "adbc" else 3
    assert facts.disagreements(facts.LIMITS, found.rows, facts.COLUMNS, places) == []


def test_an_empty_table_has_columns(client: tuple[str, Program | Jdbc]) -> None:
    found = client[1].query("SELECT * FROM empty")
    assert [name for name, _ in found.columns] == ["ts", "n"]
    assert found.rows == []


def test_sums(client: tuple[str, Program | Jdbc]) -> None:
    names = ("site", "count", "sum", "avg", "sum", "min")
    assert facts.disagreements(facts.SUMS, client[1].query(facts.SUMS_SQL).rows, names) == []


def test_parameters_are_values(client: tuple[str, Program | Jdbc]) -> None:
    _, program = client
    asked = "SELECT volts FROM meters WHERE site = ? AND volts > ? ORDER BY ts"
    for _ in range(2):
        assert program.query(asked, "text:it's south", "int:7").rows == [[2_000_000_000]]
    assert program.query(asked, "text:x' OR '1' = '1", "int:7").rows == []
    later = "SELECT volts FROM meters WHERE ts >= ? AND amps = ?"
    values = ("time:2024-03-31T00:00:05+00:00", "double:-0.25")
    assert program.query(later, *values).rows == [[7]]


def test_many_rows(client: tuple[str, Program | Jdbc]) -> None:
    _, program = client
    if isinstance(program, Jdbc):
        numbers = [row[0] for row in program.query("SELECT n FROM many ORDER BY ts").rows]
        found = [len(numbers), sum(numbers)]
    else:
        found = program.ask("many", "SELECT n FROM many ORDER BY ts", "500")
    assert found == [facts.MANY, facts.MANY * (facts.MANY - 1) // 2]


def test_lists_in_sql(client: tuple[str, Program | Jdbc]) -> None:
    _, program = client
    assert [row[0] for row in program.query("SHOW STABLES").rows] == ["meters"]
    described = [row[:2] for row in program.query("DESCRIBE many").rows]
    assert described == [["ts", "TIMESTAMP"], ["n", "BIGINT"]]


def test_errors_say_where_and_leave_the_connection(client: tuple[str, Program | Jdbc]) -> None:
    _, program = client
    for sql, words in (
        ("SELEC 1", "did you mean SELECT?"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELECT nothing FROM meters", "nothing"),
    ):
        with pytest.raises(ClientError) as refused:
            program.query(sql)
        assert words in refused.value.message
        assert "Traceback" not in refused.value.message
    assert program.query("SELECT count(*) FROM meters").rows == [[4]]


def test_a_wrong_password(
    client: tuple[str, Program | Jdbc], start: Start, options: dict[str, Any]
) -> None:
    with pytest.raises(ClientError, match=r"(?i)unauthenticated|password"):
        _connect(client[0], start, options, password="wrong").query("SELECT 1")


def test_writing(client: tuple[str, Program | Jdbc], start: Start, options: dict[str, Any]) -> None:
    name, program = client
    database = unique("flight")
    update = program.update if isinstance(program, Jdbc) else lambda sql: program.ask("update", sql)
    update(f"CREATE DATABASE {database} PARTITIONS 1")
    there = _connect(name, start, options, database=database)
    try:
        _write(there)
    finally:
        update(f"DROP DATABASE {database}")
        if isinstance(there, Jdbc):
            there.close()


def _write(program: Program | Jdbc) -> None:
    sql = "INSERT INTO t VALUES (?, ?, ?)"
    rows = (
        "time:2024-01-01T00:00:00+00:00|int:1|text:it's",
        "time:2024-01-01T00:00:01+00:00|int:2|null:",
    )
    if isinstance(program, Jdbc):
        program.update("CREATE TABLE t (ts TIMESTAMP, n INT, note VARCHAR(20))")
        # the driver sends all rows at once and has one count
        assert program.ask("rows", sql, *rows) == [["[2]"]]
    else:
        program.ask("update", "CREATE TABLE t (ts TIMESTAMP, n INT, note VARCHAR(20))")
        assert program.ask("update", sql, *rows) == 2
    expected = [
        [facts.Time("2024-01-01T00:00:00.000000000"), 1, "it's"],
        [facts.Time("2024-01-01T00:00:01.000000000"), 2, None],
    ]
    eventually(lambda: len(program.query("SELECT * FROM t").rows) == 2)
    found = program.query("SELECT * FROM t ORDER BY ts").rows
    assert facts.disagreements(expected, found, ("ts", "n", "note"), 3) == []


def test_adbc_lists_and_ingests(start: Start, options: dict[str, Any]) -> None:
    database = unique("ingest")
    adbc = start("adbc")
    assert adbc.server.startswith("Penstock ")
    listed = adbc.ask("objects", facts.DATABASE)
    assert [line[:4] for line in listed] == [
        ["penstock", facts.DATABASE, name, "TABLE"] for name in facts.TABLES
    ]
    assert listed[-1][4:] == ["ts", "volts", "amps", "site", "line"]
    assert adbc.ask("columns", facts.DATABASE, "limits") == [
        list(pair) for pair in zip(facts.COLUMNS, ARROW_TYPES, strict=True)
    ]
    assert {"TABLE", "VIEW"} <= set(adbc.ask("table_types"))
    adbc.ask("update", f"CREATE DATABASE {database} PARTITIONS 1")
    there = start("adbc", database=database)
    assert there.ask("ingest", "bulk", "1000", "create") == 1000
    assert there.ask("ingest", "bulk", "1000", "append") == 1000
    with pytest.raises(ClientError):
        there.ask("ingest", "bulk", "1", "create")
    counted = "SELECT count(*), sum(n), count(note) FROM bulk"
    eventually(lambda: there.query(counted).rows == [[1000, 499_500, 500]])
    adbc.ask("update", f"DROP DATABASE {database}")


def test_what_a_tool_asks_by_jdbc(start: Start, options: dict[str, Any]) -> None:
    """DBeaver's questions before it shows a database, one after another."""
    jdbc = _connect("jdbc-flight-sql", start, options)
    assert isinstance(jdbc, Jdbc)
    assert jdbc.ask("valid")[0][0] == "true"
    assert jdbc.ask("product")[0][0] == "Penstock"
    assert jdbc.names("catalogs") == ["penstock"]
    assert facts.DATABASE in jdbc.names("schemas")
    assert set(jdbc.names("table types")) == {"TABLE", "VIEW"}
    jdbc.names("keywords")
    assert jdbc.names("tables", "penstock", facts.DATABASE, "%", "TABLE,VIEW") == facts.TABLES
    assert jdbc.names("tables", "-", facts.DATABASE, "m%", "-") == ["many", "meters"]
    listed = jdbc.ask("columns", "penstock", facts.DATABASE, "meters")
    assert [line[1:3] for line in listed] == [
        *(["ts", "TIMESTAMP"], ["volts", "INT"], ["amps", "DOUBLE"]),
        *(["site", "VARCHAR"], ["line", "INT"]),
    ]
    assert jdbc.names("keys", "penstock", facts.DATABASE, "meters") == ["ts"]
    for question in ("imported", "exported"):
        assert jdbc.names(question, "penstock", facts.DATABASE, "meters") == []
    # the driver asks nobody for types (GetXdbcTypeInfo)
    assert jdbc.names("types") == []
    jdbc.close()

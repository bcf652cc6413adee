"""TDengine's JDBC driver in its REST mode against the gateway, unchanged."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pooch
import pytest

from penstock.errors import ConfigError
from penstock.mesh.running import RunningMesh
from penstock.setup.jars import cache_directory, repository
from tests.stack.names import unique

_VERSION = "3.6.0"
_SHA256 = "123177624bdbc5776193a619b4667101eb283c88849e8fa16b9f093cd8c3184d"
_JAR = f"com/taosdata/jdbc/taos-jdbcdriver/{_VERSION}/taos-jdbcdriver-{_VERSION}-dist.jar"


class Jdbc:
    """A Java program with one connection, which does what it is told."""

    def __init__(self, jar: Path, url: str) -> None:
        program = Path(__file__).with_name("Jdbc.java")
        self._process = subprocess.Popen(
            ["java", "-cp", str(jar), str(program), url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
        )

    def ask(self, *words: str) -> list[list[str]]:
        """Return the lines of an answer, word by word."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        answer: list[list[str]] = []
        for line in self._process.stdout:
            if line == ".\n":
                return answer
            answer.append(line.rstrip("\n").split("\t"))
        raise AssertionError(f"the program ended: {answer}")

    def update(self, sql: str) -> int:
        ((rows,),) = self.ask("update", sql)
        return int(rows)

    def close(self) -> None:
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()


@pytest.fixture(scope="module")
def jar() -> Path:
    if shutil.which("java") is None or shutil.which("javac") is None:
        pytest.skip("there is no java that compiles")
    try:
        address = f"{repository()}/{_JAR}"
        found = pooch.retrieve(
            address,
            known_hash=f"sha256:{_SHA256}",
            fname=Path(_JAR).name,
            path=cache_directory() / "jars" / "tests",
            downloader=pooch.HTTPDownloader(timeout=120),
        )
    except (OSError, ConfigError) as away:
        pytest.skip(f"no registry serves taos-jdbcdriver: {away}")
    return Path(found)


@pytest.fixture(scope="module")
def database() -> str:
    return unique("jdbc")


@pytest.fixture(scope="module")
def jdbc(mesh: RunningMesh, jar: Path, database: str) -> Iterator[Jdbc]:
    address = mesh.gateway_url.partition("://")[2]
    url = f"jdbc:TAOS-RS://{address}/?user={mesh.user}&password={mesh.password}&timezone=UTC"
    program = Jdbc(jar, url)
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
        *("string:d3", "int:3", "string:it's", "time:1704067203000", "float:1.25", "int:5"),
        *("int:6", 'string:100% \\ "', "null:", "null:"),
    )
    assert written == [["1"]]
    found = jdbc.ask(
        "prepared",
        "SELECT note, v, site FROM meters WHERE site = ? AND v > ? AND ts >= ?",
        *("string:it's", "int:4", "time:1704067203000"),
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
    assert sorted(jdbc.ask("tables", database, "%", "TABLE")) == [
        ["d1", "TABLE", ""],
        ["d2", "TABLE", ""],
        ["meters", "TABLE", "STABLE"],
        ["plain", "TABLE", ""],
    ]
    assert jdbc.ask("tables", database, "me%", "TABLE,VIEW") == [["meters", "TABLE", "STABLE"]]
    named = [["ts", "TIMESTAMP"], ["f", "FLOAT"], ["v", "INT"], ["u", "BIGINT UNSIGNED"]]
    named += [["note", "NCHAR"], ["ok", "BOOL"], ["raw", "VARBINARY"]]
    tags = [["line", "INT"], ["site", "VARCHAR"]]
    for table in ("meters", "d1"):
        listed = jdbc.ask("columns", database, table)
        assert [row[:3] for row in listed] == [[table, *one] for one in (*named, *tags)]
        assert {row[1]: row[3] for row in listed}["note"] == "20"
    # all tables at once come out of information_schema; a supertable's columns from DESCRIBE, too
    everything = jdbc.ask("columns", database, "%")
    for table, times in (("meters", 2), ("d1", 1), ("d2", 1)):
        listed = [row for row in everything if row[0] == table]
        assert sorted(row[1:3] for row in listed) == sorted([*named, *tags] * times)
        assert {row[3] for row in listed if row[1] == "note"} == {"20"}
        assert {row[3] for row in listed if row[1] == "site"} == {"24"}
    assert jdbc.ask("keys", database, "meters") == [["ts"]]


def test_errors_have_tdengines_codes(jdbc: Jdbc) -> None:
    for sql, code, words in (
        ("SELECT nothing FROM meters", "2602", "there is no column nothing"),
        ("SELECT * FROM nowhere", "2603", "does not exist"),
        ("SELEC 1", "2600", "did you mean SELECT?"),
        ("USE nowhere_at_all", "388", "there is no database"),
    ):
        ((kind, found, message),) = jdbc.ask("query", sql)
        assert (kind, found) == ("error", code)
        assert words in message

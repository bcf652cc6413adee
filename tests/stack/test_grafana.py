"""What the reference's data source for Grafana sends, and the answers in the form that it reads.

It posts a text to `/rest/sql` with a login, and looks at the status, `code`, `desc`, `column_meta`
and `data`. Here is each kind of question: the test of a data source, the lists of the query
editor, variables, panels, an alert's query, and errors that a panel shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import requests

from penstock.mesh.running import RunningMesh
from tests.stack.names import unique

Ask = Callable[[str], dict[str, Any]]
FROM = "2024-01-01T00:00:00.000Z"
TO = "2024-01-01T00:01:00.000Z"
_DATABASE = unique("grafana")


@pytest.fixture(scope="module")
def ask(mesh: RunningMesh) -> Ask:
    """Post statements as the plugin's proxy does; `$name` stands for what the plugin fills in."""

    def post(sql: str, interval: str = "20000a") -> dict[str, Any]:
        filled = (("$from", f"'{FROM}'"), ("$to", f"'{TO}'"), ("$interval", interval))
        for name, value in (*filled, ("$db", _DATABASE)):
            sql = sql.replace(name, value)
        answer = requests.post(
            f"{mesh.gateway_url}/rest/sql",
            data=sql.encode(),
            headers={"Content-Type": "application/x-www-form-urlencoded"},
            auth=(mesh.user, mesh.password),
            timeout=60,
        )
        assert answer.status_code == 200
        assert answer.headers["Content-Type"].startswith("application/json")
        found: dict[str, Any] = answer.json()
        return found

    rows = {
        base: " ".join(
            f"('2024-01-01T00:00:{second:02d}Z', {base}.5, {base * 10 + second}, 0.25)"
            for second in (0, 10, 40)
        )
        for base in (1, 2)
    }
    for statement in (
        "CREATE DATABASE $db PARTITIONS 2",
        "CREATE STABLE $db.meters (ts TIMESTAMP, amps FLOAT, volts INT, phase FLOAT)"
        " TAGS (line INT, site VARCHAR(64))",
        f"INSERT INTO $db.d1 USING $db.meters TAGS (1, 'north') VALUES {rows[1]}"
        f" $db.d2 USING $db.meters TAGS (2, 'south') VALUES {rows[2]}",
    ):
        assert post(statement)["code"] == 0
    return post


def test_the_test_of_a_data_source(ask: Ask) -> None:
    version = ask("select server_version()")
    assert version["column_meta"] == [["server_version()", "VARCHAR", len(version["data"][0][0])]]
    assert len(version["data"]) == 1 and version["data"][0][0].startswith("3")
    databases = ask("show databases")
    assert (databases["code"], databases["column_meta"]) == (0, [["name", "VARCHAR", 192]])
    assert [_DATABASE] in databases["data"] and databases["rows"] == len(databases["data"])


def test_lists_of_the_query_editor(ask: Ask) -> None:
    name = ["VARCHAR", 192]
    assert ask("show $db.stables") == {
        "code": 0,
        "column_meta": [["stable_name", *name]],
        "data": [["meters"]],
        "rows": 1,
    }
    assert sorted(ask("show $db.tables")["data"]) == [["d1"], ["d2"]]
    assert ask("DESC $db.meters") == {
        "code": 0,
        "column_meta": [["field", *name], ["type", *name], ["length", "INT", 4], ["note", *name]],
        "data": [
            ["ts", "TIMESTAMP", 8, ""],
            ["amps", "FLOAT", 4, ""],
            ["volts", "INT", 4, ""],
            ["phase", "FLOAT", 4, ""],
            ["line", "INT", 4, "TAG"],
            ["site", "VARCHAR", 64, "TAG"],
        ],
        "rows": 6,
    }


def test_variables(ask: Ask) -> None:
    """A column is the choices; two columns called `__text` and `__value` are words and values."""
    for text in ("select distinct site from $db.meters", "select distinct(site) from $db.meters"):
        found = ask(text)
        assert found["column_meta"][0][1:] == ["VARCHAR", 64]
        assert sorted(found["data"]) == [["north"], ["south"]]
    assert sorted(ask("select distinct tbname from $db.meters")["data"]) == [["d1"], ["d2"]]
    pairs = ask("select distinct site as __text, line as __value from $db.meters order by line")
    assert pairs["column_meta"] == [["__text", "VARCHAR", 64], ["__value", "INT", 4]]
    assert pairs["data"] == [["north", 1], ["south", 2]]
    tags = ask(
        "select tag_value from information_schema.ins_tags"
        " where db_name = '$db' and tag_name = 'site' order by tag_value"
    )
    assert tags["data"] == [["north"], ["south"]]


_TIME = ["ts", "TIMESTAMP", 8]
_AVERAGE = ["v", "DOUBLE", 8]
_TABLE = ["tbname", "VARCHAR", 192]


def _at(second: int) -> str:
    return f"2024-01-01T00:00:{second:02d}.000Z"


@pytest.mark.parametrize("interval", ["20000a", "20s"])
def test_a_line_of_averages_with_gaps(ask: Ask, interval: str) -> None:
    sql = (
        "select _wstart as ts, avg(volts) as v from $db.meters"
        " where ts >= $from and ts < $to interval($interval) fill(null)"
    ).replace("$interval", interval)
    assert ask(sql) == {
        "code": 0,
        "column_meta": [_TIME, _AVERAGE],
        "data": [[_at(0), 20.0], [_at(20), None], [_at(40), 55.0]],
        "rows": 3,
    }


def test_a_line_for_each_table(ask: Ask) -> None:
    found = ask(
        "select _wstart as ts, avg(volts) as v, tbname from $db.meters"
        " where ts >= $from and ts < $to partition by tbname interval($interval) fill(null)"
    )
    assert found["column_meta"] == [_TIME, _AVERAGE, _TABLE]
    assert sorted(found["data"], key=lambda row: (row[0], row[2])) == [
        [_at(0), 15.0, "d1"],
        [_at(0), 25.0, "d2"],
        [_at(20), None, "d1"],
        [_at(20), None, "d2"],
        [_at(40), 50.0, "d1"],
        [_at(40), 60.0, "d2"],
    ]


def test_a_rate_for_each_table(ask: Ask) -> None:
    """volts grow by one a second in both tables."""
    one = ask("select ts, derivative(volts, 1s, 0) as v from $db.d1 where ts >= $from and ts < $to")
    assert one == {
        "code": 0,
        "column_meta": [_TIME, _AVERAGE],
        "data": [[_at(10), 1.0], [_at(40), 1.0]],
        "rows": 2,
    }
    found = ask(
        "select ts, derivative(volts, 1m, 1) as v, tbname from $db.meters"
        " where ts >= $from and ts < $to partition by tbname"
    )
    assert found["column_meta"] == [_TIME, _AVERAGE, _TABLE]
    assert sorted(found["data"], key=lambda row: (row[0], row[2])) == [
        [_at(10), 60.0, "d1"],
        [_at(10), 60.0, "d2"],
        [_at(40), 60.0, "d1"],
        [_at(40), 60.0, "d2"],
    ]
    steps = ask("select ts, diff(volts) as d from $db.d2")
    assert steps["column_meta"] == [_TIME, ["d", "BIGINT", 8]]
    assert steps["data"] == [[_at(10), 10], [_at(40), 30]]


def test_what_the_query_builder_writes(ask: Ask) -> None:
    found = ask(
        "SELECT _wstart, MAX(volts) AS top, AVG(amps) FROM $db.meters"
        " WHERE ts > $from AND ts < $to AND site IN ('north','south')"
        " PARTITION BY tbname INTERVAL($interval) SLIDING(10s) SLIMIT 1 LIMIT 1"
    )
    assert found["column_meta"] == [
        ["_wstart", "TIMESTAMP", 8],
        ["top", "INT", 4],
        ["AVG(amps)", "DOUBLE", 8],
    ]
    assert len(found["data"]) == 1 and found["data"][0][0] == _at(0)


def test_single_figures(ask: Ask) -> None:
    assert ask("select sum(volts), count(*), last(volts) from $db.meters where line = 1;") == {
        "code": 0,
        "column_meta": [
            ["sum(volts)", "BIGINT", 8],
            ["count(*)", "BIGINT", 8],
            ["last(volts)", "INT", 4],
        ],
        "data": [[80, 3, 50]],
        "rows": 1,
    }
    devices = (
        "select count(*) from information_schema.ins_tables"
        " where db_name='$db' and stable_name='meters';"
    )
    assert ask(devices) == {
        "code": 0,
        "column_meta": [["count(*)", "BIGINT", 8]],
        "data": [[2]],
        "rows": 1,
    }
    newest = ask("select last_row(ts), last_row(amps) from $db.d1")
    assert newest["data"] == [[_at(40), 1.5]]


def test_a_range_without_rows_has_its_columns(ask: Ask) -> None:
    empty = ask(
        "select _wstart as ts, avg(volts) as v from $db.meters"
        " where ts >= '1999-01-01T00:00:00.123456789Z' and ts < '1999-01-01T01:00:00Z' interval(1m)"
    )
    assert empty == {"code": 0, "column_meta": [_TIME, _AVERAGE], "data": [], "rows": 0}


@pytest.mark.parametrize(
    ("sql", "code", "words"),
    [
        ("selct 1", 0x2600, "did you mean SELECT?"),
        ("select nothing from $db.meters", 0x2602, "there is no column nothing"),
        ("select avg(volts) from $db.nothing interval(1m)", 0x2603, "does not exist"),
        ("show nowhere_at_all.tables", 0x0388, "there is no database"),
        ("select avg(volts) from $db.meters interval(0.5s)", 0x2600, "a whole number"),
    ],
)
def test_errors_that_a_panel_shows(ask: Ask, sql: str, code: int, words: str) -> None:
    wrong = ask(sql)
    assert wrong["code"] == code and words in wrong["desc"]
    assert "data" not in wrong


def test_a_wrong_login_is_no_answer(mesh: RunningMesh) -> None:
    answer = requests.post(
        f"{mesh.gateway_url}/rest/sql",
        data="show databases",
        auth=(mesh.user, "wrong"),
        timeout=60,
    )
    assert answer.status_code == 401
    assert answer.json()["code"] == 0x0357

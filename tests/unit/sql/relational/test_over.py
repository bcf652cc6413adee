"""OVER, FILTER, QUALIFY and the names of WITH in the binder: types, and where they cannot stand."""

from __future__ import annotations

import pytest

from penstock.errors import SqlSemanticError
from penstock.sql.functions import WINDOW_FUNCTIONS
from tests.unit.sql.relational.test_binder import bound


def types(sql: str) -> list[str]:
    return [str(output.type) for output in bound(sql).outputs]


def refused(sql: str) -> tuple[str, int | None, str]:
    with pytest.raises(SqlSemanticError) as caught:
        bound(sql)
    assert caught.value.hint, "a way out"
    return caught.value.code, caught.value.column, caught.value.message


ARGUMENTS = {
    "ntile": "4",
    "lag": "voltage, 2, 0",
    "lead": "note",
    "first_value": "phase",
    "last_value": "ts",
    "nth_value": "on_, 2",
}
TYPES = {
    "percent_rank": "DOUBLE",
    "cume_dist": "DOUBLE",
    "lag": "INT",
    "lead": "VARCHAR(20)",
    "first_value": "DOUBLE",
    "last_value": "TIMESTAMP",
    "nth_value": "BOOL",
}


@pytest.mark.parametrize("name", WINDOW_FUNCTIONS)
def test_each_function_has_its_type_and_needs_over(name: str) -> None:
    call = f"{name}({ARGUMENTS.get(name, '')})"
    assert types(f"SELECT {call} OVER (PARTITION BY site ORDER BY ts) FROM meters") == [
        TYPES.get(name, "BIGINT")
    ]
    assert refused(f"SELECT {call} FROM meters") == (
        "E_FUNCTION_ARGUMENT",
        8,
        f"{name}() needs OVER",
    )


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ("sum(voltage) OVER ()", "BIGINT"),
        ("avg(voltage) OVER (ORDER BY ts RANGE 10s PRECEDING)", "DOUBLE"),
        ("count(*) FILTER (WHERE on_) OVER (ORDER BY voltage RANGE 10 PRECEDING)", "BIGINT"),
        ("max(note) FILTER (WHERE voltage > 1)", "VARCHAR(20)"),
        ("lag(voltage, 1, 0.5) OVER (ORDER BY ts)", "DOUBLE"),
        ("ts - lag(ts) OVER (ORDER BY ts)", "BIGINT"),
        ("median(voltage) OVER (PARTITION BY site)", "DOUBLE"),
    ],
)
def test_aggregates_have_the_types_that_they_have_elsewhere(item: str, kind: str) -> None:
    assert types(f"SELECT {item} FROM meters") == [kind]


def test_functions_of_groups_see_groups() -> None:
    assert types(
        "SELECT site, count(*) AS n, sum(count(*)) OVER (), rank() OVER (ORDER BY n DESC)"
        " FROM meters GROUP BY site"
    ) == ["NCHAR(8)", "BIGINT", "BIGINT", "BIGINT"]
    code, column, _ = refused(
        "SELECT site, count(*), rank() OVER (ORDER BY voltage) FROM meters GROUP BY site"
    )
    assert (code, column) == ("E_NOT_GROUPED", 46)


@pytest.mark.parametrize(
    ("sql", "code", "column", "message"),
    [
        (
            "SELECT 1 FROM meters WHERE rank() OVER () = 1",
            "E_AGGREGATE_HERE",
            28,
            "rank() OVER looks",
        ),
        (
            "SELECT 1 FROM meters GROUP BY rank() OVER ()",
            "E_AGGREGATE_HERE",
            31,
            "rank() OVER looks",
        ),
        (
            "SELECT site FROM meters GROUP BY site HAVING rank() OVER (ORDER BY site) = 1",
            "E_AGGREGATE_HERE",
            46,
            "rank() OVER looks at the rows that are left and cannot stand in HAVING",
        ),
        (
            "SELECT 1 FROM meters m JOIN places p ON m.ts = p.ts AND rank() OVER () = 1",
            "E_AGGREGATE_HERE",
            57,
            "rank() OVER looks",
        ),
        ("SELECT sum(rank() OVER ()) FROM meters", "E_AGGREGATE_HERE", 12, "rank() OVER cannot"),
        (
            "SELECT rank() OVER (ORDER BY sum(voltage) OVER ()) FROM meters",
            "E_AGGREGATE_HERE",
            30,
            "sum() OVER cannot stand inside rank()",
        ),
        (
            "SELECT rank() OVER (ORDER BY ts) AS n FROM meters WHERE n = 1",
            "E_AGGREGATE_HERE",
            57,
            "n is computed by OVER and cannot stand in WHERE",
        ),
        (
            "SELECT rank() OVER (ORDER BY ts) AS n FROM meters GROUP BY n",
            "E_AGGREGATE_HERE",
            60,
            "n is computed by OVER",
        ),
        (
            "SELECT rank() OVER (ORDER BY ts) AS n, sum(n) OVER () FROM meters",
            "E_AGGREGATE_HERE",
            44,
            "n is computed by OVER and cannot stand inside sum()",
        ),
        (
            "SELECT abs(voltage) OVER () FROM meters",
            "E_UNKNOWN_FUNCTION",
            12,
            "abs() is no function",
        ),
        ("SELECT twice(voltage) OVER () FROM meters", "E_UNKNOWN_FUNCTION", None, "twice() is no"),
        ("SELECT ntile(0) OVER () FROM meters", "E_FUNCTION_ARGUMENT", 14, "ntile() takes a whole"),
        (
            "SELECT lag(ts, -1) OVER () FROM meters",
            "E_FUNCTION_ARGUMENT",
            16,
            "lag() takes a whole",
        ),
        (
            "SELECT lag(ts, 1.5) OVER () FROM meters",
            "E_FUNCTION_ARGUMENT",
            16,
            "lag() takes a whole",
        ),
        (
            "SELECT nth_value(ts) OVER () FROM meters",
            "E_FUNCTION_ARGUMENT",
            None,
            "nth_value() does",
        ),
        ("SELECT lag(ts, 1, 'x') OVER () FROM meters", "E_TYPE", None, "lag(): the default is"),
        ("SELECT rank() OVER (ROWS 1 PRECEDING) FROM meters", "E_QUERY", 21, "rank() looks at all"),
        (
            "SELECT sum(voltage) OVER (ORDER BY ts ROWS 1s PRECEDING) FROM meters",
            "E_QUERY",
            44,
            "ROWS counts rows",
        ),
        (
            "SELECT sum(voltage) OVER (ORDER BY ts, id RANGE 1s PRECEDING) FROM meters",
            "E_QUERY",
            43,
            "RANGE with a distance needs one ORDER BY",
        ),
        (
            "SELECT sum(voltage) OVER (ORDER BY ts RANGE 1 PRECEDING) FROM meters",
            "E_TYPE",
            45,
            "RANGE over TIMESTAMP needs a length of time",
        ),
        (
            "SELECT sum(voltage) OVER (ORDER BY id RANGE 1s PRECEDING) FROM meters",
            "E_TYPE",
            45,
            "RANGE over BIGINT UNSIGNED needs a number",
        ),
        (
            "SELECT sum(voltage) OVER (ORDER BY note RANGE 1 PRECEDING) FROM meters",
            "E_TYPE",
            47,
            "RANGE cannot measure VARCHAR(20)",
        ),
        (
            "SELECT abs(voltage) FILTER (WHERE on_) FROM meters",
            "E_QUERY",
            8,
            "FILTER stands behind",
        ),
        (
            "SELECT rank() FILTER (WHERE on_) OVER () FROM meters",
            "E_QUERY",
            8,
            "rank() takes no FILTER",
        ),
        (
            "SELECT sum(voltage) FILTER (WHERE max(voltage) > 1) FROM meters",
            "E_AGGREGATE_HERE",
            35,
            "max() cannot stand inside sum()",
        ),
        (
            "SELECT sum(voltage) FILTER (WHERE volt > 1) FROM meters",
            "E_UNKNOWN_COLUMN",
            35,
            "there is",
        ),
        ("SELECT ts FROM meters QUALIFY voltage > 1", "E_QUERY", 31, "QUALIFY chooses rows"),
        (
            "SELECT ts FROM meters UNION SELECT ts FROM places ORDER BY rank() OVER ()",
            "E_AGGREGATE_HERE",
            60,
            "rank() OVER looks",
        ),
        (
            "SELECT first(voltage) FILTER (WHERE on_), note FROM meters",
            "E_NOT_GROUPED",
            43,
            "column note",
        ),
        (
            "WITH x (a, b) AS (SELECT ts FROM meters) SELECT a FROM x",
            "E_QUERY",
            12,
            "x has 1 columns",
        ),
        (
            "WITH x (a, A) AS (SELECT ts, id FROM meters) SELECT a FROM x",
            "E_QUERY",
            12,
            "x has two columns A",
        ),
        (
            "WITH x (a) AS (SELECT ts FROM meters) SELECT ts FROM x",
            "E_UNKNOWN_COLUMN",
            46,
            "there is no",
        ),
    ],
)
def test_what_cannot_be_is_refused_at_its_place(
    sql: str, code: str, column: int | None, message: str
) -> None:
    found, place, words = refused(sql)
    assert (found, words[: len(message)]) == (code, message)
    assert column is None or place == column


def test_a_query_of_with_knows_no_names_of_the_select_that_uses_it() -> None:
    inside = (
        "SELECT (SELECT count(*) FROM (SELECT 1 AS a FROM places WHERE voltage > 1) q) FROM meters"
    )
    assert types(inside) == ["BIGINT"]
    code, _, message = refused(
        "WITH q AS (SELECT 1 AS a FROM places WHERE voltage > 1)"
        " SELECT (SELECT count(*) FROM q) FROM meters"
    )
    assert (code, message) == ("E_UNKNOWN_COLUMN", "there is no column voltage")


def test_columns_of_a_subquery_take_the_names_behind_it() -> None:
    found = bound("SELECT * FROM (SELECT ts, id FROM meters) AS q (time, number)").outputs
    assert [(o.name, str(o.type)) for o in found] == [
        ("time", "TIMESTAMP"),
        ("number", "BIGINT UNSIGNED"),
    ]

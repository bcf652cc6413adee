"""The SELECT of a stream bound: names as its plan has them, types, and what is left out."""

from __future__ import annotations

import pytest
from sqlglot import exp

from penstock.sql import parse_one
from penstock.sql.compile import parse_expression
from penstock.sql.dialect import to_sql
from penstock.sql.functions.base import TIMESTAMP
from penstock.sql.relational import (
    Output,
    QueryScope,
    Scan,
    StreamSelect,
    StreamSource,
    TableColumns,
    bind_stream,
    binding_of,
)
from penstock.sql.relational.select_list import MAX_COLUMN_NAME_BYTES
from penstock.sql.relational.stream_names import plan_names, spell, type_of
from penstock.sql.statements import CreateStream
from penstock.types import ColumnType
from penstock.udf import UserFunction
from tests.unit.sql.reading import refusal

INT = ColumnType("INT")
DOUBLE = ColumnType("DOUBLE")
MIDDLE = UserFunction(2, "Middle", (DOUBLE,), DOUBLE, "…", aggregate=True)
_COLUMNS = {
    "ts": TIMESTAMP,
    "Amps": INT,
    "d": DOUBLE,
    "s": ColumnType("VARCHAR", length=20),
    "we ird": INT,
    "ta": INT,
    "j": ColumnType("JSON"),
}
SOURCE = StreamSource(
    "d1",
    TableColumns(
        tuple(Output(name, kind) for name, kind in _COLUMNS.items()),
        database="db",
        tags=frozenset(("ta", "j")),
    ),
    ("met",),
)
ALL = [*_COLUMNS]


def bound(tail: str, source: StreamSource = SOURCE) -> StreamSelect:
    statement = parse_one(f"CREATE STREAM s INTO o AS SELECT {tail}")
    assert isinstance(statement, CreateStream) and isinstance(statement.query, exp.Select)
    functions = {"middle": MIDDLE}
    scope = QueryScope(statement.source, lambda _: source.table, functions=functions.get)
    before = to_sql(statement.query)
    made = bind_stream(statement.query, scope, source)
    assert to_sql(statement.query) == before
    return made


def items(tail: str) -> list[tuple[str, str, str]]:
    """Name, text and type of each item."""
    found = bound(tail).select.items
    return [(i.output.name, to_sql(i.expression), str(i.output.type)) for i in found]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("AMPS + ta", "Amps + ta"),
        ("met.amps", "Amps"),
        ("D1.amps", "Amps"),
        ("db.met.amps", "Amps"),
        ("TBNAME", "tbname"),
        ("_c0", "ts"),
        ("_ROWTS", "ts"),
        ("d1._tp_time - 1s", "ts - 1s"),
        ("`AMPS` + `we ird`", "Amps + `we ird`"),
        ("trim(LEADING 'x' FROM S)", "trim(LEADING 'x' FROM s)"),
        ("abs(amps) > 1 AND s = 'X'", "abs(Amps) > 1 AND s = 'X'"),
    ],
)
def test_a_name_gets_the_spelling_of_the_source_and_no_table(text: str, wanted: str) -> None:
    [item] = bound(f"{text} FROM d1").select.items
    assert to_sql(item.expression) == wanted


def test_every_clause_is_bound() -> None:
    query = bound(
        "_WSTART, sum(AMPS), k FROM d1 WHERE AMPS > 1 PARTITION BY TA + 1 AS k"
        " STATE_WINDOW(D1.AMPS > 3) FILL(NULL)"
    )
    select = query.select
    assert select.where is not None and to_sql(select.where) == "Amps > 1"
    assert [to_sql(key) for key in select.partition_by] == ["ta + 1"]
    assert query.key_names == ("k",)
    assert query.window is not None and to_sql(query.window.args["expr"]) == "Amps > 3"
    assert type_of(query.window.args["expr"]).kind == "BOOL"
    assert query.fill is not None and query.fill.args["mode"] == "NULL"
    assert select.source == Scan("d1", "", "", SOURCE.table)
    assert [to_sql(i.expression) for i in select.items] == ["_wstart", "sum(Amps)", "ta + 1"]


def test_a_bound_expression_keeps_its_place_and_has_its_type() -> None:
    [item] = bound("1 + AMPS FROM d1").select.items
    column = item.expression.find(exp.Column)
    assert column is not None and column.meta["start"] == len(
        "CREATE STREAM s INTO o AS SELECT 1 + "
    )
    binding = binding_of(column)
    assert binding is not None and binding.type == INT
    assert type_of(item.expression) == DOUBLE


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ("amps", "Amps"),
        ("_c0", "_c0"),
        ("amps AS X", "X"),
        ("amps  +\n 1", "amps + 1"),
        ("abs( amps )", "abs( amps )"),
        (f"'{'é' * 60}'", f"'{'é' * 31}"),
    ],
)
def test_an_item_has_the_name_that_the_user_sees(item: str, name: str) -> None:
    [(found, _, _)] = items(f"{item} FROM d1")
    assert found == name
    assert len(found.encode()) <= MAX_COLUMN_NAME_BYTES


@pytest.mark.parametrize(
    ("listed", "wanted"),
    [
        ("*", ALL),
        ("met.*, 1", [*ALL, "1"]),
        ("last(*)", [f"last({c})" for c in ("ts", "Amps", "d", "s", "we ird")]),
    ],
)
def test_a_star_is_written_out(listed: str, wanted: list[str]) -> None:
    found = [text.replace("`", "") for _, text, _ in items(f"{listed} FROM d1")]
    assert found == wanted


def test_what_a_star_gives_stands_where_the_star_does() -> None:
    query = bound("1, * FROM d1")
    assert {node.meta["start"] for node in query.written[1:]} == {
        query.written[0].meta["start"] + 3
    }


def test_an_alias_of_a_key_stands_for_it_unless_a_column_has_the_name() -> None:
    found = items("K * 2, amps FROM d1 PARTITION BY Amps + 1 AS k, 7 AS amps")
    assert [text for _, text, _ in found] == ["(Amps + 1) * 2", "Amps"]


@pytest.mark.parametrize(
    ("item", "wanted"),
    [
        ("k", "ta - 1"),
        ("2 - k", "2 - (ta - 1)"),
        ("-k", "-(ta - 1)"),
        ("(k) * 2", "(ta - 1) * 2"),
        ("abs(k)", "abs(ta - 1)"),
        ("CAST(k AS INT)", "CAST(ta - 1 AS INT)"),
        ("CASE WHEN k > 1 THEN k ELSE l END", "CASE WHEN (ta - 1) > 1 THEN ta - 1 ELSE abs(d) END"),
        ("l * 2", "abs(d) * 2"),
    ],
)
def test_an_alias_stays_one_value_among_operators(item: str, wanted: str) -> None:
    found = bound(f"{item} AS n FROM d1 PARTITION BY ta - 1 AS k, abs(d) AS l").select.items
    assert to_sql(found[0].expression) == wanted
    reread = parse_expression(to_sql(found[0].expression))
    assert to_sql(reread) == wanted


def test_a_key_out_of_json_is_text_but_inside_aggregates() -> None:
    clause = "FROM d1 PARTITION BY j->'a' AS k INTERVAL(1s)"
    assert items(f"k, max(k), (J->'a'), upper(j->'a'), count(j->'a') {clause}") == [
        ("k", "CAST(j -> 'a' AS VARCHAR(4096))", "VARCHAR(4096)"),
        ("max(k)", "max(CAST(j -> 'a' AS VARCHAR(4096)))", "VARCHAR(4096)"),
        ("(J->'a')", "(j -> 'a')", "VARCHAR(4096)"),
        ("upper(j->'a')", "upper(j -> 'a')", "VARCHAR(4096)"),
        ("count(j->'a')", "count(j -> 'a')", "BIGINT"),
    ]
    assert items(f"j->'b' {clause}")[0][2] == "JSON"
    assert refusal(lambda: bound(f"max(j->'a') {clause}")).code == "E_TYPE"


def test_a_window_has_times_of_its_own() -> None:
    assert items("_WSTART, _wend AS e, _wduration / 2, count(*) FROM d1 INTERVAL(1s)")[:3] == [
        ("_wstart", "_wstart", "TIMESTAMP"),
        ("e", "_wend", "TIMESTAMP"),
        ("_wduration / 2", "_wduration / 2", "DOUBLE"),
    ]


@pytest.mark.parametrize(
    ("tail", "code", "message", "hint"),
    [
        ("nosuch FROM d1", "E_UNKNOWN_COLUMN", "there is no column nosuch", "known here: ts, "),
        ("amp FROM d1", "E_UNKNOWN_COLUMN", "there is no column amp", "did you mean Amps?"),
        ("_tp_sn FROM d1", "E_UNKNOWN_COLUMN", "there is no column _tp_sn", "known here: ts, "),
        ("x.amps FROM d1", "E_UNKNOWN_COLUMN", "x is not in FROM", "FROM has d1"),
        ("x.* FROM d1", "E_UNKNOWN_COLUMN", "x is not in FROM", "FROM has d1"),
        ("_wend FROM d1", "E_UNKNOWN_COLUMN", "_wend needs a window", "add a window clause"),
        (
            "count(*) FROM d1 WHERE _wend > 1 INTERVAL(1s)",
            "E_UNSUPPORTED_QUERY",
            "_wend is known only when the window is, and cannot stand in WHERE",
            "write ts, the time of a row",
        ),
        (
            "count(*) FROM d1 WHERE s INTERVAL(1s)",
            "E_TYPE",
            "a condition is needed here, not VARCHAR(20)",
            "compare it with something",
        ),
        (
            "count(*) FROM d1 WHERE sum(d) > 1 INTERVAL(1s)",
            "E_AGGREGATE_HERE",
            "sum() is an aggregate and cannot stand in WHERE",
            "aggregates belong into the select list beside a window",
        ),
        (
            "count(*) FROM d1 PARTITION BY middle(d) INTERVAL(1s)",
            "E_AGGREGATE_HERE",
            "Middle() is an aggregate and cannot stand in PARTITION BY",
            "aggregates belong into the select list beside a window",
        ),
        (
            "middle(d) FROM d1",
            "E_AGGREGATE_HERE",
            "Middle() is an aggregate and cannot stand here",
            "aggregates belong into the select list beside a window",
        ),
        (
            "count(*) FROM d1 STATE_WINDOW(max(d) > 1)",
            "E_AGGREGATE_HERE",
            "max() is an aggregate and cannot stand in STATE_WINDOW",
            "aggregates belong into the select list beside a window",
        ),
        ("sun(d) FROM d1 INTERVAL(1s)", "E_UNKNOWN_FUNCTION", "there is no function sun()", "did"),
        (
            "median(d) FROM d1 INTERVAL(1s)",
            "E_UNKNOWN_FUNCTION",
            "there is no function median()",
            "",
        ),
        ("(SELECT 1) FROM d1", "E_UNSUPPORTED_QUERY", "a subquery cannot stand here", ""),
    ],
)
def test_what_means_nothing_is_refused(tail: str, code: str, message: str, hint: str) -> None:
    error = refusal(lambda: bound(tail))
    assert (error.code, error.message) == (code, message)
    assert error.hint.startswith(hint) and error.line == 1


def test_names_are_spelled_and_unknown_ones_stay() -> None:
    def refuse(*args: object, **more: object) -> None:
        raise AssertionError(args)

    node = exp.column("AMPS", table="met") + exp.column("nosuch")
    assert to_sql(spell(node, SOURCE, refuse)) == "Amps + nosuch"  # type: ignore[arg-type]
    assert to_sql(node) == "met.AMPS + nosuch"
    assert to_sql(plan_names(exp.column("a", table="t"), {})) == "a"

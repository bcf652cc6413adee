"""Calls of aggregates, checked and collected."""

from __future__ import annotations

from typing import Any

import pytest
from sqlglot import exp

from penstock.sql.compile.expression import parse_expression
from penstock.sql.functions import AGGREGATES
from penstock.sql.plan import Aggregate
from penstock.sql.planning.select.aggregates import AggregateCalls
from penstock.sql.planning.view import TableDef
from penstock.types import ColumnType
from tests.unit.sql.planning.binding import MET, MIDDLE, TAGGED, bound, context, statement
from tests.unit.sql.reading import refusal

INT = ColumnType("INT")


def add(text: str, source: TableDef = MET) -> Aggregate:
    """The aggregate that a bound call makes."""
    collected: list[Aggregate] = []
    made_of = statement(f"{text} FROM met INTERVAL(1s)")
    node: Any = bound(made_of, source).select.items[0].expression
    name = str(node.this).lower()
    calls = AggregateCalls(context(made_of, source), collected)
    if name == "middle":
        made = calls.add_user_call(MIDDLE, node)
    else:
        made = calls.add_call(AGGREGATES[name], node)
    assert isinstance(made, exp.Column) and made.name == "_a0"
    return collected[0]


@pytest.mark.parametrize(
    ("text", "function", "sql", "kind", "parameters"),
    [
        ("count(*)", "count", None, "BIGINT", ()),
        ("count(1)", "count", "1", "BIGINT", ()),
        ("SUM(amps)", "sum", "Amps", "BIGINT", ()),
        ("sum(d)", "sum", "d", "DOUBLE", ()),
        ("sum(amps > 1)", "sum", "Amps > 1", "BIGINT", ()),
        ("stddev_pop(d)", "stddev", "d", "DOUBLE", ()),
        ("variance(d)", "var_pop", "d", "DOUBLE", ()),
        ("max(s)", "max", "s", "VARCHAR(20)", ()),
        ("min(ts)", "min", "ts", "TIMESTAMP", ()),
        ("last(tbname)", "last", "tbname", "VARCHAR(192)", ()),
        ("spread(ts)", "spread", "ts", "DOUBLE", ()),
        ("apercentile(d, 50)", "apercentile", "d", "DOUBLE", (50,)),
        ("apercentile(d, 99.5, 'T-Digest')", "apercentile", "d", "DOUBLE", (99.5, "t-digest")),
        ("middle(d)", "user:Middle", "d", "DOUBLE", ()),
        ("middle(amps)", "user:Middle", "CAST(Amps AS DOUBLE)", "DOUBLE", ()),
    ],
)
def test_a_call_becomes_an_aggregate(
    text: str, function: str, sql: str | None, kind: str, parameters: tuple[Any, ...]
) -> None:
    found = add(text)
    assert (found.function, found.sql, found.params) == (function, sql, parameters)
    assert (found.name, str(found.type), found.of) == ("_a0", kind, None)


def test_an_equal_one_is_named_and_another_added() -> None:
    collected: list[Aggregate] = []
    calls = AggregateCalls(context(statement("1 FROM met")), collected)
    node = parse_expression("a")
    names = [
        calls.add(function, sql, INT, parameters, node).name
        for function, sql, parameters in [
            ("max", "a", ()),
            ("max", "b", ()),
            ("max", "a", ()),
            ("apercentile", "a", (50,)),
            ("apercentile", "a", (51,)),
            ("apercentile", "a", (50,)),
        ]
    ]
    assert names == ["_a0", "_a1", "_a0", "_a2", "_a3", "_a2"]
    assert [a.name for a in collected] == ["_a0", "_a1", "_a2", "_a3"]


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("sum()", "E_FUNCTION_ARGUMENT", "sum() takes one argument, not 0"),
        ("sum(amps, b)", "E_FUNCTION_ARGUMENT", "sum() takes one argument, not 2"),
        ("apercentile(d)", "E_FUNCTION_ARGUMENT", "apercentile() takes 2 to 3 arguments, not 1"),
        ("sum(*)", "E_FUNCTION_ARGUMENT", "sum(*) is not possible"),
        ("apercentile(d, 101)", "E_FUNCTION_ARGUMENT", "apercentile() takes p from 0 to 100"),
        ("apercentile(d, amps)", "E_FUNCTION_ARGUMENT", "apercentile() takes p from 0 to 100"),
        ("apercentile(d, 5, 'x')", "E_FUNCTION_ARGUMENT", "apercentile() takes p from 0 to 100"),
        ("middle(d, 1)", "E_FUNCTION_ARGUMENT", "Middle() takes one argument"),
        ("middle(*)", "E_FUNCTION_ARGUMENT", "Middle() takes one argument"),
        ("count(DISTINCT amps)", "E_UNSUPPORTED_QUERY", "AS SELECT: count(DISTINCT …) must keep"),
        ("sum(_wduration)", "E_UNSUPPORTED_QUERY", "_wduration is known only when the window is"),
        ("middle(_wend)", "E_UNSUPPORTED_QUERY", "_wend is known only when the window is"),
        ("sum(s)", "E_TYPE", "sum() needs a number, not VARCHAR(20)"),
        ("avg(ts)", "E_TYPE", "avg() needs a number, not TIMESTAMP"),
        ("spread(s)", "E_TYPE", "spread() needs a number, not VARCHAR(20)"),
        ("sum(max(b))", "E_AGGREGATE_HERE", "max() cannot stand inside sum()"),
        ("middle(max(d))", "E_AGGREGATE_HERE", "max() cannot stand inside Middle()"),
        ("max(middle(d))", "E_AGGREGATE_HERE", "Middle() cannot stand inside max()"),
    ],
)
def test_a_call_that_cannot_be_computed_is_refused(text: str, code: str, message: str) -> None:
    error = refusal(lambda: add(text))
    assert error.code == code
    assert error.message.startswith(message)
    assert error.line == 1


@pytest.mark.parametrize("text", ["last(j)", "first(j)", "max(j)", "sum(j)"])
def test_json_is_no_argument(text: str) -> None:
    assert refusal(lambda: add(text, TAGGED)).code in ("E_UNSUPPORTED_QUERY", "E_TYPE")

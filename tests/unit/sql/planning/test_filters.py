"""FILTER in a stream: bound as it is written, and computed as CASE; OVER is refused."""

from __future__ import annotations

import pytest
from sqlglot import exp

from penstock.sql.planner import PlannedStream
from tests.unit.sql.memory_view import MemoryView, plan
from tests.unit.sql.reading import refusal

VIEW = MemoryView("CREATE TABLE d.t (ts TIMESTAMP, a INT, b DOUBLE)", databases={"d": "ms"})


def planned(items: str, clause: str = "INTERVAL(1s)") -> PlannedStream:
    return plan(f"CREATE STREAM d.s INTO d.o AS SELECT _wstart, {items} FROM d.t {clause}", VIEW)


@pytest.mark.parametrize(
    ("item", "function", "computed"),
    [
        ("count(*) FILTER (WHERE a > 1)", "count", "CASE WHEN a > 1 THEN 1 END"),
        ("sum(B) FILTER (WHERE t.A)", "sum", "CASE WHEN a THEN b END"),
        ("apercentile(b, 50) FILTER (WHERE a)", "apercentile", "CASE WHEN a THEN b END"),
        ("last(b) FILTER (WHERE b > a)", "last", "CASE WHEN b > a THEN b END"),
    ],
)
def test_filter_is_a_node_of_the_plan_and_computed_as_case(
    item: str, function: str, computed: str
) -> None:
    made = planned(item)
    assert isinstance(made.query.select.items[1].expression, exp.Filter)
    (aggregate,) = made.plan.aggregates
    assert (aggregate.function, aggregate.sql) == (function, computed)
    assert made.plan.target.columns[1].name == item


def test_types_are_those_of_the_aggregate() -> None:
    made = planned("sum(a) FILTER (WHERE b) AS s, 1 + max(b) FILTER (WHERE a) AS m, max(b) AS n")
    kinds = {c.name: str(c.type) for c in made.plan.target.columns}
    assert (kinds["s"], kinds["m"]) == ("BIGINT", "DOUBLE")
    assert [a.sql for a in made.plan.aggregates] == [
        "CASE WHEN b THEN a END",
        "CASE WHEN a THEN b END",
        "b",
    ]


def test_equal_filters_are_computed_once() -> None:
    made = planned("sum(a) FILTER (WHERE b) AS s, 1 + sum(a) FILTER (WHERE b) AS t")
    assert len(made.plan.aggregates) == 1


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ("abs(b) FILTER (WHERE a)", "FILTER stands behind an aggregate"),
        ("last_row(b) FILTER (WHERE a)", "last_row() takes no FILTER here"),
        ("last(a, b) FILTER (WHERE a)", "last() takes one value here"),
        ("last(*) FILTER (WHERE a)", "last(*) takes no FILTER"),
        ("sum(b) OVER ()", "OVER is not possible in a stream"),
        ("rank() OVER (ORDER BY b)", "OVER is not possible in a stream"),
    ],
)
def test_what_a_stream_cannot_do_is_refused_with_a_way_out(item: str, words: str) -> None:
    error = refusal(lambda: planned(item))
    assert error.code == "E_UNSUPPORTED_QUERY" and words in error.message
    assert error.column == 47 and error.hint


@pytest.mark.parametrize(
    ("item", "code"),
    [
        ("sum(b) FILTER (WHERE sum(a) > 1)", "E_AGGREGATE_HERE"),
        ("sum(b) FILTER (WHERE _wstart > 1)", "E_UNSUPPORTED_QUERY"),
        ("sum(b) FILTER (WHERE c)", "E_UNKNOWN_COLUMN"),
        ("sum(b) FILTER (WHERE ts)", "E_TYPE"),
        ("summ(b) FILTER (WHERE a)", "E_UNKNOWN_FUNCTION"),
        ("max(sum(b) FILTER (WHERE a))", "E_AGGREGATE_HERE"),
    ],
)
def test_conditions_are_of_rows(item: str, code: str) -> None:
    assert refusal(lambda: planned(item)).code == code


def test_without_a_window_there_is_nothing_to_filter() -> None:
    text = (
        "CREATE STREAM d.s TRIGGER AT_ONCE INTO d.o AS SELECT ts, sum(b) FILTER (WHERE a) FROM d.t"
    )
    assert refusal(lambda: plan(text, VIEW)).code == "E_NONWINDOW_AGG"


def test_qualify_is_refused() -> None:
    error = refusal(lambda: planned("count(*)", "INTERVAL(1s) QUALIFY a"))
    assert "QUALIFY is not possible in a stream" in error.message

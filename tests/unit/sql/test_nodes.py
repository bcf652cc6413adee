"""Our own nodes among those of sqlglot."""

from __future__ import annotations

import pytest
from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.dialect import to_sql
from penstock.sql.plan import Duration


@pytest.mark.parametrize("unit", nodes.UNITS)
def test_a_literal_gives_the_duration_of_its_text(unit: str) -> None:
    literal = nodes.DurationLiteral(this=f"12{unit}")
    assert literal.duration == Duration(12, unit)  # type: ignore[arg-type]
    assert to_sql(literal) == f"12{unit}"


def length(text: str) -> nodes.DurationLiteral:
    return nodes.DurationLiteral(this=text)


A = exp.column("a")


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (nodes.IntervalWindow(size=length("1s")), "INTERVAL(1s)"),
        (
            nodes.IntervalWindow(size=length("2s"), offset=length("1s"), sliding=length("1s")),
            "INTERVAL(2s, 1s) SLIDING(1s)",
        ),
        (nodes.SessionWindow(ts=A, tol=length("1s")), "SESSION(a, 1s)"),
        (nodes.StateWindow(expr=A, true_for=length("1s")), "STATE_WINDOW(a) TRUE_FOR(1s)"),
        (nodes.EventWindow(start=A, end=A), "EVENT_WINDOW START WITH a END WITH a"),
        (nodes.CountWindow(size=exp.Literal.number(3)), "COUNT_WINDOW(3)"),
        (nodes.Fill(mode="PREV"), "FILL(PREV)"),
        (nodes.Range(start=A), "RANGE(a)"),
        (
            nodes.Range(start=A, end=A, around=length("1d"), step=length("1s")),
            "RANGE(a, a, 1d) EVERY(1s)",
        ),
        (nodes.Fill(mode="VALUE", values=[exp.Literal.number(1)]), "FILL(VALUE, 1)"),
        (nodes.MatchRegex(this=A, expression=exp.Literal.string("x")), "a MATCH 'x'"),
        (nodes.ContainsKey(this=A, expression=exp.Literal.string("k")), "a CONTAINS 'k'"),
        (exp.Cast(this=A, to=nodes.TypeName(this="VARCHAR(3)")), "CAST(a AS VARCHAR(3))"),
        (nodes.PartitionBy(expressions=[A, A]), "PARTITION BY a, a"),
    ],
)
def test_a_node_has_one_text(node: exp.Expr, text: str) -> None:
    assert to_sql(node) == text


def test_the_clauses_of_a_select_stand_in_their_order() -> None:
    select = exp.Select(expressions=[A])
    given = {
        "fill": nodes.Fill(mode="NEXT"),
        "range": nodes.Range(start=A),
        "window": nodes.IntervalWindow(size=length("1s")),
        "partition_by": nodes.PartitionBy(expressions=[A]),
    }
    for key in given:
        select.set(key, given[key])
    assert sorted(given) == sorted(nodes.SELECT_CLAUSES)
    assert to_sql(select) == "SELECT a PARTITION BY a INTERVAL(1s) RANGE(a) FILL(NEXT)"

"""Times in a query: literals become times, durations intervals, and what has to do with either is
known.
"""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from sqlglot import exp, parse_one

from penstock.errors import SqlSemanticError
from penstock.sql import nodes
from penstock.sql.plan import Duration
from services.store.binding import BoundTable, Context
from services.store.times import interval, is_time_arithmetic, rewrite_sides, time_literal

CON = duckdb.connect()
TABLE = BoundTable("t", ("ts", "v"))
CONTEXT = Context({"t": TABLE}, "Asia/Shanghai")


def evaluate(node: exp.Expr) -> str:
    row = CON.execute(f"SELECT {node.sql(dialect='duckdb')}").fetchone()
    assert row is not None
    return str(row[0])


def literal(text: str, precision: str = "ms", timezone: str = "Asia/Shanghai") -> Any:
    bound = BoundTable("t", ("ts",), frozenset({"ts"}), precision)
    return evaluate(time_literal(parse_one(text, dialect="duckdb"), bound, timezone))


@pytest.mark.parametrize(
    ("unit", "wanted"),
    [
        ("u", "INTERVAL '3' MICROSECOND"),
        ("a", "INTERVAL '3' MILLISECOND"),
        ("s", "INTERVAL '3' SECOND"),
        ("m", "INTERVAL '3' MINUTE"),
        ("h", "INTERVAL '3' HOUR"),
        ("d", "INTERVAL '3' DAY"),
        ("w", "INTERVAL '3' WEEK"),
        ("n", "INTERVAL '3' MONTH"),
        ("y", "INTERVAL '3' YEAR"),
    ],
)
def test_durations_become_intervals(unit: Any, wanted: str) -> None:
    made = interval(Duration(3, unit)).sql(dialect="duckdb")
    assert made == wanted
    assert CON.execute(f"SELECT {made}").fetchone() is not None


def test_nanoseconds_are_refused() -> None:
    with pytest.raises(SqlSemanticError, match="nanoseconds"):
        interval(Duration(3, "b"))


def test_a_number_is_ticks_of_the_database() -> None:
    assert literal("1500") == "1970-01-01 00:00:01.500000"
    assert literal("1500", "us") == "1970-01-01 00:00:00.001500"
    assert literal("-1000") == "1969-12-31 23:59:59"


def test_a_text_is_a_time_of_the_session_unless_it_names_its_own_zone() -> None:
    assert literal("'2024-01-31 12:00:00'") == "2024-01-31 04:00:00"
    assert literal("'2024-01-31T12:00:00Z'") == "2024-01-31 12:00:00"
    assert literal("'2024-01-31 12:00:00+01:00'") == "2024-01-31 11:00:00"
    assert literal("' 2024-01-31 '", timezone="UTC") == "2024-01-31 00:00:00"


def test_nanoseconds_have_a_type_of_their_own() -> None:
    bound = BoundTable("t", ("ts",), frozenset({"ts"}), "ns")
    made = time_literal(exp.Literal.string("2024-01-31"), bound, "UTC").sql(dialect="duckdb")
    assert made.endswith("TIMESTAMP_NS)")
    ticks = time_literal(exp.Literal.number(5), bound, "UTC").sql(dialect="duckdb")
    assert ticks.lower() == "make_timestamp_ns(5)"


def test_a_text_that_is_no_time() -> None:
    with pytest.raises(SqlSemanticError, match="'tomorrow' is no time"):
        literal("'tomorrow'")


def test_what_is_no_literal_stays() -> None:
    column = exp.column("v")
    assert time_literal(column, TABLE, "UTC") is column


def test_literals_beside_a_time_column_become_times() -> None:
    for text in ("ts >= 1500", "1500 <= ts"):
        node = parse_one(text, dialect="duckdb")
        rewrite_sides(node, ("this", "expression"), CONTEXT)
        assert "make_timestamp_ms(1500)" in node.sql(dialect="duckdb").lower()
    between = parse_one("ts BETWEEN 1 AND 2", dialect="duckdb")
    rewrite_sides(between, ("this", "low", "high"), CONTEXT)
    assert between.sql(dialect="duckdb").lower().count("make_timestamp_ms") == 2


def test_literals_beside_other_columns_stay() -> None:
    node = parse_one("v >= 1500", dialect="duckdb")
    rewrite_sides(node, ("this", "expression"), CONTEXT)
    assert node.sql(dialect="duckdb") == "v >= 1500"


def add(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.Add(this=left, expression=right)


@pytest.mark.parametrize(
    ("node", "timely"),
    [
        (add(exp.column("ts"), exp.Literal.number(1)), True),
        (add(exp.column("v"), exp.Literal.number(1)), False),
        (add(exp.column("v"), nodes.DurationLiteral(this="1h")), True),
        (add(exp.column("v"), exp.Anonymous(this="now")), True),
        (add(exp.column("v"), exp.Paren(this=add(exp.column("_c0"), exp.column("v")))), True),
        (add(exp.column("ts", table="other"), exp.Literal.number(1)), False),
    ],
)
def test_what_has_to_do_with_times(node: exp.Expr, timely: bool) -> None:
    assert is_time_arithmetic(node, CONTEXT) is timely
    assert is_time_arithmetic(node, CONTEXT) is timely, "the note of it says the same"

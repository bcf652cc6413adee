"""Functions of the dialect, each as DuckDB computes it."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from sqlglot import exp, parse_one

from penstock.errors import SqlSemanticError
from services.store.binding import BoundTable, Context
from services.store.functions import FUNCTIONS, TIME_FUNCTIONS, arguments, function_name

CONTEXT = Context({"t": BoundTable("t", ("ts", "v"))}, "Asia/Shanghai")
CON = duckdb.connect(config={"ieee_floating_point_ops": False})
ROWS = "(VALUES (1, 10), (2, NULL), (3, 30), (4, NULL)) t(ts, v)"


def make(name: str, *args: str, context: Context = CONTEXT) -> exp.Expr:
    return FUNCTIONS[name]([parse_one(a, dialect="duckdb") for a in args], context)


def value(name: str, *args: str, source: str = "") -> Any:
    sql = make(name, *args).sql(dialect="duckdb")
    row = CON.execute(f"SELECT {sql} {f'FROM {source}' if source else ''}").fetchone()
    assert row is not None
    return row[0]


@pytest.mark.parametrize(
    ("name", "args", "wanted"),
    [
        ("length", ["'äb'"], 3),
        ("char_length", ["'äb'"], 2),
        ("ceiling", ["1.2"], 2),
        ("ln", ["1"], 0),
        ("ln", ["0"], None),
        ("sqrt", ["9"], 3),
        ("sqrt", ["-1"], None),
        ("acos", ["2"], None),
        ("asin", ["0"], 0),
        ("log", ["8", "2"], 3),
        ("log", ["-1"], None),
        ("log", ["1"], 0),
        ("greatest", ["1", "3", "2"], 3),
        ("greatest", ["1", "NULL"], None),
        ("least", ["4", "3"], 3),
        ("least", ["NULL", "3"], None),
        ("nvl2", ["1", "'there'", "'not'"], "there"),
        ("nvl2", ["NULL", "'there'", "'not'"], "not"),
        ("nvl", ["NULL", "5"], 5),
        ("ifnull", ["4", "5"], 4),
        ("position", ["'b'", "'abc'"], 2),
        ("date", ["TIMESTAMP '2024-01-31 12:00:00'"], "2024-01-31"),
        ("dayofweek", ["'2024-01-07'"], 1),
        ("weekday", ["'2024-01-01'"], 0),
        ("weekofyear", ["'2024-01-08'"], 2),
        ("substr", ["'hello'", "2"], "ello"),
        ("substr", ["'hello'", "2", "2"], "el"),
        ("substr", ["'hello'", "2", "-1"], ""),
        ("substr", ["'hello'", "0"], ""),
        ("substring", ["'hello'", "-3"], "llo"),
        ("truncate", ["1.9"], 1),
        ("timediff", ["TIMESTAMP '2024-01-01 00:00:02'", "TIMESTAMP '2024-01-01'"], 2000),
        (
            "timediff",
            ["TIMESTAMP '2024-01-01 02:30:00'", "TIMESTAMP '2024-01-01'", "INTERVAL 1 HOUR"],
            2,
        ),
        ("to_iso8601", ["TIMESTAMP '2024-01-31 12:00:00.5'"], "2024-01-31T12:00:00.500+0000"),
        ("to_unixtimestamp", ["TIMESTAMP '1970-01-01 00:00:01'"], 1000),
        ("timezone", [], "Asia/Shanghai"),
        ("server_version", [], "3.3.6.0 (penstock)"),
        ("server_status", [], 1),
        ("database", [], None),
    ],
)
def test_values(name: str, args: list[str], wanted: Any) -> None:
    assert value(name, *args) == wanted


@pytest.mark.parametrize(
    ("name", "args", "wanted"),
    [
        ("first", ["v"], 10),
        ("last", ["v"], 30),
        ("last_row", ["v"], None),
        ("spread", ["v"], 20),
        ("stddev", ["v"], 10),
        ("variance", ["v"], 100),
        ("percentile", ["v", "0"], 10),
        ("apercentile", ["v", "100"], 30),
        ("hyperloglog", ["v"], 2),
    ],
)
def test_aggregates(name: str, args: list[str], wanted: Any) -> None:
    assert value(name, *args, source=ROWS) == wanted


def test_times_are_cut_in_utc() -> None:
    cut = value("timetruncate", "TIMESTAMP '2024-01-31 12:34:56'", "INTERVAL 1 DAY")
    assert cut.isoformat(" ") == "2024-01-31 00:00:00"
    assert value("earliest_ts").year == 1970


@pytest.mark.parametrize("share", ["101", "-1", "'x'", "v"])
def test_a_percentile_is_a_number_from_0_to_100(share: str) -> None:
    with pytest.raises(SqlSemanticError) as wrong:
        make("apercentile", "v", share)
    assert wrong.value.code == "E_FUNCTION_ARGUMENT"


def test_first_and_last_need_a_table_with_a_time() -> None:
    with pytest.raises(SqlSemanticError, match="need a table"):
        make("first", "v", context=Context({}, "UTC"))


def test_a_value_that_is_written_twice_must_not_grow_without_end() -> None:
    nested: exp.Expr = exp.column("v")
    with pytest.raises(SqlSemanticError) as wrong:
        for _ in range(30):
            nested = FUNCTIONS["greatest"]([nested, exp.Literal.number(1)], CONTEXT)
    assert wrong.value.code == "E_FUNCTION_ARGUMENT"
    assert "takes many values" in wrong.value.hint


def test_a_call_has_a_name_and_its_arguments_in_order() -> None:
    anonymous = exp.Anonymous(this="Spread", expressions=[exp.column("v")])
    assert function_name(anonymous) == "spread"
    assert arguments(anonymous) == [exp.column("v")]
    known = parse_one("round(v, 2)", dialect="duckdb")
    assert function_name(known) == "round"
    assert [a.sql() for a in arguments(known)] == ["v", "2"]
    assert function_name(exp.column("v")) == ""


def test_functions_that_give_times_are_told() -> None:
    assert {"now", "timetruncate", "current_timestamp"} <= set(TIME_FUNCTIONS)
    assert set(TIME_FUNCTIONS) - FUNCTIONS.keys() <= {"today", "to_timestamp"}

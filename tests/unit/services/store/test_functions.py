"""Functions of the dialect, each as DuckDB computes it."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from sqlglot import exp, parse_one

from penstock.errors import SqlSemanticError
from penstock.sql import nodes
from penstock.sql.source import Source
from services.store.binding import Context
from services.store.functions import FUNCTIONS, arguments, function_name
from tests.installing import install

CONTEXT = Context("Asia/Shanghai")
ROWS = "(VALUES (1, 10), (2, NULL), (3, 30), (4, NULL)) t(ts, v)"


def make(name: str, *args: str, context: Context = CONTEXT) -> exp.Expr:
    return FUNCTIONS[name]([_argument(a) for a in args], context)


def _argument(text: str) -> exp.Expr:
    if text in ("1h", "1d"):
        return nodes.DurationLiteral(this=text)
    return parse_one(text, dialect="duckdb")


def value(name: str, *args: str, source: str = "") -> Any:
    context = Context(CONTEXT.timezone, time=exp.column("ts"))
    made = make(name, *args, context=context)
    con = duckdb.connect(config={"ieee_floating_point_ops": False})
    install(con, context.needed.values(), Source())
    sql = made.sql(dialect="duckdb")
    row = con.execute(f"SELECT {sql} {f'FROM {source}' if source else ''}").fetchone()
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
        ("truncate", ["1.9", "0"], 1),
        ("timediff", ["TIMESTAMP '2024-01-01 00:00:02'", "TIMESTAMP '2024-01-01'"], 2000),
        (
            "timediff",
            ["TIMESTAMP '2024-01-01 02:30:00'", "TIMESTAMP '2024-01-01'", "1h"],
            2,
        ),
        ("to_iso8601", ["TIMESTAMP '2024-01-31 12:00:00.5'"], "2024-01-31T20:00:00.500+0800"),
        ("to_unixtimestamp", ["'1970-01-01 08:00:01'"], 1000),
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
        ("percentile", ["v", "25"], 15),
        ("sum", ["v"], 40),
        ("count", ["v"], 2),
        ("min", ["v"], 10),
        ("apercentile", ["v", "100"], 30),
        ("hyperloglog", ["v"], 2),
    ],
)
def test_aggregates(name: str, args: list[str], wanted: Any) -> None:
    assert value(name, *args, source=ROWS) == wanted


def test_days_are_cut_in_the_zone_of_the_session() -> None:
    cut = value("timetruncate", "TIMESTAMP '2024-01-31 12:34:56'", "1d")
    assert cut.isoformat(" ") == "2024-01-30 16:00:00"
    assert value("earliest_ts").year == 1970


@pytest.mark.parametrize("share", ["101", "-1", "'x'", "v"])
def test_a_percentile_is_a_number_from_0_to_100(share: str) -> None:
    with pytest.raises(SqlSemanticError) as wrong:
        make("apercentile", "v", share)
    assert wrong.value.code == "E_FUNCTION_ARGUMENT"


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


def test_a_call_with_the_wrong_number_of_arguments_is_refused() -> None:
    with pytest.raises(SqlSemanticError, match=r"nvl\(\) does not take 1 arguments") as wrong:
        make("nvl", "v")
    assert wrong.value.code == "E_FUNCTION_ARGUMENT"
    assert wrong.value.hint == "ifnull(any, any)"


def test_a_constant_that_a_function_does_not_take_is_refused_before_the_query_runs() -> None:
    context = Context("UTC")
    make("week", "v", "8", context=context)
    with pytest.raises(SqlSemanticError, match="the mode of week"):
        install(duckdb.connect(), context.needed.values(), Source())


def test_calls_with_the_same_constants_share_a_function() -> None:
    context = Context("UTC")
    names = {make("week", f"v{i}", str(i % 2), context=context).name for i in range(6)}
    assert len(names) == len(context.needed) == 2


def test_a_sum_of_integers_is_a_bigint_or_null() -> None:
    large = "(VALUES (1, 9223372036854775807), (2, 1)) t(ts, v)"
    assert value("sum", "v", source=large) is None
    assert value("sum", "CAST(v % 2 AS UTINYINT)", source=large) == 2


def test_different_values_leave_out_nan() -> None:
    same = "(VALUES (1, 2e0), (2, 2e0), (3, 'nan'::DOUBLE), (4, NULL)) t(ts, v)"
    for name, wanted in (("count", 1), ("sum", 2.0), ("avg", 2.0), ("stddev", 0.0), ("max", 2.0)):
        context = Context(CONTEXT.timezone)
        different = exp.Distinct(expressions=[exp.column("v")])
        made = FUNCTIONS[name]([different], context)
        con = duckdb.connect()
        install(con, context.needed.values(), Source())
        assert con.execute(f"SELECT {made.sql(dialect='duckdb')} FROM {same}").fetchall() == [
            (wanted,)
        ], name


def test_what_is_removed_can_be_installed_again() -> None:
    database = duckdb.connect()
    for mode in ("0", "1"):
        context = Context("UTC")
        con = database.cursor()
        made = make("week", "TIMESTAMP '2024-01-07'", mode, context=context)
        installed = install(con, context.needed.values(), Source())
        assert con.execute(f"SELECT {made.sql(dialect='duckdb')}").fetchall() == [(1,)]
        installed.remove()
        con.close()


def test_now_and_today_are_those_of_the_statement() -> None:
    moment = 1_799_999_999_123_456_789
    found = []
    for zone in ("UTC", "Asia/Shanghai", "America/New_York"):
        context = Context(zone, moment=moment)
        texts = [make(name, context=context).sql(dialect="duckdb") for name in ("now", "today")]
        row = duckdb.connect().execute(f"SELECT {', '.join(texts)}").fetchone()
        assert row is not None
        found.append([str(time) for time in row])
    assert found == [
        ["2027-01-15 07:59:59.123000", "2027-01-15 00:00:00"],
        ["2027-01-15 07:59:59.123000", "2027-01-14 16:00:00"],
        ["2027-01-15 07:59:59.123000", "2027-01-15 05:00:00"],
    ]

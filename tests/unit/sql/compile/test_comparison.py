"""Comparisons between types, IN, BETWEEN and three-valued logic."""

from __future__ import annotations

import operator
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from sqlglot import exp

from penstock.sql.compile import arithmetic, comparison, leaves
from penstock.sql.compile.compiler import Compiler
from penstock.sql.compile.expression import parse_expression
from penstock.sql.functions.base import Compiled
from penstock.types import ColumnType
from tests.nightly import drawn
from tests.unit.sql.compiling import compiler, evaluate
from tests.unit.sql.reading import refused

T = True
F = False
N = None
VALUES: list[tuple[str, list[Any]]] = [
    ("a = 1", [T, N, F]),
    ("a <> 1", [F, N, T]),
    ("a != 1", [F, N, T]),
    ("a < 1", [F, N, T]),
    ("a <= 1", [T, N, T]),
    ("a > 0", [T, N, F]),
    ("a >= 1", [T, N, F]),
    # numbers of two types
    ("a < u", [T, N, T]),
    ("u = 9223372036854775809", [T, N, F]),
    ("d = 1.5", [T, N, F]),
    ("a < d", [T, N, T]),
    ("m = 1.25", [T, N, F]),
    ("m = m", [T, N, T]),
    ("o = 1", [T, N, F]),
    ("o = o", [T, N, T]),
    # text beside other types
    ("s = 'b'", [F, N, T]),
    ("a = '1'", [T, N, F]),
    ("' 1e0 ' = a", [T, N, F]),
    ("a = '1.'", [T, N, F]),
    ("d > '.5'", [T, N, F]),
    ("s = a", [T, N, N]),
    ("o = ' True '", [T, N, F]),
    ("o = 'false'", [F, N, T]),
    ("v = 'ab'", [T, N, F]),
    (r"v = '\\x6162'", [T, N, F]),
    # times
    ("ts = 1000", [T, N, F]),
    ("ts >= '1970-01-01 00:00:03'", [F, N, T]),
    ("'1970-01-01 00:00:01' = ts", [T, N, F]),
    ("ts > 1000.5", [F, N, T]),
    ("ts > 2s", [F, N, T]),
    ("ts = s", [N, N, N]),
    # NULL
    ("a = NULL", [N, N, N]),
    ("NULL = NULL", [N, N, N]),
    ("a IS NULL", [F, T, F]),
    ("NOT o", [F, N, T]),
    ("NOT a", [F, N, F]),
    ("o AND a = 1", [T, N, F]),
    ("a IS NULL OR o", [T, T, F]),
    ("o OR NULL", [T, N, N]),
    ("o AND NULL", [N, N, F]),
    # ranges and lists
    ("a BETWEEN 0 AND 1", [T, N, F]),
    ("a BETWEEN 1 AND NULL", [N, N, F]),
    ("a IN (1, 2)", [T, N, F]),
    ("a IN (1, NULL)", [T, N, N]),
    ("a IN (2, NULL)", [N, N, N]),
    ("a IN (NULL)", [N, N, N]),
    ("NULL IN (1)", [N, N, N]),
    ("a IN (1, 2, 3, 4, 5, 6, 7, 8, 9)", [T, N, F]),
    ("u IN (0, 1, 2, 3, 4, 5, 6, 7, 8)", [F, N, T]),
    ("a IN (1.0, 2, 3, 4, 5, 6, 7, 8, 9)", [T, N, F]),
    ("s IN ('1', '2', '3', '4', '5', '6', '7', '8', '9')", [T, N, F]),
    ("a IN (a, 5)", [T, N, T]),
    ("ts IN ('1970-01-01 00:00:01', 5)", [T, N, F]),
]


@pytest.mark.parametrize(("text", "values"), VALUES, ids=[v[0] for v in VALUES])
def test_a_condition_has_its_value_in_each_row(text: str, values: list[Any]) -> None:
    assert evaluate(text, leaves, comparison) == ("BOOL", values)


@pytest.mark.parametrize(
    ("text", "code", "column", "message"),
    [
        ("a = 'x'", "E_TYPE", 1, "comparison: INT and VARCHAR(1) do not fit"),
        ("o = 'x'", "E_TYPE", 1, "comparison: BOOL and VARCHAR(1) do not fit"),
        ("a = 1 OR ts = 'x'", "E_TYPE", 15, "'x' is no time"),
        ("ts = o", "E_TYPE", 1, "comparison: TIMESTAMP and BOOL do not fit"),
        ("v = 1", "E_TYPE", 1, "comparison: VARBINARY(4) and INT do not fit"),
        ("a > 1n", "E_TYPE", 1, "1n has no fixed length"),
        ("a = 1 AND s", "E_TYPE", 11, "a condition is needed here, not VARCHAR(10)"),
        ("NOT ts", "E_TYPE", 5, "a condition is needed here, not TIMESTAMP"),
        (
            "a IN (SELECT a FROM t)",
            "E_UNSUPPORTED_EXPRESSION",
            1,
            "IN takes a list of values here, not a query",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(
    text: str, code: str, column: int, message: str
) -> None:
    found = refused(lambda: evaluate(text, leaves, comparison))
    assert found == (code, 1, column, message)


def test_a_time_without_offset_is_local() -> None:
    text = "ts = '1970-01-01 08:00:01'"
    values = evaluate(text, leaves, comparison, timezone="Asia/Shanghai")[1]
    assert values == [True, None, False]


def test_hundreds_of_alternatives_need_no_deep_stack() -> None:
    text = " OR ".join(f"a = {i}" for i in range(2, 200))
    assert evaluate(text, leaves, comparison) == ("BOOL", [F, N, F])


SIGNED = ColumnType("BIGINT")
UNSIGNED = ColumnType("BIGINT UNSIGNED")
numbers = some.tuples(some.just(SIGNED), some.integers(-(2**63), 2**63 - 1)) | some.tuples(
    some.just(UNSIGNED), some.integers(0, 2**64 - 1)
)
OPERATORS: dict[type[exp.Expr], Any] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
}


@settings(max_examples=drawn(60), deadline=None)
@given(numbers, numbers, some.sampled_from(sorted(OPERATORS, key=str)))
def test_whole_numbers_compare_as_numbers_whatever_their_types(
    left: tuple[ColumnType, int], right: tuple[ColumnType, int], kind: type[exp.Expr]
) -> None:
    def column(name: str, side: tuple[ColumnType, int]) -> tuple[pl.Series, Compiled]:
        return pl.Series(name, [side[1]], side[0].polars()), Compiled(pl.col(name), side[0])

    a, compiled_a = column("a", left)
    b, compiled_b = column("b", right)
    made = comparison.compare(compiler(leaves), kind, compiled_a, compiled_b, exp.Null())
    assert pl.DataFrame([a, b]).select(made).item() == OPERATORS[kind](left[1], right[1])


def test_comparisons_need_only_the_nodes_that_they_name() -> None:
    alone: Compiler = compiler(comparison, text="a = 1")
    found = refused(lambda: alone.compile(parse_expression("a = 1")))
    assert found[:3] == ("E_UNSUPPORTED_EXPRESSION", 1, 1)
    assert evaluate("a + 1 = 2", leaves, comparison, arithmetic)[1] == [T, N, F]

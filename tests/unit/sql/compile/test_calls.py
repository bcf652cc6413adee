"""Calls of functions: how many arguments, which function, and user-defined ones."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.sql.compile import arithmetic, calls, comparison, conversion, leaves
from penstock.sql.compile.expression import parse_expression
from penstock.types import ColumnType
from penstock.udf import UserFunction
from tests.unit.sql.compiling import compiler, evaluate
from tests.unit.sql.reading import refusal, refused

N = None
MODULES = (leaves, arithmetic, comparison, conversion, calls)
DOUBLE = ColumnType("DOUBLE")
HALF = UserFunction(1, "half", (DOUBLE,), DOUBLE, "def half(x): return x / 2")
MIDDLE = UserFunction(2, "middle", (DOUBLE,), DOUBLE, "def middle(x): return 0", aggregate=True)
USER = {"half": HALF, "middle": MIDDLE}


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        ("abs(a)", "INT", [1, N, 2]),
        ("ABS(a)", "INT", [1, N, 2]),
        ("concat(s, 'x')", "VARCHAR(11)", ["1x", N, "bx"]),
        ("round(d)", "DOUBLE", [2.0, N, -1.0]),
        ("pi()", "DOUBLE", [3.141592653589793] * 3),
        ("now", "TIMESTAMP", [5_000] * 3),
        ("coalesce(NULL, NULL)", "NULL", [N, N, N]),
        ("a = lower(NULL)", "BOOL", [N, N, N]),
        ("trim(s)", "VARCHAR(10)", ["1", N, "b"]),
        ("trim('b' FROM s)", "VARCHAR(10)", ["1", N, ""]),
        ("trim(LEADING '1' FROM s)", "VARCHAR(10)", ["", N, "b"]),
        ("trim(TRAILING FROM s)", "VARCHAR(10)", ["1", N, "b"]),
    ],
)
def test_a_call_has_its_type_and_values(text: str, kind: str, values: list[Any]) -> None:
    assert evaluate(text, *MODULES) == (kind, values)


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("abs()", "E_FUNCTION_ARGUMENT", "abs() takes 1 arguments, not 0"),
        ("round(a, 1, 2)", "E_FUNCTION_ARGUMENT", "round() takes 1 to 2 arguments, not 3"),
        ("concat(s)", "E_FUNCTION_ARGUMENT", "concat() takes 2 to 8 arguments, not 1"),
        ("coalesce()", "E_FUNCTION_ARGUMENT", "coalesce() takes 1 or more arguments, not 0"),
        ("sum(a)", "E_AGGREGATE_HERE", "sum() is an aggregate and cannot stand here"),
        ("rand()", "E_FORBIDDEN_FUNC", "rand() is not possible here: each run would give"),
        ("twa(a)", "E_FORBIDDEN_FUNC", "twa() is not possible here"),
        ("asb(a)", "E_UNKNOWN_FUNCTION", "there is no function asb()"),
    ],
)
def test_a_call_that_is_none_is_refused(text: str, code: str, message: str) -> None:
    found = refused(lambda: evaluate(f"1 + {text}", *MODULES))
    assert found[:3] == (code, 1, 5)
    assert found[3].startswith(message)


def test_an_unknown_function_gets_the_nearest_as_a_hint() -> None:
    assert refusal(lambda: evaluate("summ(a)", *MODULES)).hint == "did you mean sum()?"
    assert refusal(lambda: evaluate("qqqqqq(a)", *MODULES)).hint == ""


@pytest.mark.parametrize("text", ["lag(a, 1)", "row_number()"])
def test_who_asks_for_the_row_before_is_told_of_windows(text: str) -> None:
    found = refusal(lambda: evaluate(text, *MODULES))
    assert found.code == "E_UNKNOWN_FUNCTION" and "STATE_WINDOW" in found.hint


def user(text: str) -> Any:
    made = compiler(*MODULES, text=text, functions=USER.get)
    return made.compile(parse_expression(text))


def test_a_user_defined_function_gets_its_arguments_in_their_types() -> None:
    found = user("half(a)")
    assert found.type == DOUBLE
    assert found.expr.meta.root_names() == ["a"]
    assert not found.literal


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("half(a, 1)", "E_FUNCTION_ARGUMENT", "half() takes 1 arguments, not 2"),
        ("half(1)", "E_FUNCTION_ARGUMENT", "half() needs a column among its arguments"),
        ("half(v)", "E_TYPE", "argument 1 of half(): VARBINARY(4) and DOUBLE do not fit"),
        ("middle(a)", "E_AGGREGATE_HERE", "middle() is an aggregate and cannot stand here"),
    ],
)
def test_a_call_of_a_user_defined_function_is_checked(text: str, code: str, message: str) -> None:
    found = refused(lambda: user(text))
    assert (found[0], found[3]) == (code, message)

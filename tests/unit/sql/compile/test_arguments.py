"""Arguments of functions: the form that each kind of parameter asks for."""

from __future__ import annotations

from typing import Any

import pytest
from sqlglot import exp

from penstock.sql.compile import arithmetic, calls, comparison, leaves
from penstock.sql.compile.arguments import compile_argument
from penstock.sql.compile.expression import parse_expression
from penstock.sql.functions.base import BIGINT, Function, Parameter
from tests.unit.sql.compiling import FRAME, compiler
from tests.unit.sql.reading import refusal, refused

N = None
MODULES = (leaves, arithmetic, comparison, calls)


def function(name: str, *parameters: str) -> Function:
    made = tuple(map(Parameter.parse, parameters))
    return Function(name, "test", made, BIGINT, lambda call: call[0], "A function.")


def argument(parameter: str, text: str, name: str = "f") -> Any:
    made = compiler(*MODULES, text=text)
    return compile_argument(made, function(name, parameter), 0, parse_expression(text))


def values(parameter: str, text: str, name: str = "f") -> tuple[str, list[Any]]:
    found = argument(parameter, text, name)
    return str(found.type), FRAME.with_columns(x=found.expr).get_column("x").to_list()


@pytest.mark.parametrize(
    ("parameter", "text", "kind", "wanted"),
    [
        ("any", "o", "BOOL", [True, N, False]),
        ("bool", "a > 0", "BOOL", [True, N, False]),
        ("bool", "a", "BOOL", [True, N, True]),
        ("number", "a", "INT", [1, N, -2]),
        ("number", "o", "INT", [1, N, 0]),
        ("number", "m", "DOUBLE", [1.25, N, -2.0]),
        ("double", "a", "DOUBLE", [1.0, N, -2.0]),
        ("double", "ts", "DOUBLE", [1000.0, N, 3000.0]),
        ("integer", "d", "BIGINT", [1, N, 0]),
        ("integer", "o", "BIGINT", [1, N, 0]),
        ("integer", "u", "BIGINT", [-(2**63) + 1, N, 3]),
        ("text", "n", "NCHAR(5)", ["ä", N, "xyz"]),
        ("text", "NULL", "VARCHAR(1)", [N, N, N]),
        ("time", "ts", "TIMESTAMP", [1000, N, 3000]),
        ("time", "a", "TIMESTAMP", [1, N, -2]),
        ("time", "'1970-01-01 00:00:01'", "TIMESTAMP", [1000] * 3),
        ("time", "s", "TIMESTAMP", [N, N, N]),
        ("unit", "1h", "BIGINT", [3_600_000] * 3),
    ],
)
def test_an_argument_takes_the_form_of_its_parameter(
    parameter: str, text: str, kind: str, wanted: list[Any]
) -> None:
    assert values(parameter, text) == (kind, wanted)


@pytest.mark.parametrize(
    "parameter", ["any", "number", "double", "integer", "text", "time", "unit"]
)
def test_null_fits_everywhere(parameter: str) -> None:
    assert values(parameter, "NULL")[1] == [N, N, N]


@pytest.mark.parametrize(
    ("parameter", "text", "message"),
    [
        ("number", "s", "argument 1 of f() is VARCHAR(10), but it takes number"),
        ("integer", "s", "argument 1 of f() is VARCHAR(10), but it takes integer"),
        ("text", "a", "argument 1 of f() is INT, but it takes text"),
        ("time", "d", "argument 1 of f() is DOUBLE, but it takes time"),
        ("time", "o", "argument 1 of f() is BOOL, but it takes time"),
        ("unit", "5", "argument 1 of f() is INT, but it takes unit"),
        ("double", "s", "a number is needed here, not VARCHAR(10)"),
        ("bool", "s", "a condition is needed here, not VARCHAR(10)"),
    ],
)
def test_a_type_that_does_not_fit_is_refused(parameter: str, text: str, message: str) -> None:
    assert refused(lambda: argument(parameter, text)) == ("E_TYPE", 1, 1, message)


def test_the_refusal_shows_the_signature_and_a_way_out() -> None:
    error = refusal(lambda: argument("number", "s"))
    assert (error.detail, error.hint) == ("f(number)", "write CAST(… AS DOUBLE)")


def test_a_constant_stays_one_and_a_column_is_none() -> None:
    found = argument("literal integer", "1.9")
    assert (found.literal, found.value) == (True, 1)
    error = refusal(lambda: argument("literal text", "s"))
    assert (error.code, error.message) == (
        "E_FUNCTION_ARGUMENT",
        "argument 1 of f() must be a constant",
    )


def test_the_last_parameter_stands_for_all_that_follow() -> None:
    made = compiler(*MODULES)
    found = compile_argument(made, function("f", "text", "integer+"), 5, parse_expression("d"))
    assert found.type == BIGINT


def test_the_codes_of_char_may_be_text() -> None:
    assert values("integer", "s", name="char")[1] == [1, N, 0]


def test_a_regular_expression_is_checked_once() -> None:
    text = "'('"
    made = compiler(*MODULES, text=text)
    wanted = function("regexp_in_set", "literal text")
    node: exp.Expr = parse_expression(text)
    assert refusal(lambda: compile_argument(made, wanted, 0, node)).code == "E_PATTERN"

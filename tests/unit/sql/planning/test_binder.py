"""Names of a query bound to its source."""

from __future__ import annotations

import pytest
from sqlglot import exp

from penstock.sql.compile.expression import parse_expression
from penstock.sql.dialect import to_sql
from penstock.types import ColumnType
from tests.unit.sql.planning.binding import HALF, binder, refused_at, statement
from tests.unit.sql.reading import refusal


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("AMPS + B", "Amps + b"),
        ("met.amps", "Amps"),
        ("M.amps", "Amps"),
        ("TBNAME", "tbname"),
        ("_c0", "ts"),
        ("_ROWTS", "ts"),
        ("_tp_time - 1s", "ts - 1s"),
        ("_WSTART", "_wstart"),
        ("TA", "ta"),
        ("nosuch", "nosuch"),
        ("abs(amps) > 1 AND tb = 'X'", "abs(Amps) > 1 AND tb = 'X'"),
    ],
)
def test_a_name_gets_the_spelling_of_the_source(text: str, wanted: str) -> None:
    given = parse_expression(text)
    bound = binder(statement("1")).bind(given)
    assert to_sql(bound) == wanted
    assert to_sql(given) == to_sql(parse_expression(text))


def test_a_bound_name_keeps_its_place() -> None:
    bound = binder(statement("1")).bind(parse_expression("1 + AMPS"))
    column = bound.find(exp.Column)
    assert column is not None and column.meta["start"] == 4


def test_another_qualifier_is_refused_where_it_stands() -> None:
    made = statement("x.amps FROM met")
    call = lambda: binder(made).bind(made.query.expressions[0])  # noqa: E731
    assert refused_at(made, call) == ("E_UNKNOWN_COLUMN", "x.amps FROM ")
    assert refusal(call).hint == "the source here is db.met"


def test_an_alias_stands_for_its_expression_unless_a_column_has_the_name() -> None:
    bound = binder(statement("1"))
    bound.aliases = {"k": parse_expression("Amps + 1"), "b": parse_expression("7")}
    assert to_sql(bound.bind(parse_expression("K * 2"))) == "Amps + 1 * 2"
    assert to_sql(bound.bind(parse_expression("b"))) == "b"
    assert to_sql(bound.bind(parse_expression("met.k"))) == "met.k"


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ("1 + twa(amps)", "E_FORBIDDEN_FUNC", "instead: avg(x) over a window with equal steps"),
        ("1 + rand()", "E_FORBIDDEN_FUNC", "instead: crc32(…)"),
    ],
)
def test_a_function_that_no_stream_may_use_is_refused(text: str, code: str, hint: str) -> None:
    made = statement(f"{text} FROM met")
    error = refusal(lambda: binder(made).bind(made.query.expressions[0]))
    assert (error.code, error.column) == (code, len("CREATE STREAM s  INTO o AS SELECT 1 + ") + 1)
    assert error.hint.startswith(hint)


def test_types_are_those_of_the_source_or_of_the_given_columns() -> None:
    bound = binder(statement("1"))
    assert str(bound.compile(parse_expression("Amps")).type) == "INT"
    assert str(bound.compile(parse_expression("tbname")).type) == "VARCHAR(192)"
    given = {"_a0": ColumnType("BOOL")}
    assert str(bound.compile(parse_expression("_a0"), given).type) == "BOOL"
    assert (
        refusal(lambda: bound.compile(parse_expression("Amps"), given)).code == "E_UNKNOWN_COLUMN"
    )


def test_user_defined_functions_that_are_met_are_kept() -> None:
    bound = binder(statement("1"))
    assert bound.function("abs") is None
    bound.compile(parse_expression("half(d)"))
    assert bound.used == {"half": HALF}

"""What the steps of planning one statement share."""

from __future__ import annotations

from penstock.sql.compile.expression import parse_expression
from penstock.types import ColumnType
from tests.unit.sql.planning.binding import HALF, bound, context, statement
from tests.unit.sql.reading import refusal


def test_what_is_not_of_the_source_is_compiled_over_given_columns() -> None:
    of = context(statement("1 FROM met"))
    given = {"_a0": ColumnType("BOOL")}
    assert str(of.compile(parse_expression("_a0"), given).type) == "BOOL"
    assert refusal(lambda: of.compile(parse_expression("Amps"), given)).code == "E_UNKNOWN_COLUMN"


def test_user_defined_functions_that_are_met_are_kept() -> None:
    of = context(statement("1 FROM met"))
    assert of.function("abs") is None
    of.bind(statement("half(d) FROM met").query)  # type: ignore[arg-type]
    assert of.used == {"half": HALF}


def test_the_source_is_known_by_its_names_in_any_case() -> None:
    query = bound(statement("MET.amps, m.amps, amps FROM met"))
    assert {item.expression.sql() for item in query.select.items} == {"Amps"}


def test_a_refusal_points_at_its_place() -> None:
    made = statement("1 FROM met")
    error = refusal(lambda: context(made).refuse(7, "no", code="E_TYPE", hint="yes"))
    assert (error.code, error.column, error.hint) == ("E_TYPE", 8, "yes")

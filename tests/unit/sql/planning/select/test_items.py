"""The select list in plan terms."""

from __future__ import annotations

import pytest

from penstock.sql.compile.expression import parse_expression
from penstock.sql.dialect import to_sql
from penstock.sql.plan import Output
from penstock.sql.planning.select.items import HIDDEN, SelectList, output_of
from penstock.sql.relational import Binding, SelectItem
from penstock.types import ColumnType
from tests.unit.sql.planning.binding import context, statement
from tests.unit.sql.reading import refusal

INT = ColumnType("INT")


def test_a_list_keeps_its_parts_side_by_side() -> None:
    listed = SelectList()
    node = parse_expression("a")
    output = Output("a", "a", INT)
    listed.add(node, output, filled=True)
    assert (listed.outputs, listed.filled, listed.nodes) == ([output], [True], [node])


def test_fill_has_values_for_what_is_filled_and_seen() -> None:
    listed = SelectList()
    hidden = parse_expression("a")
    hidden.meta[HIDDEN] = True
    for node, filled in ((parse_expression("a"), True), (hidden, True), (hidden, False)):
        listed.add(node, Output("a", "a", INT), filled=filled)
    assert listed.takes_values() == [True, False, False]


@pytest.mark.parametrize(("kind", "wanted"), [("DOUBLE", "DOUBLE"), ("NULL", "BIGINT")])
def test_an_output_has_the_type_that_is_bound(kind: str, wanted: str) -> None:
    item = SelectItem(parse_expression("a + 1"), "n", Binding(ColumnType(kind)))
    made = output_of(context(statement("1 FROM met")), item, parse_expression("_a0 + 1"), "")
    assert made == Output("n", to_sql(parse_expression("_a0 + 1")), ColumnType(wanted))


def test_an_output_is_never_json() -> None:
    item = SelectItem(parse_expression("j"), "j", Binding(ColumnType("JSON")))
    of = context(statement("1 FROM met"))
    error = refusal(lambda: output_of(of, item, item.expression, "cast it"))
    assert (error.code, error.hint) == ("E_UNSUPPORTED_QUERY", "cast it")

"""The target of a statement: a new table or one that exists."""

from __future__ import annotations

import pytest

from penstock.names import MAX_NAME_BYTES
from penstock.sql.planning.target.planning import plan_target
from penstock.sql.planning.target.request import check_name, count_mismatch
from penstock.sql.statements import Name
from tests.unit.sql.memory_view import MemoryView
from tests.unit.sql.planning.binding import refused_at, request, statement
from tests.unit.sql.reading import refusal

WINDOW = "_wstart, max(b), MAX(b) FROM met INTERVAL(1s)"
VIEW = MemoryView("CREATE STABLE o (ts TIMESTAMP, a INT, b INT) TAGS (g BIGINT UNSIGNED)")


def test_a_table_that_is_not_there_is_planned_with_the_id() -> None:
    found = plan_target(request(statement("_wstart, max(b) FROM met INTERVAL(1s)")), 99)
    assert found.definition is not None and found.definition.id == 99
    assert [o.name for o in found.outputs] == ["_wstart", "max(b)"]


def test_outputs_get_names_that_differ_where_only_their_place_matters() -> None:
    found = plan_target(request(statement(WINDOW), VIEW), 99)
    assert found.definition is None
    assert [o.name for o in found.outputs] == ["_wstart", "max(b)", "MAX(b)#2"]
    listed = plan_target(request(statement(WINDOW, "INTO new (t, x, y)")), 99)
    assert listed.target.column_of == ("_wstart", "max(b)", "MAX(b)#2")


def test_equal_names_of_a_new_table_are_refused() -> None:
    made = statement(WINDOW)
    assert refused_at(made, lambda: plan_target(request(made), 99)) == (
        "E_DUPLICATE_COLUMN",
        "MAX(b) FROM ",
    )


def test_a_name_has_a_length_in_bytes() -> None:
    made = statement(WINDOW, f"INTO {'x' * (MAX_NAME_BYTES + 1)}")
    assert refused_at(made, lambda: plan_target(request(made), 99))[0] == "E_NAME_LENGTH"
    check_name(made, Name("é" * 5), "INTO", 10)
    error = refusal(lambda: check_name(made, Name("é" * 6), "INTO", 10))
    assert error.message == "INTO: the name has 12 bytes, the limit is 10"


@pytest.mark.parametrize(
    ("tail", "hint"),
    [
        (WINDOW, "the first result column is the window's start"),
        ("ts, b FROM met", "name as many columns as the select list has"),
    ],
)
def test_a_list_of_another_length_gets_a_hint(tail: str, hint: str) -> None:
    asked = request(statement(tail, "INTO o (a)"))
    error = refusal(lambda: count_mismatch(asked, 1, 3, "the column list"))
    assert error.code == "E_TARGET_COLUMNS"
    assert error.message == "INTO: the column list has 1 columns, the select list gives 3"
    assert error.hint == hint

"""Items of the select list: stars written out, and names."""

from __future__ import annotations

import pytest
from sqlglot import exp

from penstock.sql.compile.expression import parse_expression
from penstock.sql.dialect import to_sql
from penstock.sql.plan import Output
from penstock.sql.planning.select.items import (
    MAX_COLUMN_NAME_BYTES,
    SelectList,
    column_reference,
    expand_items,
    output_name,
    without_alias,
)
from penstock.types import ColumnType
from tests.unit.sql.planning.binding import binder, refused_at, select_of, statement

ALL = ["ts", "Amps", "b", "d", "s"]


def expanded(items: str, window: str = "") -> list[str]:
    made = statement(f"{items} FROM met {window}")
    return [to_sql(i) for i in expand_items(select_of(made), binder(made))]


@pytest.mark.parametrize(
    ("items", "window", "wanted"),
    [
        ("a, b AS c", "", ["a", "b AS c"]),
        ("*", "", [*ALL, "ta", "tb"]),
        ("met.*, 1", "", [*ALL, "ta", "tb", "1"]),
        ("last(*)", "INTERVAL(1s)", [f"last({c})" for c in ALL]),
        ("FIRST(*), count(*)", "INTERVAL(1s)", [*(f"first({c})" for c in ALL), "count(*)"]),
    ],
)
def test_a_star_is_written_out(items: str, window: str, wanted: list[str]) -> None:
    assert expanded(items, window) == wanted


@pytest.mark.parametrize(
    ("items", "window", "code", "at"),
    [
        ("*", "INTERVAL(1s)", "E_UNSUPPORTED_QUERY", "* FROM met I"),
        ("met.*", "INTERVAL(1s)", "E_UNSUPPORTED_QUERY", "met.* FROM m"),
    ],
)
def test_a_window_has_no_star(items: str, window: str, code: str, at: str) -> None:
    made = statement(f"{items} FROM met {window}")
    call = lambda: expand_items(select_of(made), binder(made))  # noqa: E731
    assert refused_at(made, call) == (code, at)


def test_a_star_of_another_table_is_refused() -> None:
    made = statement("x.* FROM met")
    call = lambda: expand_items(select_of(made), binder(made))  # noqa: E731
    assert refused_at(made, call)[0] == "E_UNKNOWN_COLUMN"


def test_what_a_star_gives_stands_where_the_star_does() -> None:
    made = statement("1, * FROM met")
    _, column, *_ = expand_items(select_of(made), binder(made))
    assert made.source.text[column.meta["start"] :].startswith("* FROM")
    assert "sql" not in column.meta


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ("amps", "Amps"),
        ("_c0", "_c0"),
        ("amps AS X", "X"),
        ("amps  +\n 1", "amps + 1"),
        ("max( amps )", "max( amps )"),
        (f"'{'é' * 60}'", f"'{'é' * 31}"),
    ],
)
def test_an_output_has_the_name_that_the_user_sees(item: str, name: str) -> None:
    made = statement(f"{item} FROM met")
    (given,) = select_of(made).expressions
    bound = binder(made).bind(without_alias(given))
    found = output_name(given, bound)
    assert found == name
    assert len(found.encode()) <= MAX_COLUMN_NAME_BYTES


def test_a_reference_stands_where_another_node_does() -> None:
    like = parse_expression("1 + a").expression
    like.meta["sql"] = "a"
    made = column_reference("_a0", like)
    assert isinstance(made, exp.Column) and made.name == "_a0"
    assert made.meta == {"start": 4, "end": 5}


def test_a_list_keeps_its_parts_side_by_side() -> None:
    listed = SelectList()
    node = parse_expression("a")
    output = Output("a", "a", ColumnType("INT"))
    listed.add(node, output, filled=True)
    assert (listed.outputs, listed.filled, listed.nodes) == ([output], [True], [node])

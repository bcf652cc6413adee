"""The walk over a tree: folding of constants, limits and entry points."""

from __future__ import annotations

import polars as pl
import pytest

from penstock.errors import SqlSyntaxError
from penstock.sql.compile import arithmetic, calls, leaves
from penstock.sql.compile.compiler import nearest, nothing
from penstock.sql.compile.expression import compile_expression, parse_expression
from penstock.types import ColumnType
from tests.unit.sql.compiling import COLUMNS, compiler
from tests.unit.sql.reading import refusal, refused


def test_a_constant_is_computed_once() -> None:
    found = compiler(leaves, arithmetic).compile(parse_expression("1 + 2 * 3"))
    assert (found.literal, found.value) == (True, 7.0)
    column = compiler(leaves, arithmetic).compile(parse_expression("a + 2 * 3"))
    assert not column.literal


def test_a_node_of_another_kind_is_refused_at_its_place() -> None:
    found = refused(
        lambda: compiler(leaves, arithmetic, text="1 + (SELECT 1)").compile(
            parse_expression("1 + (SELECT 1)")
        )
    )
    assert found == (
        "E_UNSUPPORTED_EXPRESSION",
        1,
        5,
        "Subquery is not possible in this place",
    )


def test_an_expression_that_grows_too_large_is_refused() -> None:
    made = compiler(leaves, arithmetic, calls)
    deep = "a"
    for _ in range(6):
        deep = f"greatest({deep}, {deep}, 1)"
    error = refusal(lambda: made.compile(parse_expression(deep)))
    assert (error.code, error.message) == (
        "E_UNSUPPORTED_EXPRESSION",
        "this expression is too large",
    )


def test_the_nearest_name_is_found_in_its_own_spelling() -> None:
    assert nearest("volage", ["Voltage", "Current"]) == "Voltage"
    assert nearest("xyz", ["Voltage"]) is None
    assert nothing("f") is None


def test_null_alone_is_a_number() -> None:
    found = compile_expression("NULL", {})
    assert (str(found.type), found.literal) == ("BIGINT", True)
    assert pl.select(found.expr).item() is None


def test_text_and_tree_give_the_same() -> None:
    frame = pl.DataFrame({"a": [1, 2]})
    columns = {"a": ColumnType("BIGINT")}
    text, tree = (
        frame.select(x=compile_expression(given, columns).expr)["x"].to_list()
        for given in ("a * 2", parse_expression("a * 2"))
    )
    assert text == tree == [2.0, 4.0]


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("'a", 1, "this text cannot be read: a string or name is never closed"),
        ("a b", 3, "the statement should end here, found b"),
        ("", 1, "expected an expression, but the statement ends"),
    ],
)
def test_what_is_no_expression_is_a_syntax_error(text: str, column: int, message: str) -> None:
    assert refused(lambda: parse_expression(text)) == ("E_SYNTAX", 1, column, message)
    with pytest.raises(SqlSyntaxError):
        compile_expression(text, COLUMNS)

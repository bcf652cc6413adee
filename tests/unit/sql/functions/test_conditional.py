"""Functions that choose between values."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.sql.functions import conditional
from penstock.sql.functions.base import NULL
from penstock.types import ColumnType
from tests.unit.sql.calling import TIMESTAMP, Table, apply, call_of
from tests.unit.sql.reading import refusal

N = None
CASES: list[tuple[Any, tuple[Any, ...], list[Any]]] = [
    (conditional.coalesce, ([1, N, N], [9, 2, N]), [1, 2, N]),
    (conditional.coalesce, ([1, N], [1.5, 2.5]), [1.0, 2.5]),
    (conditional.coalesce, ([1, N], ["x", "y"]), ["1", "y"]),
    (conditional.coalesce, ([True, N], ["x", "y"]), ["true", "y"]),
    (conditional.ifnull, (["a", N], "b"), ["a", "b"]),
    (conditional.nvl2, ([1, N], "yes", "no"), ["yes", "no"]),
    (conditional.if_, ([True, False, N], 1, 2), [1, 2, 2]),
    (conditional.nullif, ([1, 2, N, 3], [1, 3, 1, N]), [N, 2, N, 3]),
    (conditional.isnull, ([1, N],), [False, True]),
    (conditional.isnotnull, ([1, N],), [True, False]),
    (conditional.greatest, ([1, 5, N], [3, 2, 1], 2), [3, 5, N]),
    (conditional.greatest, ([1, 1], [N, 2]), [N, 2]),
    (conditional.least, ([1, 5, N], [3, 2, 1], 2), [1, 2, N]),
    (conditional.least, (["b"], ["a"], ["c"]), ["a"]),
]


@pytest.mark.parametrize(
    ("build", "arguments", "wanted"),
    CASES,
    ids=[f"{c[0].__name__}{i}" for i, c in enumerate(CASES)],
)
def test_a_choice_has_its_value_in_each_row(
    build: Any, arguments: tuple[Any, ...], wanted: list[Any]
) -> None:
    assert apply(build, *arguments) == wanted


INT = ColumnType("INT")
TEXT = ColumnType("VARCHAR", length=3)


@pytest.mark.parametrize(
    ("types", "wanted"),
    [
        ([INT, INT], "INT"),
        ([INT, NULL], "INT"),
        ([NULL, NULL], "NULL"),
        ([INT, ColumnType("BIGINT")], "BIGINT"),
        ([INT, ColumnType("INT UNSIGNED")], "BIGINT"),
        ([ColumnType("BIGINT"), ColumnType("BIGINT UNSIGNED")], "DOUBLE"),
        ([ColumnType("BOOL"), INT], "INT"),
        ([INT, TEXT], "VARCHAR(32)"),
        ([TEXT, ColumnType("NCHAR", length=9)], "NCHAR(9)"),
        ([TIMESTAMP, INT], "TIMESTAMP"),
    ],
)
def test_the_type_holds_every_value(types: list[ColumnType], wanted: str) -> None:
    assert str(conditional.choice_type(types, call_of(Table(), [1]))) == wanted


@pytest.mark.parametrize(
    ("types", "shown"),
    [
        ([TIMESTAMP, ColumnType("DOUBLE")], "TIMESTAMP and DOUBLE"),
        ([ColumnType("VARBINARY", length=3), TEXT, NULL], "VARBINARY(3) and VARCHAR(3)"),
    ],
)
def test_types_without_a_common_one_are_refused(types: list[ColumnType], shown: str) -> None:
    call = call_of(Table(), [1], name="ifnull")
    error = refusal(lambda: conditional.choice_type(types, call))
    assert error.code == "E_FUNCTION_ARGUMENT"
    assert error.message == f"ifnull() cannot choose between {shown}"
    assert "CAST" in error.hint


def test_a_value_of_the_type_stays_as_it_is() -> None:
    value = Table().argument([1])
    assert conditional.as_type(value, value.type) is value.expr
    assert conditional.as_type(value, NULL) is value.expr

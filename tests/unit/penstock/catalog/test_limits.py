"""Limits of names, columns, keys and options."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.catalog.changes.limits import (
    MAX_COLUMN_NAME,
    MAX_COLUMNS,
    MAX_PARTITIONS,
    MAX_TAGS,
    RESERVED_COLUMNS,
    check_columns,
    check_keep,
    check_key,
    check_partitions,
    check_table_name,
)
from penstock.errors import CatalogError
from penstock.names import MAX_NAME_BYTES
from penstock.sql.plan import Column, Duration
from penstock.types import ColumnType

TIME = Column("ts", ColumnType("TIMESTAMP"))
INT = ColumnType("INT")
JSON = ColumnType("JSON")


def code(call: Callable[[], None]) -> str | None:
    """The code of a refusal; None when there is none."""
    try:
        call()
    except CatalogError as error:
        return error.code
    return None


def columns(count: int, first: int = 0) -> tuple[Column, ...]:
    return tuple(Column(f"c{i}", INT) for i in range(first, first + count))


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("a", None),
        ("a b", None),
        ("ä" * (MAX_NAME_BYTES // 2), None),
        ("ä" * (MAX_NAME_BYTES // 2) + "a", "E_BAD_NAME"),
        ("", "E_BAD_NAME"),
        ("a.b", "E_BAD_NAME"),
        ("a\n", "E_BAD_NAME"),
        ("a\0", "E_BAD_NAME"),
    ],
)
def test_a_table_name_is_short_and_printable(name: str, wanted: str | None) -> None:
    assert code(lambda: check_table_name(name)) == wanted


@pytest.mark.parametrize(
    ("partitions", "wanted"),
    [(1, None), (MAX_PARTITIONS, None), (0, "E_BAD_OPTION"), (MAX_PARTITIONS + 1, "E_BAD_OPTION")],
)
def test_partitions_have_limits(partitions: int, wanted: str | None) -> None:
    assert code(lambda: check_partitions(partitions)) == wanted


@pytest.mark.parametrize(
    ("keep", "wanted"),
    [
        (None, None),
        (Duration(1, "d"), None),
        (Duration(24, "h"), None),
        (Duration(23, "h"), "E_BAD_OPTION"),
        (Duration(0, "d"), "E_BAD_OPTION"),
    ],
)
def test_rows_are_kept_a_day_at_least(keep: Duration | None, wanted: str | None) -> None:
    assert code(lambda: check_keep(keep)) == wanted


@pytest.mark.parametrize(
    ("given", "tags", "wanted"),
    [
        ((TIME, *columns(2)), (), None),
        ((), (), "E_NO_TIME_COLUMN"),
        (columns(1), (), "E_NO_TIME_COLUMN"),
        ((TIME, *columns(MAX_COLUMNS - 1)), (), None),
        ((TIME, *columns(MAX_COLUMNS)), (), "E_TOO_MANY_COLUMNS"),
        ((TIME, *columns(MAX_COLUMNS - 1)), columns(1, MAX_COLUMNS), "E_TOO_MANY_COLUMNS"),
        ((TIME,), columns(MAX_TAGS), None),
        ((TIME,), columns(MAX_TAGS + 1), "E_TOO_MANY_COLUMNS"),
        ((TIME, Column("TS", INT)), (), "E_DUPLICATE_COLUMN"),
        ((TIME, Column("a", INT)), (Column("A", INT),), "E_DUPLICATE_COLUMN"),
        ((TIME, Column("", INT)), (), "E_BAD_NAME"),
        ((TIME, Column("x" * MAX_COLUMN_NAME, INT)), (), None),
        ((TIME, Column("x" * (MAX_COLUMN_NAME + 1), INT)), (), "E_BAD_NAME"),
        ((TIME, Column("İ" * 22, INT)), (), "E_BAD_NAME"),
        ((TIME, Column("j", JSON)), (), "E_BAD_JSON"),
        ((TIME,), (Column("j", JSON),), None),
        ((TIME,), (Column("j", JSON), Column("a", INT)), "E_BAD_JSON"),
    ],
)
def test_columns_have_limits(
    given: tuple[Column, ...], tags: tuple[Column, ...], wanted: str | None
) -> None:
    assert code(lambda: check_columns(given, tags)) == wanted


@pytest.mark.parametrize("name", sorted(RESERVED_COLUMNS))
def test_what_rows_carry_anyway_is_no_column(name: str) -> None:
    assert code(lambda: check_columns((TIME, Column(name.upper(), INT)), ())) == "E_RESERVED_NAME"


@pytest.mark.parametrize(
    ("given", "key", "wanted"),
    [
        ((TIME, Column("k", INT)), "k", None),
        ((TIME, Column("k", ColumnType("VARCHAR", 9))), "k", None),
        ((TIME, Column("k", ColumnType("BIGINT UNSIGNED"))), "k", None),
        ((TIME, Column("k", ColumnType("DOUBLE"))), "k", "E_BAD_KEY"),
        ((TIME, Column("k", ColumnType("NCHAR", 9))), "k", "E_BAD_KEY"),
        ((TIME, Column("a", INT), Column("k", INT)), "k", "E_BAD_KEY"),
        ((TIME,), "ts", "E_BAD_KEY"),
    ],
)
def test_a_key_is_the_second_column(
    given: tuple[Column, ...], key: str, wanted: str | None
) -> None:
    assert code(lambda: check_key(given, key)) == wanted

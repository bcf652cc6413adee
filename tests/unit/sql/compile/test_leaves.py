"""Columns, literals and durations."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.sql.compile import leaves
from penstock.sql.compile.expression import parse_expression
from penstock.sql.plan import Duration
from tests.unit.sql.compiling import ROWS, compiler, evaluate
from tests.unit.sql.reading import refusal, refused


@pytest.mark.parametrize(
    ("text", "sign", "kind", "value"),
    [
        ("0", 1, "INT", 0),
        ("2147483647", 1, "INT", 2**31 - 1),
        ("2147483648", 1, "BIGINT", 2**31),
        ("2147483648", -1, "INT", -(2**31)),
        ("9223372036854775807", 1, "BIGINT", 2**63 - 1),
        ("9223372036854775808", 1, "BIGINT UNSIGNED", 2**63),
        ("18446744073709551615", 1, "BIGINT UNSIGNED", 2**64 - 1),
        ("18446744073709551616", 1, "DOUBLE", float(2**64)),
        ("9223372036854775809", -1, "DOUBLE", float(-(2**63) - 1)),
        ("0x1F", 1, "INT", 31),
        ("0b101", -1, "INT", -5),
        ("1.5", -1, "DOUBLE", -1.5),
        ("1e3", 1, "DOUBLE", 1000.0),
    ],
)
def test_a_number_has_the_smallest_type_that_holds_it(
    text: str, sign: int, kind: str, value: Any
) -> None:
    found = leaves.number(text, sign)
    assert (str(found.type), found.value, found.literal) == (kind, value, True)
    assert pl.select(found.expr).item() == value


@given(some.integers(-(2**63), 2**64 - 1))
def test_a_whole_number_of_64_bits_keeps_its_value(value: int) -> None:
    found = leaves.number(str(abs(value)), -1 if value < 0 else 1)
    assert pl.select(found.expr).item() == value
    assert found.type.integer


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("'héllo'", "VARCHAR(6)", "héllo"),
        ("''", "VARCHAR(1)", ""),
        ("TRUE", "BOOL", True),
        ("false", "BOOL", False),
        ("(7)", "INT", 7),
        ("1h", "BIGINT", 3_600_000),
    ],
)
def test_a_constant_is_a_literal(text: str, kind: str, value: Any) -> None:
    found = compiler(leaves).compile(parse_expression(text))
    assert (str(found.type), found.value, found.literal) == (kind, value, True)


def test_null_fits_everywhere() -> None:
    found = compiler(leaves).compile(parse_expression("NULL"))
    assert (found.type.kind, found.literal, found.value) == ("NULL", True, None)


def test_a_length_of_months_has_no_ticks() -> None:
    found = compiler(leaves).compile(parse_expression("2n"))
    assert (found.duration, found.value) == (Duration(2, "n"), None)


@pytest.mark.parametrize("name", ["a", "A", "`a`", "x.a"])
def test_a_column_is_found_without_regard_to_case(name: str) -> None:
    assert evaluate(name, leaves) == ("INT", ROWS["a"])


def test_a_computed_column_takes_the_place_of_one_in_the_frame() -> None:
    assert evaluate("a", leaves, computed={"a": pl.lit(7)})[1] == [7] * 3


def test_the_append_time_is_a_column_of_the_frame() -> None:
    assert evaluate("_now", leaves) == ("TIMESTAMP", [5_000] * 3)


def test_an_unknown_column_is_refused_with_the_nearest() -> None:
    error = refusal(lambda: evaluate(" dd", leaves))
    assert (error.code, error.column, error.hint) == ("E_UNKNOWN_COLUMN", 2, "did you mean d?")
    far = refusal(lambda: evaluate("nothing_like_it", leaves))
    assert far.hint == "known here: a, d, j, m, n, o, s, ts, u, v"
    assert refused(lambda: evaluate("count(x.*)", leaves))[0] == "E_UNSUPPORTED_EXPRESSION"

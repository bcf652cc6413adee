"""Numbers that are exact or NULL."""

from __future__ import annotations

import functools
import math
import operator
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.sql.functions import exact
from penstock.types import ColumnType
from tests.nightly import drawn

N = None
DOUBLE = ColumnType("DOUBLE")
BIGINT = ColumnType("BIGINT")
FEW = settings(max_examples=drawn(60), deadline=None)
ticks = some.integers(-(2**63), 2**63 - 1)
doubles = some.floats(allow_nan=False, allow_infinity=False)


def column(values: list[Any], kind: pl.DataType) -> pl.DataFrame:
    return pl.DataFrame({"x": pl.Series(values, dtype=kind)})


def test_what_is_not_finite_is_null() -> None:
    frame = column([1.0, math.inf, -math.inf, math.nan, N], pl.Float64())
    wanted = [1.0, N, N, N, N]
    assert frame.select(exact.finite(pl.col("x")))["x"].to_list() == wanted
    large = functools.reduce(operator.add, [pl.col("x")] * 40) / 40
    assert frame.select(x=exact.finite(large))["x"].to_list() == wanted


def test_a_large_expression_is_written_once() -> None:
    """Else it would double at each level of a sum."""
    large = functools.reduce(operator.add, [pl.col("x")] * 40)
    assert len(exact.finite(large).meta.root_names()) == 40
    assert len(exact.finite(pl.col("x")).meta.root_names()) == 2


@pytest.mark.parametrize(
    ("value", "given", "to", "wanted"),
    [
        (1.25, DOUBLE, (5, 2), Decimal("1.25")),
        (999.0, DOUBLE, (5, 2), Decimal("999.00")),
        (1000.0, DOUBLE, (5, 2), N),
        (math.inf, DOUBLE, (5, 2), N),
        (math.nan, DOUBLE, (5, 2), N),
        (12345, BIGINT, (5, 0), Decimal(12345)),
        (123456, BIGINT, (5, 0), N),
        (-100, BIGINT, (4, 2), N),
        (2**64 - 1, ColumnType("BIGINT UNSIGNED"), (20, 0), Decimal(2**64 - 1)),
        (10**17, BIGINT, (38, 2), Decimal(10**17)),
    ],
)
def test_a_decimal_has_no_more_digits_than_its_type(
    value: Any, given: ColumnType, to: tuple[int, int], wanted: Decimal | None
) -> None:
    kind = ColumnType("DECIMAL", precision=to[0], scale=to[1])
    made = exact.to_decimal(pl.col("x"), given, kind)
    found = column([value], given.polars()).select(made)["x"]
    assert found.to_list() == [wanted]
    assert found.dtype == kind.polars()


def test_a_float_is_null_where_it_would_be_infinite() -> None:
    frame = column([1.5, 1e39, -1e39, N], pl.Float64())
    assert frame.select(exact.to_float(pl.col("x")))["x"].to_list() == [1.5, N, N, N]


def test_a_number_that_does_not_fit_is_null() -> None:
    frame = column([127, 128, -128, -129, N], pl.Int64())
    found = frame.select(exact.narrow(pl.col("x"), ColumnType("TINYINT")))["x"]
    assert found.to_list() == [127, N, -128, N, N]


@FEW
@given(ticks, ticks, some.booleans())
def test_ticks_are_added_exactly_or_null(left: int, right: int, minus: bool) -> None:
    frame = pl.DataFrame({"a": [left], "b": [right]}, schema={"a": pl.Int64, "b": pl.Int64})
    total = left - right if minus else left + right
    found = frame.select(x=exact.tick_sum(pl.col("a"), pl.col("b"), minus)).item()
    assert found == (total if -(2**63) <= total < 2**63 else None)


@FEW
@given(some.lists(doubles, min_size=1, max_size=9), doubles)
def test_a_quotient_is_the_same_whatever_rows_stand_beside_it(
    values: list[float], divisor: float
) -> None:
    frame = column([*values, N], pl.Float64())
    made = exact.finite(exact.quotient(pl.col("x"), pl.lit(divisor)))
    with np.errstate(all="ignore"):
        wanted = [float(np.float64(v) / np.float64(divisor)) for v in values]
    finite = [w if math.isfinite(w) else N for w in wanted]
    assert frame.select(made)["x"].to_list() == [*finite, N]
    assert [frame[i : i + 1].select(made).item() for i in range(len(values))] == finite


def test_a_quotient_of_null_or_of_two_constants_needs_no_column() -> None:
    frame = column([3.0, 6.0], pl.Float64())
    null = exact.quotient(pl.col("x"), pl.lit(None, pl.Float64))
    assert frame.select(null)["x"].to_list() == [N, N]
    assert pl.select(exact.quotient(pl.lit(7.0), pl.lit(3.0))).item() == 7.0 / 3.0
    columns = exact.quotient(pl.lit(7.0), pl.col("x"))
    assert frame.select(x=columns)["x"].to_list() == [7.0 / 3.0, 7.0 / 6.0]


@FEW
@given(doubles, doubles)
def test_a_remainder_is_that_of_c(left: float, right: float) -> None:
    frame = pl.DataFrame({"a": [left], "b": [right]})
    found = frame.select(x=exact.remainder(pl.col("a"), pl.col("b"))).item()
    assert found == (math.fmod(left, right) if right else None)


def test_a_remainder_of_null_is_null() -> None:
    frame = pl.DataFrame({"a": [N, 1.0], "b": [1.0, N]})
    assert frame.select(x=exact.remainder(pl.col("a"), pl.col("b")))["x"].to_list() == [N, N]


@pytest.mark.parametrize(
    ("value", "digits", "nearest", "wanted"),
    [
        (155, -1, True, 160),
        (155, -1, False, 150),
        (-155, -1, True, -160),
        (-155, -1, False, -150),
        (155, -3, True, 0),
        (555, -3, True, 1000),
        (2**63 - 1, -1, True, N),
        (2**63 - 1, -1, False, 9223372036854775800),
        (2**63 - 1, -40, True, 0),
    ],
)
def test_a_whole_number_is_rounded_at_a_digit(
    value: int, digits: int, nearest: bool, wanted: int | None
) -> None:
    frame = column([value], pl.Int64())
    made = exact.round_whole(pl.col("x"), pl.lit(digits, pl.Int64), BIGINT, nearest)
    assert frame.select(x=made).item() == wanted


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.000000"),
        (-0.0, "-0.000000"),
        (1.5, "1.500000"),
        (-1.0000005, "-1.000001"),
        (0.0000005, "0.000000"),
        (0.9999999, "1.000000"),
        (-12.9999999, "-13.000000"),
        (2.0**53, "9007199254740992.000000"),
        (1e22, "10000000000000000000000.000000"),
        (1.5e300, "15" + "0" * 299 + ".000000"),
        (math.nan, N),
        (math.inf, N),
        (N, N),
    ],
)
def test_a_double_is_written_with_six_digits(value: float | None, text: str | None) -> None:
    frame = column([value, 0.25], pl.Float64())
    assert frame.select(exact.double_text(pl.col("x")))["x"].to_list() == [text, "0.250000"]


@FEW
@given(some.lists(some.floats(-(2.0**53), 2.0**53), min_size=1, max_size=20))
def test_a_double_is_written_as_c_does(values: list[float]) -> None:
    frame = column(values, pl.Float64())
    found = frame.select(exact.double_text(pl.col("x")))["x"].to_list()
    assert found == [f"{v:.6f}" for v in values]

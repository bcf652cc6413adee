"""Mathematical functions: values, NULL where there is none, and types that are kept."""

from __future__ import annotations

import math
import zlib
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.sql.functions import math as functions
from penstock.sql.functions.base import REGISTRY
from penstock.types import ColumnType
from tests.nightly import drawn
from tests.unit.sql.calling import apply

N = None
TINY = ColumnType("TINYINT")
DOUBLES = [0.0, 0.5, 1.0, -1.0, 2.0, -0.25, 700.0, -700.0, N]


def defined(function: Any, value: float | None) -> float | None:
    """What mathematics says; None where there is no finite value."""
    try:
        found = N if value is None else function(value)
    except (ValueError, OverflowError):
        return None
    return found


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("acos", math.acos),
        ("asin", math.asin),
        ("atan", math.atan),
        ("cos", math.cos),
        ("sin", math.sin),
        ("tan", math.tan),
        ("exp", math.exp),
        ("ln", math.log),
        ("sqrt", math.sqrt),
        ("degrees", math.degrees),
        ("radians", math.radians),
    ],
)
def test_a_function_of_one_number_is_that_of_mathematics(name: str, function: Any) -> None:
    found = apply(REGISTRY[name].build, DOUBLES)
    wanted = [defined(function, v) for v in DOUBLES]
    assert [v is None for v in found] == [w is None for w in wanted]
    assert all(f == pytest.approx(w) for f, w in zip(found, wanted, strict=True) if w is not None)


CASES: list[tuple[Any, tuple[Any, ...], list[Any]]] = [
    (functions.pi, (), [math.pi]),
    (functions.log, ([8.0, 0.0, N], 2.0), [3.0, N, N]),
    (functions.log, ([8.0, 8.0, 8.0], [1.0, 0.0, N]), [N, N, N]),
    (functions.log, ([1.0, -1.0],), [0.0, N]),
    (functions.power, ([2.0, -8.0, 10.0, N], [3.0, 0.5, 999.0, 1.0]), [8.0, N, N, N]),
    (functions.mod, ([7.0, -7.0, 7.0, N], [3.0, 3.0, 0.0, 1.0]), [1.0, -1.0, N, N]),
    (functions.absolute, ([-5, 5, N, -(2**63)],), [5, 5, N, N]),
    (functions.absolute, (([-128, -127], TINY),), [N, 127]),
    (functions.absolute, (([2**64 - 1], ColumnType("BIGINT UNSIGNED")),), [2**64 - 1]),
    (functions.absolute, ([-0.5, N],), [0.5, N]),
    (functions.sign, ([-5, 0, 7, N],), [-1, 0, 1, N]),
    (functions.sign, ([-0.5, 0.0, 0.1],), [-1.0, 0.0, 1.0]),
    (functions.ceil, ([0.1, -0.1, 2.0, N],), [1.0, 0.0, 2.0, N]),
    (functions.ceil, ([2**62 + 1],), [2**62 + 1]),
    (functions.floor, ([0.1, -0.1, 2.0, N],), [0.0, -1.0, 2.0, N]),
    (functions.round_, ([0.5, -0.5, 1.5, 2.4, N],), [1.0, -1.0, 2.0, 2.0, N]),
    (functions.round_, ([1.25, -1.25, 1.24], 1), [1.3, -1.3, 1.2]),
    (functions.round_, ([1250.0, -1250.0], -2), [1300.0, -1300.0]),
    (functions.round_, ([15, -15, 14, N], -1), [20, -20, 10, N]),
    (functions.round_, ([15, 15], [2, N]), [15, N]),
    (functions.round_, ([15],), [15]),
    (functions.round_, (([125], TINY), -1), [N]),
    (functions.round_, ([1.5, 1.5], [N, 400]), [N, 1.5]),
    (functions.truncate, ([1.29, -1.29, N], 1), [1.2, -1.2, N]),
    (functions.truncate, ([19, -19], -1), [10, -10]),
    (functions.truncate, ([1999.0], -3), [1000.0]),
    (functions.truncate, ([19], -30), [0]),
    (functions.crc32, (["x", "", N],), [zlib.crc32(b"x"), 0, N]),
    (functions.crc32, ([b"x", b"x", N],), [zlib.crc32(b"x")] * 2 + [N]),
    (functions.crc32, ([12, N],), [zlib.crc32(b"12"), N]),
]


@pytest.mark.parametrize(
    ("build", "arguments", "wanted"),
    CASES,
    ids=[f"{c[0].__name__}{i}" for i, c in enumerate(CASES)],
)
def test_a_function_has_its_value_in_each_row(
    build: Any, arguments: tuple[Any, ...], wanted: list[Any]
) -> None:
    assert apply(build, *arguments) == wanted


@settings(max_examples=drawn(60), deadline=None)
@given(some.integers(-(2**63), 2**63 - 1), some.integers(-20, -1))
def test_whole_numbers_are_rounded_exactly(value: int, digits: int) -> None:
    unit = 10**-digits
    size = (abs(value) + unit // 2) // unit * unit
    wanted: int | None = -size if value < 0 else size
    if not -(2**63) <= size * (-1 if value < 0 else 1) < 2**63:
        wanted = None
    assert apply(functions.round_, [value], digits) == [wanted]
    assert apply(functions.truncate, [value], digits) == [int(Decimal(value) / unit) * unit]

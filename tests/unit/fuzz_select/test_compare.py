"""When two answers are one."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from tests.fuzz_select.compare import rows_of, same_value, wrong_rows, wrong_types
from tests.fuzz_select.tree import Ordered, Select, TableSource
from tests.unit.fuzz_select.kit import column

QUERY = Select((column("i"),), TableSource("m", "m"))
ORDERED = Select(QUERY.items, QUERY.source, order=(Ordered(0, descending=False, nulls_first=None),))


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (1.0, 1.0 + 1e-12, True),
        (1.0, 1.001, False),
        (math.nan, math.nan, True),
        (math.nan, 1.0, False),
        (None, None, True),
        (None, 0, False),
        (2**63, 2**63 - 1, False),
        ("a", "a ", False),
    ],
)
def test_values(left: Any, right: Any, same: bool) -> None:
    assert same_value(left, right) is same


def test_rows_are_the_same_in_any_order_unless_one_is_asked_for() -> None:
    assert wrong_rows([(2,), (1,)], [(1,), (2,)], QUERY) == ""
    assert "stands before" in wrong_rows([(2,), (1,)], [(1,), (2,)], ORDERED)
    assert wrong_rows([(1,)], [(1,), (1,)], QUERY) == "missing (1,)"
    assert wrong_rows([(1,), (3,)], [(1,)], QUERY) == "too many (3,)"


def test_types_and_ticks() -> None:
    assert wrong_types(pa.table({"c0": [1]}), QUERY) == ""
    assert "is R" in wrong_types(pa.table({"c0": [1.0]}), QUERY)
    times = pa.table({"c0": pa.array([1, None], pa.timestamp("ms", "UTC"))})
    assert rows_of(times) == [(1,), (None,)]

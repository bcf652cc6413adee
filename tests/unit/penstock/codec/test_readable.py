"""Values that could be written but not read back."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest

from penstock.codec.readable import all_readable, check
from penstock.errors import SchemaError
from penstock.sql.plan import Column
from penstock.types import TIME_LIMITS, ColumnType

LOW, HIGH = TIME_LIMITS["ms"]
CASES = [
    ("TIMESTAMP", [LOW, 0, HIGH, None], True),
    ("TIMESTAMP", [LOW - 1], False),
    ("TIMESTAMP", [0, HIGH + 1], False),
    ("DOUBLE", [1.0, None, math.nan], True),
    ("DOUBLE", [1.0, math.inf], False),
    ("FLOAT", [-math.inf], False),
    ("BIGINT", [HIGH + 1, None], True),
    ("TIMESTAMP", [], True),
    ("DOUBLE", [None], True),
]


@pytest.mark.parametrize(("kind", "values", "readable"), CASES)
def test_a_column_and_its_values_are_judged_alike(
    kind: str, values: list[Any], readable: bool
) -> None:
    column = Column("c", ColumnType(kind))
    assert all_readable(values, column.type, (LOW, HIGH)) is readable
    series = pl.Series("c", values, column.type.polars())
    if readable:
        check(series, column, (LOW, HIGH))
        return
    with pytest.raises(SchemaError) as caught:
        check(series, column, (LOW, HIGH))
    assert caught.value.code == "E_ROW"
    assert 'column "c"' in caught.value.message

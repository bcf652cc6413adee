"""Values that can be written but not read back: times out of their precision's range, infinity. No
way in takes them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from penstock.errors import SchemaError
from penstock.sql.plan import Column
from penstock.types import ColumnType, in_range


def check(values: pl.Series, column: Column, limits: tuple[int, int]) -> None:
    """Refuse what could not be read back.

    Args:
        values: of *column*; times in ticks.
        limits: first and last time of the table's precision, in ticks.

    Raises:
        SchemaError: one of them is such a value.
    """
    if column.type.kind == "TIMESTAMP" and in_range(values, limits) is not values:
        raise SchemaError(f'a time in column "{column.name}" is out of range', code="E_ROW")
    if column.type.kind in ("FLOAT", "DOUBLE") and values.is_infinite().any():
        raise SchemaError(
            f'a value of column "{column.name}" is infinite or too large for it', code="E_ROW"
        )


def all_readable(values: Sequence[Any], kind: ColumnType, limits: tuple[int, int]) -> bool:
    """Tell the same of a few Python values."""
    if kind.kind == "TIMESTAMP":
        low, high = limits
        return all(v is None or low <= v <= high for v in values)
    if kind.kind in ("FLOAT", "DOUBLE"):
        return all(v is None or not math.isinf(v) for v in values)
    return True

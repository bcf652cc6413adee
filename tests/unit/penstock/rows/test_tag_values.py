from __future__ import annotations

from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from penstock.rows import tag_values
from penstock.types import ColumnType

PRICE = ColumnType("DECIMAL", precision=38, scale=10)
BYTES = ColumnType("VARBINARY", 8)


@pytest.mark.parametrize(
    ("kind", "value", "held"),
    [
        (PRICE, Decimal("0E-10"), "0.0000000000"),
        (PRICE, Decimal("1E-10"), "0.0000000001"),
        (PRICE, Decimal("-1234567890123456789012345678.5"), "-1234567890123456789012345678.5"),
        (BYTES, b"\x00\xff", "00ff"),
        (BYTES, b"", ""),
        (ColumnType("NCHAR", 8), "1.50", "1.50"),
        (ColumnType("TIMESTAMP"), 1000, 1000),
        (ColumnType("BOOL"), True, True),
        (PRICE, None, None),
        (BYTES, None, None),
    ],
)
def test_values_as_json_and_back(kind: ColumnType, value: Any, held: Any) -> None:
    assert tag_values.to_json(value) == held
    assert tag_values.to_json(held) == held
    assert tag_values.from_json(held, kind) == value
    assert tag_values.to_series("t", kind, [held, None]).to_list() == [value, None]


def test_a_literal_that_earlier_builds_kept_is_read_as_bytes() -> None:
    assert tag_values.from_json("\\x00ff", BYTES) == b"\x00\xff"
    assert tag_values.from_json("north", BYTES) == b"north"


def test_columns_have_the_type_of_the_tag() -> None:
    assert tag_values.to_series("t", PRICE, []).dtype == pl.Decimal(38, 10)
    assert tag_values.to_series("t", BYTES, [None]).dtype == pl.Binary

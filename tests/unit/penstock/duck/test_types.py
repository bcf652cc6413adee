"""Every column type has a name that DuckDB knows, and that keeps its values."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from penstock.duck.types import duck_type
from penstock.types import ColumnType

KINDS: list[tuple[ColumnType, Any]] = [
    (ColumnType("BOOL"), True),
    (ColumnType("TINYINT"), -128),
    (ColumnType("SMALLINT"), -32_768),
    (ColumnType("INT"), -(2**31)),
    (ColumnType("BIGINT"), -(2**63)),
    (ColumnType("TINYINT UNSIGNED"), 255),
    (ColumnType("SMALLINT UNSIGNED"), 65_535),
    (ColumnType("INT UNSIGNED"), 2**32 - 1),
    (ColumnType("BIGINT UNSIGNED"), 2**64 - 1),
    (ColumnType("FLOAT"), 0.5),
    (ColumnType("DOUBLE"), 1e300),
    (ColumnType("VARCHAR", 8), "text"),
    (ColumnType("NCHAR", 8), "äöü"),
    (ColumnType("JSON", 64), '{"a": 1}'),
    (ColumnType("VARBINARY", 8), b"\x00\xff"),
]


@pytest.mark.parametrize(("kind", "value"), KINDS, ids=lambda x: str(x)[:20])
def test_values_survive(kind: ColumnType, value: Any) -> None:
    name = duck_type(kind.kind, "ms", str(kind))
    row = duckdb.connect().execute(f"SELECT CAST($1 AS {name})", [value]).fetchone()
    assert row == (value,)


def test_decimals_keep_their_digits() -> None:
    name = duck_type("DECIMAL", "ms", "DECIMAL(10,2)")
    row = duckdb.connect().execute(f"SELECT CAST('12.345' AS {name})::VARCHAR").fetchone()
    assert row == ("12.35",)


@pytest.mark.parametrize(
    ("precision", "wanted"), [("ms", "TIMESTAMP_MS"), ("us", "TIMESTAMP"), ("ns", "TIMESTAMP_NS")]
)
def test_times_have_the_databases_precision(precision: str, wanted: str) -> None:
    assert duck_type("TIMESTAMP", precision, "TIMESTAMP") == wanted

"""Tags of child tables as rows: their order, their types, and tags that are younger."""

from __future__ import annotations

from decimal import Decimal

import polars as pl

from penstock.catalog.model import Table, TableVersion
from penstock.sql.plan import Column
from penstock.types import ColumnType
from services.store.child_tags import rows_of_tags

TAGS = (
    Column("n", ColumnType("INT")),
    Column("price", ColumnType("DECIMAL", precision=10, scale=2)),
    Column("raw", ColumnType("VARBINARY", 8)),
    Column("since", ColumnType("TIMESTAMP")),
    Column("young", ColumnType("BOOL")),
)
TABLE = Table(
    8,
    "d",
    "meters",
    "stable",
    "in.d",
    1,
    "us",
    (TableVersion(108, (Column("ts", ColumnType("TIMESTAMP")),), TAGS),),
)


def test_values_have_the_types_of_their_tags() -> None:
    rows = rows_of_tags(
        TABLE,
        [
            ("b", (None, None, None, None, None)),
            ("a", (7, "12.5", "00ff", 1_000_001)),
        ],
    )
    assert rows.with_columns(pl.col("since").to_physical()).rows() == [
        ("a", 7, Decimal("12.50"), b"\x00\xff", 1_000_001, None),
        ("b", None, None, None, None, None),
    ]
    assert [str(field.type) for field in rows.to_arrow().schema][1:] == [
        "int32",
        "decimal128(10, 2)",
        "large_binary",
        "timestamp[us]",
        "bool",
    ]


def test_no_child_table_is_no_row() -> None:
    rows = rows_of_tags(TABLE, [])
    assert rows.is_empty()
    assert rows.columns == ["tbname", "n", "price", "raw", "since", "young"]

"""Columns of one table version to record values."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import numpy as np
import polars as pl
import pytest

from penstock.catalog.model import TableVersion
from penstock.codec.encoder import Encoder, in_stretches, partitions_of
from penstock.codec.record_cutter import Head
from penstock.codec.schema import WireLayout
from penstock.errors import SchemaError
from penstock.rows.partition import hashes, partition
from penstock.sql.plan import Column
from penstock.types import ColumnType

VERSION = TableVersion(
    100,
    (Column("ts", ColumnType("TIMESTAMP")), Column("n", ColumnType("INT"))),
    (Column("Site", ColumnType("VARCHAR", 20)),),
)
SLOW = TableVersion(
    100, (*VERSION.columns, Column("m", ColumnType("DECIMAL", precision=5, scale=2)))
)
LAYOUT = WireLayout(VERSION, "ms", "t")
HEAD = Head(100, None, 0, 0, None)


def frame(rows: int, **more: Any) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "site": [f"s{i}" for i in range(rows)],
            "TS": list(range(rows)),
            "n": list(range(rows)),
            "tbname": ["a"] * rows,
            **more,
        }
    )


def decode(value: bytes, layout: WireLayout = LAYOUT) -> dict[str, Any]:
    assert value.startswith(layout.frame)
    made: Any = fastavro.schemaless_reader(
        io.BytesIO(value[len(layout.frame) :]), layout.reference, None
    )
    return made  # type: ignore[no-any-return]


def encode(
    rows: pl.DataFrame, layout: WireLayout = LAYOUT, order: list[int] | None = None
) -> list[dict[str, Any]]:
    encoder = Encoder(layout, "t")
    values, owner = encoder.encode(
        encoder.in_order(rows),
        rows.height,
        np.array([0, rows.height]),
        [HEAD],
        order=None if order is None else np.array(order),
    )
    assert owner == [0] * len(values)
    return [row for value in values for row in decode(value, layout)["rows"]]


def test_columns_are_found_in_any_case_and_order() -> None:
    found = Encoder(LAYOUT, "t").in_order(frame(2))
    assert [None if c is None else c.name for c in found] == ["tbname", "TS", None, "n", "site"]


@pytest.mark.parametrize("rows", [1, 8, 9, 100])
def test_few_rows_and_many_give_the_same(rows: int) -> None:
    found = encode(frame(rows))
    assert [r["n"] for r in found] == list(range(rows))
    assert {r["op"] for r in found} == {0}
    assert [r["Site"] for r in found] == [f"s{i}" for i in range(rows)]


def test_rows_are_taken_in_the_order_that_is_given() -> None:
    assert [r["n"] for r in encode(frame(3), order=[2, 0, 1])] == [2, 0, 1]


def test_a_column_that_is_not_there_is_null() -> None:
    assert {r["Site"] for r in encode(frame(10).drop("site"))} == {None}


def test_decimals_go_by_the_other_engine() -> None:
    layout = WireLayout(SLOW, "ms", "t")
    assert not layout.fast
    made = frame(20).with_columns(m=pl.lit("1.25").cast(pl.Decimal(5, 2)))
    assert {str(r["m"]) for r in encode(made, layout)} == {"1.25"}


def test_large_unsigned_numbers_keep_their_bits() -> None:
    version = TableVersion(100, (VERSION.columns[0], Column("u", ColumnType("BIGINT UNSIGNED"))))
    layout = WireLayout(version, "ms", "t")
    numbers = [2**64 - 1, 5, None]
    made = frame(3, u=pl.Series(numbers, dtype=pl.UInt64))
    assert [r["u"] for r in encode(made, layout)] == [-1, 5, None]
    whole = frame(2, u=pl.Series(numbers[:2], dtype=pl.UInt64))
    assert [r["u"] for r in encode(whole, layout)] == [-1, 5]


@pytest.mark.parametrize("column", ["tbname", "TS"])
def test_a_row_without_table_or_time_is_refused(column: str) -> None:
    made = frame(2).with_columns(
        pl.when(pl.col("n") == 0).then(pl.col(column)).otherwise(None).alias(column)
    )
    with pytest.raises(SchemaError) as caught:
        encode(made)
    assert caught.value.code == "E_NULL_TIME"
    assert "table t" in caught.value.message


def test_stretches_are_found_by_their_numbers() -> None:
    order, ends = in_stretches(np.array([2, 0, 2, 0]), 4)
    assert order.tolist() == [1, 3, 0, 2]
    assert ends.tolist() == [0, 2, 2, 4, 4]


def test_the_partition_of_a_row_is_that_of_its_table() -> None:
    names = ["a", "b", "ä", "a"]
    rows = pl.DataFrame({"tbname": names})
    wanted = [partition(n, 7) for n in names]
    assert partitions_of(rows, 7, None).tolist() == wanted
    assert partitions_of(rows, 7, pl.Series(hashes(rows["tbname"]))).tolist() == wanted
    assert partitions_of(rows[:1], 7, None).tolist() == wanted[:1]

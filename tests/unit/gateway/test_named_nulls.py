"""A NULL that a partial write names goes to the log as a clear before its row."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa

from gateway import rows
from gateway.layout import RowLayout
from gateway.named_nulls import CLEARED, spell_out
from penstock.rows.versions import CLEAR, MERGE, UPSERT
from penstock.sql.plan import Column
from penstock.types import ColumnType

COLUMNS = (
    Column("ts", ColumnType("TIMESTAMP")),
    Column("a", ColumnType("INT")),
    Column("b", ColumnType("VARCHAR", 8)),
)
LAYOUT = RowLayout(1, 100, "db", "t", "in.db", 1, COLUMNS, (), "ms", 86_400_000, True)


def spelled(frame: pl.DataFrame, counts: list[int]) -> tuple[list[Any], list[int]]:
    whole, sizes = spell_out(frame, LAYOUT.values, counts)
    return whole.select("_op", "ts", "a", "b").rows(), sizes


def test_a_named_null_is_cleared_and_an_absent_column_is_not() -> None:
    frame = rows.from_objects(LAYOUT, [{"ts": 1, "a": None}, {"ts": 2, "a": 5}])
    assert frame.height == 2
    assert spelled(frame, [1, 1]) == (
        [(CLEAR, 1, 0, None), (MERGE, 1, None, None), (MERGE, 2, 5, None)],
        [2, 1],
    )


def test_rows_of_uneven_keys_clear_what_each_of_them_names() -> None:
    given = [
        {"ts": 1, "a": None},
        {"ts": 2, "b": None},
        {"ts": 3, "A": None, "b": "x"},
        {"ts": 4},
    ]
    frame = rows.from_objects(LAYOUT, [{k.lower(): v for k, v in row.items()} for row in given])
    assert spelled(frame, [4]) == (
        [
            (CLEAR, 1, 0, None),
            (MERGE, 1, None, None),
            (CLEAR, 2, None, "0"),
            (MERGE, 2, None, None),
            (UPSERT, 3, None, "x"),
            (MERGE, 4, None, None),
        ],
        [6],
    )


def test_whole_rows_and_partial_ones_without_null_stay_as_they_are() -> None:
    whole = rows.from_objects(LAYOUT, [{"ts": 1, "a": None, "b": None}])
    partial = rows.from_objects(LAYOUT, [{"ts": 1, "a": 1}])
    for frame in (whole, partial):
        assert CLEARED not in frame.columns
        assert spell_out(frame, LAYOUT.values, [1]) == (frame, [1])


def test_arrow_columns_name_their_nulls() -> None:
    frame = rows.from_arrow(LAYOUT, pa.table({"ts": [1, 2], "b": pa.array([None, "y"])}))
    assert spelled(frame, [1, 1]) == (
        [(CLEAR, 1, None, "0"), (MERGE, 1, None, None), (MERGE, 2, None, "y")],
        [2, 1],
    )


def test_writes_with_and_without_named_nulls_go_together() -> None:
    one = rows.from_objects(LAYOUT, [{"ts": 1, "a": 1, "b": "x"}])
    other = rows.from_objects(LAYOUT, [{"ts": 2, "a": None}])
    frame = pl.concat([one, other, one], how="diagonal")
    assert spelled(frame, [1, 1, 1]) == (
        [(UPSERT, 1, 1, "x"), (CLEAR, 2, 0, None), (MERGE, 2, None, None), (UPSERT, 1, 1, "x")],
        [1, 2, 1],
    )

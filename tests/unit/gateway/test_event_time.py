"""Rows of a stream that was created without a time column get a time and a number as they come."""

from __future__ import annotations

import time

from gateway import rows
from gateway.layout import RowLayout
from penstock.sql.plan import Column
from penstock.types import ColumnType

_TP = (
    Column("_tp_time", ColumnType("TIMESTAMP")),
    Column("_tp_sn", ColumnType("BIGINT")),
    Column("v", ColumnType("INT")),
)
LAYOUT = RowLayout(1, 100, "d", "web", "in.d", 1, _TP, (), "ms", 86_400_000, True, "_tp_sn")


def test_rows_of_one_moment_stay_apart() -> None:
    before = time.time_ns() // 10**6
    first, second = (rows.from_objects(LAYOUT, [{"v": i} for i in range(1000)]) for _ in range(2))
    numbers = [*first["_tp_sn"], *second["_tp_sn"]]
    assert len(set(numbers)) == 2000 and numbers == sorted(numbers)
    assert first["_op"].unique().to_list() == [0], "whole rows, nothing to merge with"
    assert all(before <= t <= before + 60_000 for t in first["_tp_time"])


def test_a_time_that_is_given_counts() -> None:
    frame = rows.from_objects(LAYOUT, [{"_tp_time": 5, "v": 1}, {"_tp_time": 5, "v": 2}])
    assert frame["_tp_time"].to_list() == [5, 5] and frame["_tp_sn"].n_unique() == 2

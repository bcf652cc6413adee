"""Which columns tell source rows from each other."""

from __future__ import annotations

from dataclasses import replace

from penstock.windows.rows.row_columns import RowColumns
from tests.unit.windows.plans import window_plan

_SOURCE = window_plan().source


def test_rows_of_a_table_are_told_apart_by_their_time():
    columns = RowColumns.of(_SOURCE)

    assert columns == RowColumns(["tbname", "ts"], ["v", "i", "s"])
    assert columns.time == "ts"


def test_a_composite_key_is_no_value():
    columns = RowColumns.of(replace(_SOURCE, key_column="i"))

    assert columns == RowColumns(["tbname", "ts", "i"], ["v", "s"])

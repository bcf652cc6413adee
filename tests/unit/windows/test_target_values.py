"""Values that no table takes are NULL."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from penstock.sql.plan import Column
from penstock.types import TIME_LIMITS
from penstock.windows.emit.target_values import TargetValues
from tests.unit.windows.plans import DOUBLE, TIMESTAMP, window_plan

TARGET = replace(
    window_plan().target, columns=(Column("t", TIMESTAMP), Column("v", DOUBLE)), precision="ms"
)
_, LAST = TIME_LIMITS["ms"]


def test_times_out_of_range_and_infinity_are_null():
    rows = pl.DataFrame({"t": [0, LAST, LAST + 1, None], "v": [1.0, float("inf"), None, 2.0]})

    mended = TargetValues(TARGET).mended(rows)

    assert mended.rows() == [(0, 1.0), (LAST, None), (None, None), (None, 2.0)]


def test_rows_that_a_table_takes_are_as_they_were():
    rows = pl.DataFrame({"t": [0, LAST], "v": [None, 1.0]})

    assert TargetValues(TARGET).mended(rows) is rows


def test_limits_are_those_of_the_target_s_precision():
    fine = TargetValues(replace(TARGET, precision="us"))

    assert fine.mended(pl.DataFrame({"t": [LAST + 1], "v": [0.0]})).item(0, "t") == LAST + 1

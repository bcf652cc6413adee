"""Partials that an earlier version saved go on where they were."""

from __future__ import annotations

import polars as pl
import pytest

from penstock.sql.plan import Aggregate
from penstock.windows.general.kernel import GeneralKernel
from penstock.windows.interval.kernel import IntervalKernel
from penstock.windows.kernel import Delta
from tests.unit.windows.plans import BIGINT, DOUBLE, MemoryHistory, Table, frame, window_plan

#: what earlier versions did not save: the low part of a mean, and the rough sum beside one of 64
#: bits
_LATER = (".low", "_p4")


@pytest.mark.parametrize("kernel_of", [IntervalKernel, GeneralKernel])
def test_state_without_the_later_columns_is_read(kernel_of):
    plan = window_plan((("stddev", "v"), ("avg", "CAST(v AS BIGINT)")))
    history = MemoryHistory()
    first = frame([[("d1", 1000, 2.0)], [("d1", 2000, 4.0)]])
    old = kernel_of(plan, history)
    old.apply(first)
    history.add(first)
    saved = old.delta(True).frames
    windows = saved["windows"]
    lacking = [name for name in windows.columns if name.endswith(_LATER)]
    assert lacking
    kernel = kernel_of(plan, history)
    kernel.restore([Delta({**saved, "windows": windows.drop(lacking)}, full=True)])
    table = Table()
    table.take(kernel.apply(frame([[("d1", 3000, 9.0)]], 2)))
    ((_, deviation, mean, *_),) = table.rows.values()
    assert mean == 5.0
    assert deviation == pytest.approx(pl.Series([2.0, 4.0, 9.0]).std(ddof=0), rel=1e-12)


@pytest.mark.parametrize("kernel_of", [IntervalKernel, GeneralKernel])
@pytest.mark.parametrize("lacking", [["_p5"], ["_p4", "_p5"]])
def test_sums_that_were_saved_without_the_rough_ones_go_on(kernel_of, lacking):
    total = Aggregate("_a0", "sum", "CAST(v AS BIGINT)", BIGINT)
    plan = window_plan(aggregates=(total, Aggregate("_a1", "avg", "CAST(i AS BIGINT)", DOUBLE)))
    history = MemoryHistory()
    first = frame([[("d1", 500, 2.0)], [("d1", 1000, 4.0)]])
    old = kernel_of(plan, history)
    old.apply(first)
    history.add(first)
    saved = old.delta(True).frames
    kernel = kernel_of(plan, history)
    kernel.restore([Delta({**saved, "windows": saved["windows"].drop(lacking)}, full=True)])
    table = Table()
    for n, (value, found) in enumerate(
        [(9, 15), (1 << 62, (1 << 62) + 15), (1 << 62, None), (-16, (1 << 63) - 1)], 2
    ):
        table.take(
            kernel.apply(frame([[("d1", n * 1000, 3.0)]], n).with_columns(v=pl.lit(float(value))))
        )
        assert [row[1:3] for row in table.rows.values()] == [(found, 3.0)]

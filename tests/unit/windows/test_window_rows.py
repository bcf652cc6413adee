"""Windows with what is held of them → rows."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl

from penstock.rows.versions import DELETE, UPSERT
from penstock.sql.plan import OPEN_SPAN, Column, Output
from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.emit.window_rows import WindowRows
from penstock.windows.groups.groups import Groups
from penstock.windows.groups.table_names import TableNames
from penstock.windows.rows.scope import Scope
from tests.unit.windows.plans import TIMESTAMP, aggregate, frame, window_plan


def made_of():
    """The rows of a plan that shows `_now`, and its two windows with their partials."""
    plan = window_plan(aggregates=(aggregate(0, "count", None), aggregate(1, "avg")))
    target = dataclasses.replace(
        plan.target,
        columns=(*plan.target.columns, Column("n", TIMESTAMP)),
        column_of=(*plan.target.column_of, "n"),
    )
    outputs = (*plan.outputs, Output("n", "_now", TIMESTAMP))
    scope = Scope(dataclasses.replace(plan, target=target, outputs=outputs))
    aggregates = Aggregates(scope)
    groups = Groups(scope, TableNames())
    rows = frame([[("d1", 1, 1.0), ("d2", 1, 2.0), ("d2", 2, 4.0)]])
    rows = rows.with_columns(groups.expressions)
    rows = rows.with_columns(pl.Series("_g", groups.numbers(rows)))
    partials = aggregates.partial(rows.with_columns(aggregates.arguments.expressions), ["_g"])
    windows = partials.sort("_g", descending=True).with_columns(
        pl.Series("_wstart", [10_000, 0]),
        pl.Series("_wend", [20_000, 10_000]),
        pl.lit(True).alias("_done"),
    )
    return WindowRows(scope, groups, aggregates), windows


def test_final_values_and_the_moment_are_in_the_rows_of_windows():
    rows, windows = made_of()
    made = rows.upserts(windows, 77)
    assert made.failed is None and made.hashes is not None
    assert made.rows.select("_op", "_wstart", "c_a0", "c_a1", "n", "tname").rows() == [
        (UPSERT, 10_000, 2, 3.0, 77, "d2"),
        (UPSERT, 0, 1, 1.0, 77, "d1"),
    ]


def test_span_and_partials_may_come_apart():
    rows, windows = made_of()
    span = [windows[name] for name in ("_g", "_wstart", "_wend")]
    apart = rows.of_partials(windows.drop("_g", "_wstart", "_wend"), span, 77)
    assert apart.rows.equals(rows.upserts(windows, 77).rows)


def test_deletions_need_no_partials():
    rows, windows = made_of()
    made = rows.deletes(windows.select("_g", "_wstart", "_wend", "_done"))
    assert made.rows.select("_op", "_wstart", "tname").rows() == [
        (DELETE, 10_000, "d2"),
        (DELETE, 0, "d1"),
    ]


def test_open_windows_are_rows_without_an_operation():
    rows, windows = made_of()
    shown = rows.open_rows(windows, 77, np.array([12_000, 3_000]))
    assert shown.drop(OPEN_SPAN).equals(rows.upserts(windows, 77).rows.drop("_op"))
    assert shown.select(OPEN_SPAN).rows() == [(10_000, 20_000, 12_000), (0, 10_000, 3_000)]
    none = rows.open_rows(windows.clear(), 77, np.empty(0, np.int64))
    assert none.height == 0 and none.schema == shown.schema

"""Parts of kernels as the kernels put them together, for tests of one part.

Owns the wiring only: a test asks for the part that it is about and gives it rows. Clocks and
buffers come from here, so that a test does not depend on how they are made.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from penstock.sql.plan import Interval, StreamPlan, Window
from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.assign.boundaries import Grid
from penstock.windows.assign.calls import Call
from penstock.windows.assign.inorder import InOrder
from penstock.windows.clocks.clock import GroupClock, TableClock
from penstock.windows.clocks.ticks import Mask
from penstock.windows.general.kernel import GeneralKernel
from penstock.windows.general.renewal import Renewal
from penstock.windows.groups.groups import Groups
from penstock.windows.groups.table_names import TableNames
from penstock.windows.kernel import History
from penstock.windows.rows.counted import Counted
from penstock.windows.rows.row_reader import RowReader
from penstock.windows.rows.scope import Scope
from tests.unit.windows.plans import aggregate, window_plan

#: rows of (group, time, value)
Line = tuple[int, int, float | None]


def plan_with(window: Window | None, **given: Any) -> StreamPlan:
    """A plan of `window_plan` with another window."""
    return replace(window_plan(**given), window=window)


def aggregates_of(*functions: tuple[str, str | None], **given: Any) -> Aggregates:
    """The aggregates of a plan: (function, argument) each."""
    items = tuple(aggregate(n, f, sql) for n, (f, sql) in enumerate(functions))
    return Aggregates(Scope(window_plan(aggregates=items, **given)))


def grid_of(plan: StreamPlan) -> Grid:
    """The grid of an INTERVAL plan."""
    assert isinstance(plan.window, Interval)
    return Grid(plan.window, plan.source.precision, plan.timezone)


def call_of(aggregates: Aggregates, lines: list[Line], *, tables: list[int] | None = None) -> Call:
    """The call that rows of (key, time, value) make; each row is a write of its own."""
    plan = aggregates.arguments.scope.plan
    rows = source_rows(lines).with_columns(aggregates.arguments.expressions)
    keys = np.array([g for g, _, _ in lines], np.int64)
    numbers = keys if tables is None else np.array(tables, np.int64)
    return Call(rows, plan.source.time_column, numbers, keys, grid_of(plan))


def source_rows(lines: list[Line]) -> pl.DataFrame:
    """Source rows of (group, time, value): `i` is the value cut to a whole number, `s` its text."""
    values = [v for *_, v in lines]
    return pl.DataFrame(
        {
            "_step": range(len(lines)),
            "_offset": range(len(lines)),
            "_now": [t for _, t, _ in lines],
            "_op": [0] * len(lines),
            "tbname": [f"d{g}" for g, *_ in lines],
            "ts": [t for _, t, _ in lines],
            "v": values,
            "i": [None if v is None else int(v) for v in values],
            "s": [None if v is None else f"s{v}" for v in values],
            "loc": ["l"] * len(lines),
        },
        schema={
            "_step": pl.UInt32,
            "_offset": pl.Int64,
            "_now": pl.Int64,
            "_op": pl.Int8,
            "tbname": pl.String,
            "ts": pl.Int64,
            "v": pl.Float64,
            "i": pl.Int32,
            "s": pl.String,
            "loc": pl.String,
        },
    )


def groups_of(plan: StreamPlan) -> Groups:
    """The groups of a plan, before its first rows."""
    return Groups(Scope(plan), TableNames())


def kernel_of(plan: StreamPlan, history: History | None = None, room: int = 0) -> GeneralKernel:
    """A general kernel, whose parts are its attributes; it lets rows go as soon as it may."""
    return GeneralKernel(plan, history, room)


def renewal_of(kernel: GeneralKernel) -> Renewal:
    """What renews the windows of a kernel."""
    return kernel.updates.renewal


def in_order(kernel: GeneralKernel) -> InOrder:
    """The short way of a kernel, whether its plan may take it or not."""
    renewal = renewal_of(kernel)
    heads = kernel.store.heads
    return InOrder(kernel.ingest, renewal.aggregates, renewal.cutter, kernel.store, heads)


def make_room(kernel: GeneralKernel) -> None:
    """Have a kernel's parts know of all groups that rows were prepared for."""
    count = len(kernel.ingest.groups)
    kernel.clock.reserve(count)
    kernel.store.reserve(count)


def hear(kernel: GeneralKernel, live: pl.DataFrame) -> None:
    """Move event time on to what prepared rows say."""
    times = live.get_column(kernel.ingest.time).to_numpy()
    tables = live.get_column("_tab").to_numpy()
    kernel.clock.advance(live.get_column("_g").to_numpy(), times, None)
    kernel.tables.reserve(int(tables.max(initial=-1)) + 1)
    kernel.tables.raise_to(tables, times)


def split(
    kernel: GeneralKernel, inorder: InOrder, rows: pl.DataFrame, *, replaces: bool, wait: bool
) -> Mask:
    """Which prepared rows are in order behind what the kernel has had; see `InOrder.split`."""
    make_room(kernel)
    return inorder.split(rows, kernel.clock.times, kernel.tables, replaces, wait)


def reader_of(
    plan: StreamPlan, aggregates: Aggregates, groups: Groups, counted: Counted
) -> RowReader:
    """What brings source rows into the windows of a grid."""
    grid = grid_of(plan)
    names = TableNames()
    return RowReader(Scope(plan), grid, aggregates, groups, counted, names, lambda: None)


def clocks_of(watermark: int, groups: int) -> tuple[GroupClock, TableClock]:
    """Event time of *groups* groups and of the tables, before their first rows."""
    clock = GroupClock(watermark)
    clock.reserve(groups)
    names = TableNames()
    names.numbers(pl.DataFrame({"tbname": [f"d{n}" for n in range(64)]}))
    return clock, TableClock(names)

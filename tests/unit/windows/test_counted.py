"""One rule for DELETE in all kernels: what was counted stays so unless it is named, what was
dropped stays dropped.
"""

from __future__ import annotations

import random
from dataclasses import replace

import polars as pl
import pytest

from penstock.sql.plan import StreamPlan
from penstock.windows.general.kernel import GeneralKernel
from penstock.windows.interval.kernel import IntervalKernel, supports
from penstock.windows.kernel import Control, History, Kernel
from tests.conformance.case import Case
from tests.conformance.kernel_backend import KernelBackend
from tests.fuzz import draw
from tests.nightly import drawn
from tests.unit.windows.plans import BY_TABLE, MemoryHistory, Table, frame, window_plan


def _general(plan: StreamPlan, history: History | None, room: int) -> Kernel:
    assert supports(plan), "a plan of the other kernel tells nothing"
    return GeneralKernel(plan, history, room)


@pytest.mark.parametrize("number", range(drawn(80)))
def test_both_kernels_of_intervals_publish_the_same(number: int) -> None:
    chance = random.Random(f"both {number}")
    plan = draw.plan(chance)
    plan = replace(
        plan,
        window=chance.choice([("interval", 100, 100), ("interval", 100, 50), ("interval", 90, 30)]),
        trigger=chance.choice(["AT_ONCE", "WINDOW_CLOSE"]),
        ignore_expired=True,
        ignore_update=True,
        fill=False,
        history=False,
        sketch=False,
    )
    happened = [
        e
        for _ in range(3)
        for e in draw.events(chance, plan)
        if e[0] not in ("CREATE_STREAM", "PAUSE", "RESUME")
    ]
    raw = {
        "id": str(number),
        "tables": list(draw.TABLES),
        "stream": draw.statement(plan, False),
        "events": happened,
    }
    case = Case.read(raw)
    split = chance.choice([None, number])
    fast = KernelBackend(split).run(case)
    general = KernelBackend(split, make=_general).run(case)
    assert fast.crash is None and general.crash is None, (fast.crash, general.crash)
    assert fast.rows == general.rows


def _deleted(kernel: Kernel, history: MemoryHistory, table: Table, low: int, high: int) -> None:
    table.take(kernel.control(Control("delete", low=low, high=high)))
    history.delete(low, high, None)


def _write(kernel: Kernel, history: MemoryHistory, table: Table, rows: pl.DataFrame) -> None:
    table.take(kernel.apply(rows))
    history.add(rows)


@pytest.mark.parametrize("kind", [IntervalKernel, GeneralKernel])
def test_a_delete_leaves_rows_it_does_not_name_as_they_counted(
    kind: type[IntervalKernel] | type[GeneralKernel],
) -> None:
    history = MemoryHistory()
    table = Table()
    kernel = kind(window_plan(keys=BY_TABLE), history)
    _write(
        kernel,
        history,
        table,
        frame([[("d1", 1000, 1.0)], [("d1", 1000, 2.0)], [("d1", 2000, 4.0), ("d1", 2000, 8.0)]]),
    )
    _write(kernel, history, table, frame([[("d1", 1000, 16.0)], [("d1", 3000, 32.0)]], 3))
    assert [r[1:3] for r in table.rows.values()] == [(6, 63.0)]
    _deleted(kernel, history, table, 3000, 3000)
    assert [r[1:3] for r in table.rows.values()] == [(5, 31.0)]
    _deleted(kernel, history, table, 2000, 2000)
    assert [r[1:3] for r in table.rows.values()] == [(3, 19.0)]
    _write(kernel, history, table, frame([[("d1", 4000, 64.0)], [("d1", 1000, 128.0)]], 5))
    _deleted(kernel, history, table, 4000, 4000)
    assert [r[1:3] for r in table.rows.values()] == [(4, 147.0)]
    _deleted(kernel, history, table, 1000, 1000)
    assert table.rows == {}


def test_rows_from_before_the_stream_do_not_count_after_a_delete() -> None:
    history = MemoryHistory()
    table = Table()
    history.add(frame([[("d1", 1000, 1.0), ("d1", 2500, 1.0)]]))
    kernel = IntervalKernel(window_plan(keys=BY_TABLE), history)
    _write(kernel, history, table, frame([[("d1", 2000, 2.0)], [("d1", 3000, 4.0)]], 1))
    _deleted(kernel, history, table, 3000, 3000)
    assert [r[1:3] for r in table.rows.values()] == [(1, 2.0)]


@pytest.mark.parametrize("restored", [False, True])
def test_what_recalculate_or_history_took_counts_once(restored: bool) -> None:
    history = MemoryHistory()
    table = Table()
    history.add(frame([[("d1", 1000, 1.0)], [("d1", 1000, 2.0)]]))
    plan = window_plan(keys=BY_TABLE)
    kernel = IntervalKernel(plan, history)
    table.take(kernel.load_history())
    _write(
        kernel,
        history,
        table,
        frame(
            [[("d1", 1000, 4.0)], [("d1", 2000, 8.0)], [("d1", 3000, 16.0)], [("d1", 2000, 32.0)]],
            2,
        ),
    )
    if restored:
        saved = kernel.delta(True)
        kernel = IntervalKernel(plan, history)
        kernel.restore([saved])
    _deleted(kernel, history, table, 3000, 3000)
    assert [r[1:3] for r in table.rows.values()] == [(4, 46.0)]
    table.take(kernel.control(Control("recalculate", low=2000, high=2000)))
    assert [r[1:3] for r in table.rows.values()] == [(3, 38.0)]
    _write(kernel, history, table, frame([[("d1", 2000, 64.0)], [("d1", 5000, 128.0)]], 6))
    if restored:
        saved = kernel.delta(True)
        kernel = IntervalKernel(plan, history)
        kernel.restore([saved])
    _deleted(kernel, history, table, 5000, 5000)
    assert [r[1:3] for r in table.rows.values()] == [(4, 102.0)]


def test_a_state_without_the_streams_beginning_knows_rows_by_their_last_versions() -> None:
    history = MemoryHistory()
    table = Table()
    plan = window_plan(keys=BY_TABLE)
    kernel = IntervalKernel(plan, history)
    _write(
        kernel,
        history,
        table,
        frame([[("d1", 1000, 1.0)], [("d1", 1000, 2.0)], [("d1", 2000, 4.0)]]),
    )
    saved = kernel.delta(True)
    old = {name: rows for name, rows in saved.frames.items() if name not in ("begun", "renewed")}
    kernel = IntervalKernel(plan, history)
    kernel.restore([replace(saved, frames=old)])
    _write(kernel, history, table, frame([[("d1", 1000, 8.0)], [("d1", 2500, 16.0)]], 3))
    _deleted(kernel, history, table, 2500, 2500)
    assert [r[1:3] for r in table.rows.values()] == [(3, 14.0)]

"""State that an earlier version of the general kernels saved is gone on with as if nothing had
been.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace

import polars as pl
import pytest

from penstock.sql.plan import StreamPlan
from penstock.windows.force import ForceKernel
from penstock.windows.general.kernel import GeneralKernel
from penstock.windows.kernel import Control, Delta, History, Kernel
from tests.conformance.case import Case
from tests.conformance.kernel_backend import KernelBackend
from tests.conformance.memory import MemoryHistory
from tests.fuzz import draw
from tests.nightly import drawn
from tests.unit.windows.test_controls import T0, frame, planned, shown


def _aged(delta: Delta) -> Delta:
    """As earlier versions saved it: no row said where it ends to count, and nobody noted what
    storage has otherwise.
    """
    frames = {
        name: rows.drop("_ceiling", strict=False)
        for name, rows in delta.frames.items()
        if name != "unstored"
    }
    return replace(delta, frames=frames)


class _Heir(GeneralKernel):
    """One that only ever opens old state."""

    def restore(self, deltas: Iterable[Delta]) -> None:
        super().restore([_aged(delta) for delta in deltas])


def _make(kind: type[GeneralKernel]) -> object:
    def make(plan: StreamPlan, history: History | None, room: int) -> Kernel:
        return kind(plan, history, room)

    return make


@pytest.mark.parametrize("number", range(drawn(60)))
def test_old_state_of_the_general_kernel_is_gone_on_with(number: int) -> None:
    chance = random.Random(f"old {number}")
    plan = draw.plan(chance)
    while plan.window[0] in ("rows", "count") or plan.window[1:2] != plan.window[2:3]:
        plan = draw.plan(chance)
    # what earlier versions did not note they did not know either: rewrites that fail WHERE, and
    # partial ones
    plan = replace(plan, where=False)
    happened = draw.events(chance, plan)
    for event in happened:
        for _, row in event[1] if event[0] == "BATCH" else ():
            row |= {name: 0 for name in ("a", "b", "c", "d") if name not in row}
    raw = {
        "id": f"old {number}",
        "tables": list(draw.TABLES),
        "stream": draw.statement(plan, False),
        "events": happened,
    }
    straight = KernelBackend(make=_make(GeneralKernel)).run(Case.read(raw))  # type: ignore[arg-type]
    assert straight.crash is None and straight.error is None, (straight.crash, straight.error)
    for room in (None, 1):
        opened = KernelBackend(number, room=room, make=_make(_Heir)).run(Case.read(raw))  # type: ignore[arg-type]
        assert opened.crash is None, opened.crash
        assert opened.rows == straight.rows


@pytest.mark.parametrize("update", [0, 1])
def test_a_row_whose_update_was_dropped_counts_as_it_did(update: int) -> None:
    plan = planned(
        f"CREATE STREAM s TRIGGER AT_ONCE IGNORE UPDATE {update} INTO o AS SELECT _wstart ws, sum(a) n FROM met"
        " PARTITION BY tbname SESSION(ts, 10a)"
    )
    history = MemoryHistory("ts")
    kernel = GeneralKernel(plan, history)
    # the session at 0 is over when its first row is written again; then its second one is gone
    rows = frame(("d1", 0, 5), ("d1", 5, 2), ("d1", 1_000, 1), ("d1", 0, 7))
    late = kernel.apply(rows).late
    assert late is not None and late.height == 1
    history.add(rows)
    heir = GeneralKernel(plan, history, room=0)
    heir.restore([_aged(kernel.delta(True))])
    for n in range(3):
        more = frame(("d1", 2_000 + n * 1_000, 1)).with_columns(_offset=pl.lit(10 + n, pl.Int64))
        heir.apply(more)
        history.add(more)
    assert heir.store.count < 6, "nothing was let go"
    assert shown(heir.control(Control("delete", low=T0 + 5, high=T0 + 5))) == [(0, 0, 5)]


def test_room_is_kept_when_state_is_opened_over_another() -> None:
    plan = planned(
        "CREATE STREAM s INTO o AS SELECT _wstart ws, count(*) n FROM met PARTITION BY tbname SESSION(ts, 10a)"
    )
    kernel = GeneralKernel(plan, MemoryHistory("ts"), room=3)
    kernel.apply(frame(("d1", 0, 5)))
    kernel.restore([kernel.delta(True)])
    assert kernel.evictor.bound.room == 3


def test_old_state_of_windows_that_the_clock_closes_is_gone_on_with() -> None:
    plan = planned(
        "CREATE STREAM s TRIGGER FORCE_WINDOW_CLOSE INTO o AS SELECT _wstart ws, count(*) n FROM met PARTITION BY tbname"
        " INTERVAL(5s) FILL(PREV)"
    )
    kernel = ForceKernel(plan, None)
    kernel.control(Control("tick", time=T0))
    kernel.apply(frame(("d1", 1_000, 1), ("d1", 6_000, 1), ("d1", 7_000, 1)))
    assert shown(kernel.control(Control("tick", time=T0 + 5_000))) == [(0, 0, 1)]
    heir = ForceKernel(plan, None)
    heir.restore([_aged(kernel.delta(True))])
    assert shown(heir.control(Control("tick", time=T0 + 15_000))) == [(0, 5_000, 2), (0, 10_000, 2)]

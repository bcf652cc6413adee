"""Windows whose state was dropped, and that a late row brings back as they were stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.accumulate.slots import Slots
from penstock.windows.assign.calls import Call
from penstock.windows.interval.forgotten_windows import ForgottenWindows, with_call
from penstock.windows.rows.counted import Counted
from penstock.windows.rows.scope import Scope
from tests.unit.windows.assembly import clocks_of, grid_of, groups_of, reader_of
from tests.unit.windows.plans import BY_TAG, MemoryHistory, frame, window_plan


class _Forgetful:
    """A kernel's parts for windows of ten seconds, by tag, with nothing in memory."""

    def __init__(self, *, mark: int = 0, solo: bool = False) -> None:
        plan = window_plan((("count", None), ("sum", "v")), keys=BY_TAG)
        scope = Scope(plan)
        self.history = MemoryHistory()
        self.counted = Counted(plan, self.history)
        self.groups = groups_of(plan)
        self.grid = grid_of(plan)
        self.aggregates = Aggregates(scope)
        self.slots = Slots(self.aggregates)
        self.clock, _ = clocks_of(0, 4)
        self.slots.reserve_groups(4)
        self.reader = reader_of(plan, self.aggregates, self.groups, self.counted)
        self.forgotten = ForgottenWindows(
            self.reader,
            self.grid,
            self.aggregates,
            self.slots,
            self.clock,
            self.counted,
            time="ts",
            mark=mark,
            solo=solo,
        )

    def reached(self, group: int, time: int) -> None:
        self.clock.advance(np.array([group]), np.array([time]), None)

    def lost(self, *windows: tuple[int, int]) -> list[bool]:
        """Which of the windows (group, number) were dropped."""
        owners, indexes = (np.array(column) for column in zip(*windows, strict=True))
        return self.forgotten.find(owners, indexes, self.grid.stops(indexes)).tolist()


def test_without_a_mark_and_before_history_nothing_is_forgotten():
    made = _Forgetful()
    made.reached(0, 95_000)
    assert made.lost((0, 0), (0, 9)) == []


def test_behind_the_mark_all_that_is_not_there_was_forgotten():
    made = _Forgetful(mark=30_000)
    made.reached(0, 95_000)
    made.slots.locate(np.array([0]), np.array([1]), np.array([19_999]))
    assert made.lost((0, 0), (0, 1), (0, 5), (0, 6), (1, 0)) == [True, False, True, False, False]


def test_what_history_has_closed_was_forgotten():
    made = _Forgetful()
    made.reached(0, 25_000)
    made.clock.release(np.array([0]))
    assert made.lost((0, 1), (0, 2), (1, 1)) == [True, False, False]


def test_groups_that_are_one_table_forget_nothing_that_is_missed():
    made = _Forgetful(mark=1, solo=True)
    made.reached(0, 95_000)
    assert made.lost((0, 0)) == []


def _value(made: _Forgetful, group: int, number: int) -> tuple[Any, ...]:
    slot = made.slots.find(np.array([group]), np.array([number]))
    assert slot[0] >= 0
    partials = made.slots.partials(slot)
    return made.aggregates.finalise(partials, []).row(0)


def test_a_window_comes_back_as_it_was_before_the_write_that_reaches_it():
    made = _Forgetful()
    stored = frame([[("d1", 1_000, 1.0), ("d2", 2_000, 2.0), ("d22", 3_000, 9.0)]])
    made.history.add(stored)
    made.counted.begin(stored)
    rows = frame([[("d1", 45_000, 4.0)], [("d1", 4_000, 8.0)], [("d2", 5_000, 16.0)]], first=1)
    call, failed = made.reader.call(rows)
    assert isinstance(call, Call) and not failed
    owners = call.keys[call.owner]
    lost = call.index == 0
    made.forgotten.bring_back(call, owners, lost, rows)
    # both tables of the group, neither the other group's row nor those of the call
    assert _value(made, int(owners[0]), 0) == (2, 3.0)
    assert len(made.slots) == 1


def test_a_write_before_the_one_that_counts_is_in_the_window_already():
    made = _Forgetful()
    stored = frame([[("d1", 1_000, 1.0)]])
    made.history.add(stored)
    made.counted.begin(stored)
    rows = frame([[("d1", 4_000, 8.0)], [("d2", 5_000, 16.0)]], first=1)
    call, _ = made.reader.call(rows)
    assert call is not None
    later = Call(call.rows[1:], "ts", call.tables[1:], call.key_of[1:], made.grid)
    made.forgotten.bring_back(later, later.keys[later.owner], later.index == 0, rows)
    assert _value(made, 0, 0) == (2, 9.0)


def test_the_call_stands_behind_what_is_stored_in_its_own_layout():
    stored = frame([[("d1", 1_000, 1.0)]]).with_columns(pl.col("_step").cast(pl.Int64))
    call = frame([[("d1", 2_000, 2.0)]], first=1)
    both = with_call(stored.select(reversed(stored.columns)), call.with_columns(_late=pl.lit(True)))
    assert both.schema == call.schema
    assert both.get_column("ts").to_list() == [1_000, 2_000]

"""Which pairs of row and window are dropped: the window was over, and the row late for its table."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from penstock.windows.assign.calls import Call
from penstock.windows.clocks.late_pairs import LatePairs
from penstock.windows.kernel import EARLIEST
from penstock.windows.rows.counted import Counted
from tests.unit.windows.assembly import Line, aggregates_of, call_of, clocks_of
from tests.unit.windows.plans import MemoryHistory, window_plan


class _Judge:
    """Groups 0 and 1, which have come to some times before the call."""

    def __init__(self, before: tuple[int, int], *, whole: bool = True, **grid: Any) -> None:
        self.before = np.array(before, np.int64)
        self.aggregates = aggregates_of(("count", None), **{"size": "10a", **grid})
        self.clock, self.tables = clocks_of(0, 2)
        self.counted = Counted(window_plan(), MemoryHistory())
        self.pairs = LatePairs(self.clock, self.tables, self.counted, whole=whole)
        seen = np.flatnonzero(self.before > EARLIEST)
        self.clock.advance(seen, self.before[seen], None)

    def call(self, lines: list[Line], steps: list[int] | None = None, **more: Any) -> Call:
        made = call_of(self.aggregates, lines, tables=more.get("tables"))
        if steps is not None:
            made.rows = made.rows.with_columns(pl.Series("_step", steps, pl.UInt32))
        if "late" in more:
            made.rows = made.rows.with_columns(_late=pl.Series(more["late"]))
        return made

    def find(self, call: Call) -> list[bool] | None:
        """What is dropped of each (row, window), in order."""
        self.clock.advance(call.keys, call.highest, None)
        over = call.stops < self.clock.t(call.keys[call.owner])
        found = self.pairs.find(call, call.keys, self.before[call.keys], over)
        return None if found is None else found.tolist()


def test_rows_in_order_are_never_dropped():
    judge = _Judge((EARLIEST, EARLIEST))
    assert judge.find(judge.call([(0, 5, 1.0), (0, 15, 1.0), (1, 3, 1.0), (0, 99, 1.0)])) is None


def test_a_row_whose_window_was_over_is_dropped():
    judge = _Judge((25, 5))
    # 21 lies in the window that is open, 15 in one that is over; group 1 has come to 5 only
    call = judge.call([(0, 21, 1.0), (0, 15, 1.0), (1, 5, 1.0)])
    assert judge.find(call) == [False, True, False]


def test_an_earlier_write_of_the_call_closes_a_window_and_its_own_does_not():
    lines: list[Line] = [(0, 25, 1.0), (0, 15, 1.0)]
    judge = _Judge((EARLIEST, EARLIEST))
    assert judge.find(judge.call(lines, steps=[0, 1])) == [False, True]
    judge = _Judge((EARLIEST, EARLIEST))
    assert judge.find(judge.call(lines, steps=[0, 0])) is None


def test_a_row_is_dropped_from_those_of_its_windows_only_that_were_over():
    judge = _Judge((25, EARLIEST), size="20a", sliding="10a")
    call = judge.call([(0, 15, 1.0)])  # 0..20 is over, 10..30 is not
    assert judge.find(call) == [True, False]
    dropped = np.array([True, False])
    assert LatePairs.rows_lost(call, dropped, ["ts"]) is None  # it counts in one of them


def test_a_row_dropped_from_all_its_windows_is_lost():
    judge = _Judge((45, EARLIEST), size="20a", sliding="10a")
    call = judge.call([(0, 15, 1.0), (0, 42, 2.0)])
    found = judge.find(call)
    assert found is not None
    lost = LatePairs.rows_lost(call, np.array(found), ["ts", "v"])
    assert lost is not None
    assert lost.rows() == [(15, 1.0)]


def test_a_table_behind_others_of_its_group_is_judged_by_itself():
    def judged(own: int) -> list[bool] | None:
        judge = _Judge((25, EARLIEST), whole=False)
        number = 3
        judge.tables.advance(np.array([number]), np.array([own]))
        return judge.find(judge.call([(0, 15, 1.0)], tables=[number]))

    assert judged(own=12) is None  # in order for its own table
    assert judged(own=16) == [True]


def test_the_scan_has_seen_who_is_late_for_their_tables():
    judge = _Judge((25, EARLIEST), whole=False)
    call = judge.call([(0, 15, 1.0), (0, 14, 1.0)], late=[False, True])
    assert judge.find(call) == [False, True]


def test_what_was_dropped_is_remembered_up_to_the_window_that_it_missed():
    judge = _Judge((25, EARLIEST), size="20a", sliding="10a")
    call = judge.call([(0, 15, 1.0), (0, 24, 1.0)])
    found = judge.find(call)
    assert found is not None
    judge.pairs.remember(call, np.array(found))
    # of 15 the window 0..20 is lost: what ends from 20 on has it
    assert judge.counted.floors(call.rows).to_list() == [20, EARLIEST]

"""Which windows of accumulators a call publishes, and what stays of them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from penstock.rows.versions import UPSERT
from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.accumulate.slots import Slots
from penstock.windows.assign.boundaries import Grid
from penstock.windows.assign.calls import Call
from penstock.windows.clocks.clock import GroupClock
from penstock.windows.emit.output import EmissionBuffer
from penstock.windows.emit.window_rows import WindowRows
from penstock.windows.groups.groups import Groups
from penstock.windows.groups.table_names import TableNames
from penstock.windows.interval.slot_publisher import SlotPublisher
from penstock.windows.rows.scope import Scope
from tests.unit.windows.plans import aggregate, frame, window_plan

TABLES = ["d0", "d1"]
EVERYONE = np.arange(len(TABLES))


class Windows:
    """A publisher of count and sum over 10 s of two groups, with all that it works on."""

    def __init__(self, trigger="window_close", solo=True, shows_open=False):
        plan = window_plan(
            aggregates=(aggregate(0, "count", None), aggregate(1, "sum")), trigger=trigger
        )
        scope = Scope(plan)
        groups = Groups(scope, TableNames())
        groups.numbers(
            frame([[(name, 1, 1.0) for name in TABLES]]).with_columns(groups.expressions)
        )
        self.aggregates = aggregates = Aggregates(scope)
        self.grid = Grid(plan.window, "ms", "UTC")
        self.clock = GroupClock(0)
        self.slots = Slots(aggregates)
        self.clock.reserve(len(TABLES))
        self.slots.reserve_groups(len(TABLES))
        self.publisher = SlotPublisher(
            self.slots,
            self.grid,
            self.clock,
            WindowRows(scope, groups, aggregates),
            at_once=trigger == "at_once",
            solo=solo,
            shows_open=shows_open,
        )

    def count(self, *rows):
        """Count (group, second, value), each in a write of its own, and return what is published:
        (group, second the window starts, count, sum).
        """
        call, slots = self._counted(rows)
        closing = call.keys[self.slots.oldest.take(call.keys) < self.clock.t(call.keys)]
        return self.done(lambda out: self.publisher.publish(call, slots, closing, out))

    def fill(self, *rows):
        call, slots = self._counted(rows)
        return self.done(lambda out: self.publisher.publish_history(call, slots, call.keys, out))

    def _counted(self, rows):
        groups, seconds, values = (np.array(column) for column in zip(*rows, strict=True))
        prepared = pl.DataFrame(
            {
                "_step": np.arange(len(rows), dtype=np.uint32),
                "ts": seconds * 1000,
                "_x0": values.astype(float),
            }
        )
        call = Call(prepared, "ts", groups, groups, self.grid)
        self.clock.advance(call.keys, call.highest, None)
        slots = self.slots.locate(call.keys[call.owner], call.index, call.stops)
        self.slots.add(slots, call)
        return call, slots

    def done(self, publish):
        out = EmissionBuffer()
        publish(out)
        return [
            (TABLES.index(row["tname"]), row["_wstart"] // 1000, row["c_a0"], row["c_a1"])
            if row["_op"] == UPSERT
            else (TABLES.index(row["tname"]), row["_wstart"] // 1000, "gone")
            for made in out.made
            for row in made.rows.iter_rows(named=True)
        ]

    def open(self):
        return self.publisher.open_rows().select("tname", "_wstart", "c_a0").rows()


def test_at_once_publishes_what_is_touched_in_order_of_the_last_rows():
    windows = Windows("at_once")
    assert windows.count((1, 1, 1), (0, 12, 1), (1, 2, 2)) == [(0, 10, 1, 1.0), (1, 0, 2, 3.0)]
    assert windows.count((0, 13, 5)) == [(0, 10, 2, 6.0)]
    assert windows.count((0, 25, 1)) == [(0, 20, 1, 1.0)], "closing adds nothing"
    assert windows.open() == [("d0", 20_000, 1), ("d1", 0, 2)]


def test_window_close_publishes_what_is_over():
    windows = Windows()
    assert windows.count((0, 1, 1), (0, 2, 2), (1, 3, 3)) == []
    assert windows.count((0, 9, 4)) == []
    assert windows.count((0, 10, 1)) == [(0, 0, 3, 7.0)], "T has passed its last tick"
    assert windows.open() == [("d0", 10_000, 1), ("d1", 0, 1)]


def test_a_window_that_is_over_stays_for_slower_tables_only():
    alone = Windows(solo=True)
    several = Windows(solo=False)
    for windows in (alone, several):
        assert windows.count((0, 1, 1), (0, 11, 1)) == [(0, 0, 1, 1.0)]
    assert len(alone.slots.live()) == 1
    assert len(several.slots.live()) == 2
    assert several.count((0, 3, 4)) == [(0, 0, 2, 5.0)], "and is published again"


def test_closing_raises_t_above_all_open_windows():
    windows = Windows()
    windows.count((0, 1, 1), (1, 5, 2))
    assert windows.done(lambda out: windows.publisher.close(EVERYONE[1:], out)) == [(1, 0, 1, 2.0)]
    assert windows.clock.t(EVERYONE).tolist() == [1_000, 10_000]
    assert windows.done(lambda out: windows.publisher.close(EVERYONE, out)) == [(0, 0, 1, 1.0)]
    assert windows.done(lambda out: windows.publisher.close(EVERYONE, out)) == []


def test_history_publishes_all_it_touches_and_lets_go_of_what_is_over():
    windows = Windows(solo=False)
    assert windows.fill((0, 1, 1), (0, 11, 2)) == [(0, 0, 1, 1.0), (0, 10, 1, 2.0)]
    assert len(windows.slots.live()) == 1
    assert windows.clock.releases
    assert windows.clock.released[:1].tolist() == [11_000]


def emptied(windows, empty):
    """Say that windows (group, number in the grid) have no rows any more."""
    schema = {"_g": pl.Int64, "_i": pl.Int64}
    nothing = windows.slots.partials(np.empty(0, np.int64))
    partials = pl.DataFrame(schema=schema).hstack(nothing)
    gone = pl.DataFrame(empty, schema=schema, orient="row")
    return windows.done(lambda out: windows.publisher.replace(partials, gone, out))


def replaced(windows, group, index, *values):
    """Put a window (group, number in the grid) that holds *values* in the place of what is
    known.
    """
    windows_of = {"_g": [group] * len(values), "_i": [index] * len(values)}
    rows = pl.DataFrame(windows_of | {"_x0": values})
    partials = windows.aggregates.partial(rows, ["_g", "_i"])
    none = pl.DataFrame(schema={"_g": pl.Int64, "_i": pl.Int64})
    return windows.done(lambda out: windows.publisher.replace(partials, none, out))


@pytest.mark.parametrize(
    ("trigger", "shows_open", "expected"),
    [
        ("at_once", False, [(0, 0, "gone"), (0, 10, "gone")]),
        ("window_close", False, [(0, 0, "gone")]),
        ("window_close", True, [(0, 0, "gone"), (0, 10, "gone")]),
    ],
)
def test_the_row_of_an_empty_window_is_taken_back_if_it_may_have_been_shown(
    trigger, shows_open, expected
):
    windows = Windows(trigger, solo=False, shows_open=shows_open)
    windows.count((0, 1, 1), (0, 11, 1))
    assert emptied(windows, [(0, 0), (0, 1)]) == expected
    assert len(windows.slots.live()) == 0


@pytest.mark.parametrize("solo", [True, False])
def test_a_window_computed_again_is_published_by_the_trigger(solo):
    windows = Windows(solo=solo)
    windows.count((0, 1, 1), (0, 11, 1))
    assert replaced(windows, 0, 1, 2.0, 3.0) == [], "it is open"
    assert replaced(windows, 0, 0, 7.0) == [(0, 0, 1, 7.0)]
    assert windows.open() == [("d0", 10_000, 2)]
    assert windows.count((0, 21, 1)) == [(0, 10, 2, 5.0)]

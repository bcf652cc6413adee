"""The row that `first`, `last`, `last_row`, `min` or `max` chose, per slot."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from penstock.windows.accumulate.accumulators import accumulators
from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.accumulate.pick_accumulator import Pick
from penstock.windows.rows.scope import Scope
from tests.unit.windows.assembly import Line, call_of
from tests.unit.windows.plans import aggregate, window_plan


def _aggregates(function: str) -> Aggregates:
    """`function(i)` and, beside it, `s` of the row that it chose."""
    items = (aggregate(0, function, "i"), aggregate(1, "companion", "s", of="_a0"))
    return Aggregates(Scope(window_plan(aggregates=items, size="1h")))


def _picked(aggregates: Aggregates, slots: int = 2) -> Pick:
    [made] = [a for a in accumulators(aggregates) if isinstance(a, Pick)]
    made.grow(slots)
    return made


def _after(function: str, *calls: list[Line]) -> tuple[object, ...]:
    """Value, time and companion in slot 0 after some calls."""
    aggregates = _aggregates(function)
    picked = _picked(aggregates)
    for lines in calls:
        call = call_of(aggregates, lines)
        picked.add(call.keys[call.owner], call)
    return tuple(column.item() for column in picked.read(np.array([0])))


_LINES: list[Line] = [(0, 30, 5.2), (0, 10, None), (0, 20, 2.0), (0, 40, 5.3), (0, 50, None)]


@pytest.mark.parametrize(
    ("function", "chosen"),
    [
        ("first", (2, 20, "s2.0")),
        ("last", (5, 40, "s5.3")),
        ("last_row", (None, 50, None)),
        ("min", (2, 20, "s2.0")),
        ("max", (5, 30, "s5.2")),  # of equal values the earliest
    ],
)
def test_the_row_does_not_depend_on_how_calls_were_cut(function, chosen):
    assert _after(function, _LINES) == chosen
    assert _after(function, *([line] for line in _LINES)) == chosen
    assert _after(function, _LINES[:2], _LINES[2:]) == chosen


def test_of_equal_times_first_takes_the_earlier_and_last_the_later_arrival():
    tie: list[Line] = [(0, 10, 1.0), (0, 10, 2.0)]
    for calls in ([tie], [tie[:1], tie[1:]]):
        assert _after("first", *calls) == (1, 10, "s1.0")
        assert _after("last", *calls) == (2, 10, "s2.0")


def test_a_slot_that_had_no_row_reads_as_null():
    picked = _picked(_aggregates("max"))
    assert [c.to_list() for c in picked.read(np.array([0, 1]))] == [[None, None]] * 3


def test_a_group_without_values_chooses_nothing_beside_one_that_has_some():
    aggregates = _aggregates("max")
    picked = _picked(aggregates)
    call = call_of(aggregates, [(0, 10, None), (1, 20, 3.0)])
    picked.add(call.keys[call.owner], call)
    assert [c.to_list() for c in picked.read(np.array([0, 1]))] == [
        [None, 3],
        [None, 20],
        [None, "s3.0"],
    ]


def test_a_saved_choice_is_defended_and_a_reset_one_forgotten():
    aggregates = _aggregates("min")
    before = _picked(aggregates)
    call = call_of(aggregates, [(0, 10, 3.0)])
    before.add(call.keys[call.owner], call)
    after = _picked(aggregates)
    after.put(np.array([0]), pl.DataFrame(before.read(np.array([0]))))
    worse = call_of(aggregates, [(0, 5, 4.0)])
    after.add(worse.keys[worse.owner], worse)
    assert [c.item() for c in after.read(np.array([0]))] == [3, 10, "s3.0"]
    after.reset(np.array([0]))
    after.add(worse.keys[worse.owner], worse)
    assert [c.item() for c in after.read(np.array([0]))] == [4, 5, "s4.0"]


def test_choices_outlive_the_lines_that_were_replaced():
    aggregates = _aggregates("last")
    picked = _picked(aggregates)
    for time in range(60):
        call = call_of(aggregates, [(0, time, float(time)), (1, time, float(-time))])
        picked.add(call.keys[call.owner], call)
    picked.compact(np.array([0, 1]))
    assert [c.to_list() for c in picked.read(np.array([0, 1]))] == [
        [59, -59],
        [59, 59],
        ["s59.0", "s-59.0"],
    ]

"""What came before a write, against a loop over the rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.windows.steps import NEVER, GroupClock, TableClock, previous_max
from penstock.windows.table_names import TableNames
from tests.nightly import drawn
from tests.unit.windows.plans import frame

rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 1)), max_size=40)


@settings(max_examples=drawn(200), deadline=None)
@given(rows, st.lists(st.integers(0, 9), min_size=4, max_size=4))
def test_previous_max_looks_at_earlier_writes_only(lines, known):
    keys = np.array([k for k, _, _ in lines], np.int64)
    values = np.array([v for _, v, _ in lines], np.int64)
    steps = np.cumsum(np.array([s for _, _, s in lines], np.int64))
    expected = []
    for n, (key, _, _) in enumerate(lines):
        earlier = [
            v for (k, v, _), step in zip(lines, steps, strict=True) if k == key and step < steps[n]
        ]
        expected.append(max([known[key], *earlier]))
    assert previous_max(keys, values, steps, np.array(known, np.int64)[keys]).tolist() == expected


def test_a_row_is_late_below_what_its_table_had_before_the_write():
    names = TableNames()
    clock = TableClock(names)
    data = frame([[("x1", 5, None), ("x1", 3, None)], [("x1", 4, None), ("x2", 1, None)]])
    tables = names.numbers(data)
    times = data["ts"].to_numpy()
    steps = data["_step"].to_numpy()
    assert clock.late(tables, times, steps).tolist() == [False, False, True, False]
    clock.advance(tables, times)
    copy = TableClock(names)
    copy.restore(clock.delta())
    again = frame([[("x1", 4, None), ("x2", 1, None), ("x1", 5, None)]])
    assert copy.late(
        names.numbers(again), again["ts"].to_numpy(), np.zeros(3, np.int64)
    ).tolist() == [True, False, False]
    assert clock.delta().height == 0


def test_t_is_the_highest_time_less_the_watermark_or_the_floor():
    clock = GroupClock(10)
    clock.reserve(2)
    everyone = np.arange(2)
    assert (clock.t(everyone) < -(10**15)).all() and clock.latest() == NEVER
    clock.advance(np.array([0, 0]), np.array([50, 40]), np.array([7, 8]))
    clock.raise_floor(np.array([1]), np.array([100]))
    assert clock.t(everyone).tolist() == [40, 100]
    assert clock.silent(7).tolist() == [] and clock.silent(8).tolist() == [0]
    copy = GroupClock(10)
    copy.reserve(2)
    copy.restore(clock.delta(False))
    assert copy.t(everyone).tolist() == [40, 100]

"""What time it is, against a loop over the rows where there is much of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sql.plan import Duration
from penstock.windows.clocks.clock import GroupClock, StreamClock, TableClock
from penstock.windows.clocks.ticks import NEVER, Highest, grown, previous_max
from penstock.windows.groups.table_names import TableNames
from tests.nightly import drawn
from tests.unit.windows.plans import frame, window_plan

rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 1)), max_size=40)


def ints(*values):
    return np.array(values, np.int64)


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


def test_an_array_grows_to_twice_its_length_at_least():
    array = np.arange(100)
    assert grown(array, 100, -1) is array
    bigger = grown(array, 101, -1)
    assert len(bigger) == 200
    assert bigger[:100].tolist() == array.tolist()
    assert set(bigger[100:].tolist()) == {-1}


# ---------------------------------------------------------------- the highest value


@given(rows, st.lists(st.booleans(), min_size=40, max_size=40))
def test_the_highest_value_before_a_write_is_raised_only_by_rows_that_count(lines, chosen):
    highest = Highest()
    highest.raise_to(ints(1), ints(5))
    numbers = ints(*(k for k, _, _ in lines))
    values = ints(*(v for _, v, _ in lines))
    steps = np.cumsum(ints(*(s for _, _, s in lines)))
    counts = np.array(chosen[: len(lines)], np.bool_)
    expected = []
    for n, (key, _, _) in enumerate(lines):
        earlier = [
            int(values[i])
            for i in range(len(lines))
            if counts[i] and numbers[i] == key and steps[i] < steps[n]
        ]
        expected.append(max([5 if key == 1 else NEVER, *earlier]))
    assert highest.before(numbers, steps, values, counts).tolist() == expected
    assert highest.values.tolist() == [NEVER, 5] + [NEVER] * 62


def test_only_what_moved_is_saved_and_numbers_grow():
    highest = Highest()
    highest.reserve(100)
    highest.raise_to(ints(99, 99, 3), ints(7, 5, -2))
    assert highest.delta(full=False).rows() == [(3, -2), (99, 7)]
    assert highest.delta(full=False).height == 0
    highest.put(ints(99), ints(1))
    highest.put(ints(), ints())
    assert highest.delta(full=False).rows() == [(99, 1)]
    copy = Highest()
    copy.restore(highest.delta(full=True))
    assert copy.delta(full=False).height == 0
    assert copy.delta(full=True).rows() == [(3, -2), (99, 1)]
    assert copy.delta(full=True).schema == {"n": pl.Int64, "value": pl.Int64}


# ---------------------------------------------------------------- tables


def test_a_row_is_late_below_what_its_table_had_before_the_write():
    names = TableNames()
    clock = TableClock(names)
    data = frame([[("x1", 5, None), ("x1", 3, None)], [("x1", 4, None), ("x2", 1, None)]])
    tables = names.numbers(data)
    times = data["ts"].to_numpy()
    steps = data["_step"].to_numpy()
    assert clock.late(tables, times, steps).tolist() == [False, False, True, False]
    assert clock.late(tables, times, steps, tables == tables[3]).tolist() == [False] * 4
    clock.advance(tables, times)
    other = TableNames()
    other.numbers(frame([[("first", 1, None)]]))  # the same tables have other numbers there
    copy = TableClock(other)
    saved = clock.delta()
    assert saved.rows() == [("x1", 5), ("x2", 1)]
    copy.restore(saved)
    again = frame([[("x1", 4, None), ("x2", 1, None), ("x1", 5, None)]])
    assert copy.late(
        other.numbers(again), again["ts"].to_numpy(), np.zeros(3, np.int64)
    ).tolist() == [True, False, False]
    assert clock.delta().height == 0
    assert copy.delta().height == 0, "what was restored is saved already"
    assert copy.delta(full=True).rows() == [("x1", 5), ("x2", 1)]


def test_a_row_may_be_a_repeat_at_or_below_what_its_table_had():
    names = TableNames()
    clock = TableClock(names)
    data = frame([[("x", 5, None), ("x", 5, None), ("x", 6, None), ("y", 5, None)]])
    tables = names.numbers(data)
    times = data["ts"].to_numpy()
    assert clock.behind(tables, times).tolist() == [False, True, False, False]
    clock.advance(tables, times)
    assert clock.behind(tables, times).tolist() == [True] * 4


# ---------------------------------------------------------------- groups


def test_t_is_the_highest_time_less_the_watermark_or_the_floor():
    clock = GroupClock(10)
    clock.reserve(2)
    everyone = np.arange(2)
    assert (clock.t(everyone) < -(10**15)).all() and clock.latest() == NEVER
    clock.advance(ints(0, 0), ints(50, 40), ints(7, 8))
    assert clock.all_t()[:2].tolist() == [40, NEVER - 10]
    clock.raise_floor(ints(1), ints(100))
    assert clock.t(everyone).tolist() == [40, 100] == clock.all_t()[:2].tolist()
    clock.raise_floor(ints(1), ints(90))
    assert clock.t(everyone).tolist() == [40, 100], "T never goes back"
    assert clock.t_of(ints(60, 200), everyone).tolist() == [50, 190]
    assert clock.reached(everyone).tolist()[0] == 40 and clock.reaches(60) == 50
    clock.advance_one(1, 120)
    clock.advance_one(1, 80)
    assert clock.t(everyone).tolist() == [40, 110] and clock.latest() == 120
    assert clock.silent(7).tolist() == [] and clock.silent(8).tolist() == [0]


def test_t_before_a_write_is_not_raised_by_it():
    clock = GroupClock(10)
    clock.reserve(2)
    clock.advance(ints(0), ints(50), None)
    clock.raise_floor(ints(1), ints(5))
    groups = ints(0, 0, 1, 0)
    times = ints(100, 60, 20, 70)
    steps = ints(0, 0, 0, 1)
    everything = np.ones(4, np.bool_)
    assert clock.t_before(groups, steps, times, everything).tolist() == [40, 40, 5, 90]
    assert clock.t_before(groups, steps, times, times < 100).tolist() == [40, 40, 5, 50]


def test_groups_grow_without_losing_their_time():
    clock = GroupClock(0)
    clock.reserve(1)
    clock.advance(ints(0), ints(3), ints(4))
    clock.raise_floor(ints(0), ints(9))
    clock.reserve(1000)
    assert clock.t(ints(0, 999)).tolist() == [9, NEVER]
    assert clock.all_t()[[0, 999]].tolist() == [9, NEVER]
    assert clock.silent(4).tolist() == [0]


def test_a_group_is_silent_after_the_idle_time_out():
    clock = GroupClock(0, idle=5)
    clock.reserve(3)
    clock.advance(ints(0, 1), ints(1, 1), ints(10, 12))
    assert clock.silent(14).tolist() == []
    assert clock.silent(15).tolist() == [0]
    assert clock.silent(17).tolist() == [0, 1]


def test_a_clock_counts_in_ticks_of_the_source():
    plan = window_plan(watermark="3s", idle_timeout=Duration(7, "s"))
    fine = replace(plan, source=replace(plan.source, precision="ns"))
    found = [GroupClock.of(p) for p in (plan, fine)]
    assert [clock.reaches(0) for clock in found] == [-3_000, -3 * 10**9]
    assert [clock.idle for clock in found] == [7_000, 7 * 10**9]
    assert GroupClock.of(window_plan()).idle == 0


def test_what_history_closed_is_released():
    clock = GroupClock(10)
    clock.reserve(2)
    clock.release(ints())
    assert not clock.releases
    clock.advance(ints(0, 1), ints(50, 60), None)
    clock.release(ints(1))
    assert clock.releases
    assert clock.released[:2].tolist() == [NEVER, 50]


def restored(clock):
    """A clock from what *clock* saves as lines, and one from its frames."""
    by_lines = GroupClock(10)
    by_frames = GroupClock(10)
    for copy in (by_lines, by_frames):
        copy.reserve(3)
    by_lines.restore(clock.delta(full=True))
    by_frames.restore_frames(clock.frames(full=True))
    return by_lines, by_frames


def test_a_clock_is_saved_as_lines_or_as_frames():
    clock = GroupClock(10)
    clock.reserve(3)
    clock.advance(ints(0, 2), ints(50, 40), ints(7, 8))
    clock.raise_floor(ints(2), ints(100))
    for copy in restored(clock):
        assert copy.raised
        assert copy.t(np.arange(3)).tolist() == clock.t(np.arange(3)).tolist()
        assert copy.silent(7).tolist() == [0]
        assert copy.delta(full=False).height == 0
    assert clock.delta(full=False).height == 0
    clock.advance(ints(2), ints(41), None)
    moved = clock.delta(full=False)
    assert moved.columns == ["_g", "highest", "floor", "heard", "released"]
    assert moved.rows() == [(2, 41, 100, 8, NEVER)]
    clock.advance(ints(2), ints(42), None)
    frames = clock.frames(full=False)
    assert {name: frame.rows() for name, frame in frames.items()} == {
        "t.groups": [(2, 42)],
        "t.floors": [],
        "t.heard": [],
    }


def test_a_state_from_before_windows_were_released_is_opened():
    clock = GroupClock(10)
    clock.reserve(3)
    clock.restore(pl.DataFrame({"_g": [1], "highest": [5], "floor": [NEVER], "heard": [NEVER]}))
    assert clock.t(ints(1)).tolist() == [-5]
    assert not clock.raised and not clock.releases


# ---------------------------------------------------------------- the stream


def test_the_first_tick_only_begins():
    clock = StreamClock()
    assert clock.begin(1_000) and not clock.begin(2_000)
    assert (clock.time, clock.start, clock.now) == (1_000, 1_000, 0)


def test_processing_time_never_goes_back():
    clock = StreamClock()
    clock.begin(1_000)
    clock.hear(3_000)
    clock.advance(2_000)
    assert (clock.time, clock.now) == (2_000, 3_000)
    clock.advance(4_000)
    clock.advance(3_500)
    clock.hear(10)
    assert (clock.time, clock.now) == (4_000, 4_000)


def test_something_is_due_once_in_each_stretch_since_the_first_tick():
    clock = StreamClock()
    clock.begin(1_000)
    assert not clock.is_due(10_000, 0), "0 means never"
    due = []
    for time in (1_400, 1_500, 1_900, 1_900, 3_100, 2_000, 3_400):
        due.append(clock.is_due(time, 500))
        clock.advance(time)
    assert due == [False, True, False, False, True, False, False]


def test_a_stream_clock_is_saved_in_one_line():
    clock = StreamClock()
    clock.begin(1_000)
    clock.hear(1_700)
    saved = clock.delta()
    assert saved.rows(named=True) == [{"clock": 1_000, "start": 1_000, "now": 1_700}]
    copy = StreamClock()
    copy.restore(saved)
    assert (copy.time, copy.start, copy.now) == (1_000, 1_000, 1_700)

"""The cut of every window kind: rows in order → windows, by hand and against the slow calculator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sql.plan import Count, Event, Interval, Notify, Session, State
from penstock.windows.assign.cut import CountCutter, Cutter, make_cutter
from penstock.windows.kernel import EARLIEST, LATEST
from penstock.windows.rows.scope import Scope
from tests.nightly import drawn
from tests.unit.windows.assembly import plan_with
from tests.unit.windows.oracle import Live, Oracle, Setting
from tests.unit.windows.plans import INT, duration

SESSION = Session(duration("10a"))
STATE = State("i", INT)
EVENT = Event("i = 1", "i = 9")


def _cutter(window: Any, **given_: Any) -> Cutter:
    return make_cutter(Scope(plan_with(window, **given_)))


def _rows(cutter: Cutter, *lines: tuple[int, int | None], group: int = 0) -> pl.DataFrame:
    """Prepared rows of (time, i), in order."""
    rows = pl.DataFrame(
        {
            "_g": [group] * len(lines),
            "_seq": range(len(lines)),
            "ts": [t for t, _ in lines],
            "i": [i for _, i in lines],
            "v": [None if i is None else float(i) for _, i in lines],
        },
        schema={"_g": pl.Int64, "_seq": pl.Int64, "ts": pl.Int64, "i": pl.Int32, "v": pl.Float64},
    )
    return rows.with_columns(cutter.expressions)


def _windows(cutter: Cutter, rows: pl.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    made = cutter.describe(cutter.label(rows))
    return made.select(columns or ("_wstart", "_wend", "_n")).rows()


def _at(*times: int) -> list[tuple[int, int | None]]:
    return [(t, 1) for t in times]


# -------------------------------------------------------------------- sessions


def test_a_gap_longer_than_the_tolerance_begins_a_session():
    cutter = _cutter(SESSION)
    rows = _rows(cutter, *_at(0, 10, 20, 31))
    assert _windows(cutter, rows) == [(0, 30, 3), (31, 41, 1)]
    assert _windows(cutter, rows, "_stop", "_sseq", "_lseq", "_done", "_ends_it") == [
        (20, 0, 2, True, True),
        (31, 3, 3, True, True),
    ]


def test_a_session_never_reaches_into_the_next_partition():
    cutter = _cutter(SESSION)
    rows = pl.concat([_rows(cutter, *_at(0, 5)), _rows(cutter, *_at(6), group=1)])
    assert _windows(cutter, rows, "_g", "_wstart", "_n") == [(0, 0, 2), (1, 6, 1)]


@pytest.mark.parametrize("window", [SESSION, STATE, EVENT, Count(3, 3), Count(3, 2)])
def test_no_rows_make_no_windows(window):
    cutter = _cutter(window)
    assert _windows(cutter, _rows(cutter)) == []


# -------------------------------------------------------------------- states


def test_rows_without_a_state_are_in_no_window_and_end_none():
    cutter = _cutter(STATE)
    rows = _rows(cutter, (0, 1), (1, None), (2, 1), (3, 2), (4, 1))
    assert _windows(cutter, rows, "_wstart", "_wend", "_n", "_state") == [
        (0, 2, 2, 1),
        (3, 3, 1, 2),
        (4, 4, 1, 1),
    ]


def test_a_state_counts_once_it_lasted_long_enough():
    cutter = _cutter(replace(STATE, true_for=duration("5a")))
    rows = _rows(cutter, (0, 1), (5, 1), (6, 2), (10, 2))
    assert _windows(cutter, rows, "_wstart", "_done") == [(0, True), (6, False)]


# -------------------------------------------------------------------- events


def test_an_event_runs_from_the_first_start_row_to_the_next_end_row():
    cutter = _cutter(EVENT)
    rows = _rows(cutter, (0, 9), (1, 1), (2, 1), (3, 9), (4, 5), (5, 1))
    assert _windows(cutter, rows, "_wstart", "_stop", "_n", "_done", "_ends_it") == [
        (1, 3, 3, True, True),
        (5, 5, 1, False, False),
    ]


def test_one_row_may_begin_and_end_an_event_and_null_does_neither():
    cutter = _cutter(Event("i >= 1", "i >= 5"))
    rows = _rows(cutter, (0, 7), (1, None), (2, 8))
    assert _windows(cutter, rows, "_wstart", "_stop", "_n") == [(0, 0, 1), (2, 2, 1)]


def test_an_event_shorter_than_true_for_is_none():
    cutter = _cutter(replace(EVENT, true_for=duration("5a")))
    rows = _rows(cutter, (0, 1), (4, 9), (10, 1), (15, 9))
    assert _windows(cutter, rows, "_wstart", "_done") == [(0, False), (10, True)]


def test_an_event_remembers_the_fields_of_its_conditions_for_notifications():
    window = replace(EVENT, start_columns=("i",), end_columns=("i", "v"))
    cutter = _cutter(window, notify=Notify(("http://x",), ("WINDOW_OPEN",)))
    rows = _rows(cutter, (0, 1), (1, 2), (2, 9))
    assert list(cutter.extra) == ["_opened", "_closed_by"]
    assert _windows(cutter, rows, "_opened", "_closed_by") == [({"i": 1}, {"i": 9, "v": 9.0})]
    assert _cutter(window).extra == {}


# -------------------------------------------------------------------- counts


def test_count_windows_overlap_where_they_slide_by_less():
    cutter = _cutter(Count(3, 2))
    rows = _rows(cutter, *_at(0, 10, 20, 30))
    assert _windows(cutter, rows, "_wstart", "_stop", "_n") == [(0, 20, 3), (20, 30, 2)]


def test_count_windows_are_numbered_apart_in_each_partition():
    cutter = _cutter(Count(2, 2))
    rows = pl.concat([_rows(cutter, *_at(0, 1, 2)), _rows(cutter, *_at(0, 1), group=1)])
    assert _windows(cutter, rows, "_g", "_wstart", "_n") == [(0, 0, 2), (0, 2, 1), (1, 0, 2)]


def test_many_windows_of_one_partition_meet_none_of_another():
    cutter = _cutter(Count(2, 2))
    rows = pl.concat([_rows(cutter, *_at(0)), _rows(cutter, *_at(0, 1, 2, 3, 4), group=1)])
    assert _windows(cutter, rows, "_g", "_wstart", "_n") == [
        (0, 0, 1),
        (1, 0, 2),
        (1, 2, 2),
        (1, 4, 1),
    ]


def test_rows_behind_others_fill_the_window_that_is_there_first():
    cutter = _cutter(Count(3, 3))
    assert isinstance(cutter, CountCutter)
    rows = pl.concat([_rows(cutter, *_at(0, 1, 2)), _rows(cutter, *_at(0, 1), group=1)])
    labels = cutter.label_after(rows, np.array([2, 6])).get_column("_w").to_list()
    assert labels[0] != labels[1] == labels[2]  # one fills the first, two begin another
    assert labels[3] == labels[4] not in labels[:3]


# -------------------------------------------------------------------- the grid


def _interval_rows(cutter: Cutter, floor: int = EARLIEST, ceiling: int = LATEST) -> pl.DataFrame:
    rows = _rows(cutter, *_at(15))
    return rows.with_columns(_floor=pl.lit(floor), _ceiling=pl.lit(ceiling))


SLIDING = Interval(duration("20a"), duration("10a"))


@pytest.mark.parametrize(
    ("floor", "ceiling", "starts"),
    [(EARLIEST, LATEST, [0, 10]), (20, LATEST, [10]), (EARLIEST, 20, [0]), (30, LATEST, [])],
)
def test_a_row_counts_in_windows_between_its_floor_and_its_ceiling(floor, ceiling, starts):
    cutter = _cutter(SLIDING)
    made = _windows(cutter, _interval_rows(cutter, floor, ceiling), "_wstart")
    assert [s for (s,) in made] == starts


def test_a_window_of_the_grid_closes_with_its_last_tick():
    cutter = _cutter(SLIDING)
    made = _windows(cutter, _interval_rows(cutter), "_wstart", "_wend", "_stop", "_done")
    assert made == [(0, 20, 19, True), (10, 30, 29, True)]


def test_a_stream_without_a_window_has_nothing_to_cut():
    with pytest.raises(ValueError, match="without a window"):
        make_cutter(Scope(plan_with(None)))


# -------------------------------------------------------------------- against the slow calculator

_KINDS = [
    (("interval", 100, 100), Interval(duration("100a"), duration("100a"))),
    (("interval", 100, 30), Interval(duration("100a"), duration("30a"))),
    (("session", 30), Session(duration("30a"))),
    (("state",), State("i", INT)),
    (("event",), Event("i = 1", "v >= 7")),
    (("count", 3, 3), Count(3, 3)),
    (("count", 4, 2), Count(4, 2)),
]
_row = st.tuples(
    st.integers(0, 1), st.integers(0, 300), st.none() | st.integers(0, 2), st.integers(0, 9)
)


def _slow(window: tuple[Any, ...], lines: list[tuple[int, int, int | None, int]]) -> list[Any]:
    oracle = Oracle(Setting(window, False, 0, True, True, "tbname", False))
    found = []
    for group in (0, 1):
        rows = [
            Live("", t, {"b": b, "d": d}, n) for n, (g, t, b, d) in enumerate(lines) if g == group
        ]
        made = getattr(oracle, f"_{window[0]}")(rows)
        # an event that no row has ended is none to the calculator
        found += [(group, w.start, w.end, w.stop, len(w.rows)) for w in made]
    return sorted(found)


@settings(max_examples=drawn(50), deadline=None)
@given(st.lists(_row, max_size=20))
@pytest.mark.parametrize(("slow", "window"), _KINDS, ids=[str(slow) for slow, _ in _KINDS])
def test_cutters_agree_with_one_pass_over_the_rows(slow, window, lines):
    lines = sorted(lines, key=lambda line: line[:2])
    cutter = _cutter(window)
    rows = pl.DataFrame(
        [(g, n, t, b, float(d)) for n, (g, t, b, d) in enumerate(lines)],
        schema={"_g": pl.Int64, "_seq": pl.Int64, "ts": pl.Int64, "i": pl.Int32, "v": pl.Float64},
        orient="row",
    ).with_columns(cutter.expressions)
    made = cutter.describe(cutter.label(rows)).filter("_done")
    found = made.select("_g", "_wstart", "_wend", "_stop", "_n").rows()
    assert sorted(found) == _slow(slow, lines)

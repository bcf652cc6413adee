"""How far a change reaches, kind by kind, and which windows a change touches."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sql.plan import Count, Event, Interval, Session, State
from penstock.windows.assign.regions import Regions, after_start, before_end, touches
from penstock.windows.kernel import EARLIEST, LATEST
from tests.nightly import drawn
from tests.unit.windows.assembly import plan_with
from tests.unit.windows.plans import INT, duration

SESSION = Session(duration("10a"))
STATE = State("i", INT)
EVENT = Event("i = 1", "i = 9")
SLIDING = Interval(duration("20a"), duration("10a"))

#: (start, stop, first and last arrival, rows, ends with an end row) of the windows of group 0
Window = tuple[int, int, int, int, int, bool]


def _windows(*windows: Window) -> pl.DataFrame:
    names = ["_wstart", "_stop", "_sseq", "_lseq", "_n"]
    schema: dict[str, Any] = {
        "_g": pl.Int64,
        **dict.fromkeys(names, pl.Int64),
        "_ends_it": pl.Boolean,
    }
    return pl.DataFrame([(0, *w) for w in windows], schema=schema, orient="row")


def _region(window: Any, low: int, high: int, *windows: Window) -> tuple[int, ...]:
    """(_from, _fseq, _to, _tseq) of a change of low..high in group 0."""
    changes = pl.DataFrame({"_g": [0], "_lo": [low], "_hi": [high]})
    made = Regions(plan_with(window)).find(changes, _windows(*windows))
    assert made.height == 1
    return made.select("_from", "_fseq", "_to", "_tseq").row(0)


_SESSIONS: list[Window] = [
    (0, 5, 0, 2, 3, True),
    (30, 35, 3, 4, 2, True),
    (60, 60, 5, 5, 1, True),
]


@pytest.mark.parametrize(
    ("low", "high", "begin", "end"),
    [
        (17, 18, 17, 18),  # near to nothing
        (15, 18, 0, 18),  # joins what ends just near enough
        (20, 20, 20, 35),  # and what begins so
        (15, 50, 0, 60),
        (200, 200, 200, 200),
    ],
)
def test_a_session_ends_where_nothing_is_near_enough(low, high, begin, end):
    assert _region(SESSION, low, high, *_SESSIONS) == (begin, EARLIEST, end, LATEST)


def test_without_windows_a_change_reaches_what_it_is():
    assert _region(SESSION, 3, 4) == (3, EARLIEST, 4, LATEST)
    assert _region(Count(3, 3), 3, 4) == (3, EARLIEST, LATEST, LATEST)
    assert _region(STATE, 3, 4) == (EARLIEST, EARLIEST, LATEST, LATEST)


_COUNTS: list[Window] = [
    (0, 4, 0, 2, 3, True),
    (5, 9, 3, 5, 3, True),
    (10, 11, 6, 7, 2, True),
]


@pytest.mark.parametrize(
    ("low", "begin", "arrival"),
    [
        (6, 5, 3),
        (4, 0, 0),
        (100, 10, 6),  # what is not full yet takes a row from far away
        (-5, -5, EARLIEST),  # before all of them
    ],
)
def test_counts_change_from_the_first_touched_window_to_the_end(low, begin, arrival):
    assert _region(Count(3, 3), low, low, *_COUNTS) == (begin, arrival, LATEST, LATEST)


_RUNS: list[Window] = [
    (0, 5, 0, 2, 3, True),
    (10, 15, 3, 5, 3, True),
    (20, 25, 6, 8, 3, False),
    (30, 35, 9, 11, 3, True),
]


def test_a_state_reaches_one_window_either_side():
    assert _region(STATE, 12, 12, *_RUNS) == (0, 0, 25, 8)
    assert _region(STATE, 7, 7, *_RUNS) == (0, 0, 15, 5)
    assert _region(STATE, 2, 2, *_RUNS) == (EARLIEST, EARLIEST, 15, 5)
    assert _region(STATE, 40, 40, *_RUNS) == (30, 9, LATEST, LATEST)


def test_an_event_reaches_to_the_nearest_end_rows():
    assert _region(EVENT, 12, 12, *_RUNS) == (0, 0, 15, 5)
    # what is open ends nothing
    assert _region(EVENT, 27, 27, *_RUNS) == (10, 3, 35, 11)
    assert _region(EVENT, 15, 15, *_RUNS) == (0, 0, 35, 11)


def test_the_grid_reaches_from_the_first_to_the_last_window_of_the_change():
    assert _region(SLIDING, 15, 41) == (0, EARLIEST, 59, LATEST)


def test_only_the_grid_knows_windows_without_rows():
    grid = Regions(plan_with(SLIDING))
    session = Regions(plan_with(SESSION))
    times = np.array([15, 20])
    assert grid.by_window and not session.by_window
    assert grid.last_tick(times).tolist() == [29, 39]
    assert grid.first_last_tick(times).tolist() == [19, 29]
    assert session.last_tick(times).tolist() == session.first_last_tick(times).tolist() == [15, 20]
    assert (grid.reach(15), session.reach(15)) == (0, 15)
    assert (grid.tolerance, session.tolerance) == (0, 10)


def test_rows_of_equal_time_fall_on_one_side_by_their_arrival():
    lines = pl.DataFrame(
        {"ts": [9, 10, 10, 11, 20, 20, 21], "_seq": [9, 4, 5, 0, 7, 8, 0]}
    ).with_columns(_from=10, _fseq=5, _to=20, _tseq=7)
    found = lines.select(after_start("ts").alias("a"), before_end("ts").alias("b"))
    assert found["a"].to_list() == [False, False, True, True, True, True, True]
    assert found["b"].to_list() == [True, True, True, True, True, False, False]


_spans = st.lists(
    st.tuples(st.integers(0, 2), st.integers(-20, 20), st.integers(0, 10)), max_size=8
)
_points = st.lists(st.tuples(st.integers(0, 2), st.integers(-25, 35)), max_size=8)


@settings(max_examples=drawn(200), deadline=None)
@given(_spans, _points)
def test_a_window_is_touched_by_a_point_between_its_ends(spans, points):
    windows = pl.DataFrame(
        [(g, start, start + length) for g, start, length in spans],
        schema={"_g": pl.Int64, "_wstart": pl.Int64, "_stop": pl.Int64},
        orient="row",
    )
    at = pl.DataFrame(points, schema={"_g": pl.Int64, "_t": pl.Int64}, orient="row")
    wanted = [
        any(g == h and start <= t <= start + length for h, t in points)
        for g, start, length in spans
    ]
    assert touches(windows, at).to_list() == wanted

"""The grid of INTERVAL windows, checked against wall-clock arithmetic of the standard library."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sql.plan import Interval
from penstock.windows.assign.boundaries import Grid
from tests.nightly import drawn
from tests.unit.windows.plans import duration


def grid(size, sliding=None, offset=None, zone="UTC", precision="ms"):
    return Grid(
        Interval(duration(size), duration(sliding or size), duration(offset) if offset else None),
        precision,
        zone,
    )


def ms(text, zone="UTC"):
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def windows(g, *times):
    positions, index = g.assign(np.array(times, np.int64))
    start, end = g.bounds(index)
    return [(int(p), int(s), int(e)) for p, s, e in zip(positions, start, end, strict=True)]


def test_fixed_windows_start_at_multiples_from_the_epoch():
    assert windows(grid("10s"), 0, 9_999, 10_000, -1) == [
        (0, 0, 10_000),
        (1, 0, 10_000),
        (2, 10_000, 20_000),
        (3, -10_000, 0),
    ]


def test_offset_shifts_the_grid():
    assert windows(grid("10s", offset="5s"), 4_999, 5_000) == [
        (0, -5_000, 5_000),
        (1, 5_000, 15_000),
    ]


def test_hopping_windows_hold_a_time_several_times_the_oldest_first():
    assert windows(grid("10s", "5s"), 7_000) == [(0, 0, 10_000), (0, 5_000, 15_000)]
    assert windows(grid("10s", "4s"), 9_000) == [
        (0, 0, 10_000),
        (0, 4_000, 14_000),
        (0, 8_000, 18_000),
    ]


def test_quarters_are_aligned_to_january():
    assert windows(grid("3n"), ms("2024-05-17")) == [(0, ms("2024-04-01"), ms("2024-07-01"))]
    assert windows(grid("1y"), ms("1969-05-17")) == [(0, ms("1969-01-01"), ms("1970-01-01"))]
    assert windows(grid("3n", "1n"), ms("2024-05-17"))[0] == (0, ms("2024-03-01"), ms("2024-06-01"))


def test_days_are_cut_at_local_midnight_and_follow_the_clocks():
    zone = "Europe/Berlin"
    assert windows(grid("1d", zone=zone), ms("2024-03-31T12:00", zone)) == [
        (0, ms("2024-03-31", zone), ms("2024-04-01", zone))
    ]
    assert (
        windows(grid("1d", zone=zone), ms("2024-03-31T12:00", zone))[0][2] - ms("2024-03-31", zone)
        == 23 * 3_600_000
    )
    assert windows(grid("1d", offset="1h", zone=zone), ms("2024-06-02T00:30", zone)) == [
        (0, ms("2024-06-01T01:00", zone), ms("2024-06-02T01:00", zone))
    ]


def test_weeks_begin_on_thursday():
    assert windows(grid("1w"), ms("2024-01-03")) == [(0, ms("2023-12-28"), ms("2024-01-04"))]


def test_a_midnight_that_does_not_exist_is_read_with_the_old_offset():
    zone = "America/Sao_Paulo"  # 2017-10-15: 00:00 became 01:00
    [(_, start, end)] = windows(grid("1d", zone=zone), ms("2017-10-15T12:00", zone))
    assert (start, end) == (ms("2017-10-15T01:00", zone), ms("2017-10-16", zone))


@pytest.mark.parametrize(
    "zone",
    [
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Asia/Kolkata",
        "Australia/Lord_Howe",
        "America/Sao_Paulo",
    ],
)
@pytest.mark.parametrize(
    "clause",
    [
        ("1d",),
        ("2d",),
        ("1w",),
        ("1n",),
        ("5n",),
        ("1y",),
        ("3d", "1d"),
        ("1n", "1n", "2d"),
        ("1d", "1d", "5h"),
        ("7h", "2h"),
    ],
)
@settings(max_examples=drawn(12), deadline=None)
@given(times=st.lists(st.integers(-(10**12), 4 * 10**12), min_size=1, max_size=20))
def test_every_time_lies_in_exactly_the_windows_given(zone, clause, times):
    g = grid(*clause, zone=zone)
    at = np.array(times, np.int64)
    first = g.first(at)
    last = g.last(at)
    assert (g.start(last) <= at).all() and (g.start(last + 1) > at).all()
    assert (g.end(first) > at).all() and (g.end(first - 1) <= at).all()
    if g.tumbling:
        assert (g.end(last) == g.start(last + 1)).all()


@settings(max_examples=drawn(80), deadline=None)
@given(st.integers(0, 2 * 10**9), st.sampled_from(["Europe/Berlin", "America/New_York"]))
def test_local_days_agree_with_the_standard_library(seconds, zone):
    local = datetime.fromtimestamp(seconds, UTC).astimezone(ZoneInfo(zone))
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    following = (midnight.replace(tzinfo=None) + timedelta(days=1)).replace(tzinfo=ZoneInfo(zone))
    assert windows(grid("1d", zone=zone), seconds * 1000) == [
        (0, int(midnight.timestamp()) * 1000, int(following.timestamp()) * 1000)
    ]


@pytest.mark.parametrize("precision", ["us", "ns"])
def test_other_precisions_count_their_own_ticks(precision):
    factor = {"us": 10**3, "ns": 10**6}[precision]
    assert windows(grid("1n", precision=precision), ms("2024-05-17") * factor) == [
        (0, ms("2024-05-01") * factor, ms("2024-06-01") * factor)
    ]


@pytest.mark.parametrize(
    ("clause", "unit"),
    [
        ({"size": "10s"}, 10_000),
        ({"size": "90s"}, 10_000),
        ({"size": "7s"}, 1_000),
        ({"size": "10s", "sliding": "4s"}, 1_000),
        ({"size": "2h"}, 3_600_000),
        ({"size": "1m", "offset": "3s"}, 1_000),
        ({"size": "150a"}, 150),
        ({"size": "1d"}, 86_400_000),
        ({"size": "1d", "zone": "Europe/Berlin"}, 0),
        ({"size": "1n"}, 0),
    ],
)
def test_windows_begin_and_end_at_whole_multiples_of_the_unit(clause, unit):
    made = grid(**clause)
    assert made.unit == unit
    if unit:
        starts, ends = made.bounds(np.arange(-3, 3))
        assert not (starts % unit).any() and not (ends % unit).any()

"""Local time of a time zone, beside the standard library, and where clocks change."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pytest

from penstock.windows.assign.wall_clock import WallClock

BERLIN = WallClock("ms", "Europe/Berlin")


def ticks(text, zone="UTC"):
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def one(method, value, *more):
    return int(method(np.array([value], np.int64), *more)[0])


@pytest.mark.parametrize("text", ["2024-01-15T12:00:00", "2024-07-15T12:00:00"])
def test_local_time_is_what_a_clock_in_the_zone_shows(text):
    utc = ticks(text, "Europe/Berlin")

    assert one(BERLIN.to_local, utc) == ticks(text)
    assert one(BERLIN.to_utc, ticks(text)) == utc


def test_a_time_that_clocks_leave_out_has_the_offset_before():
    assert one(BERLIN.to_utc, ticks("2024-03-31T02:30:00")) == ticks("2024-03-31T01:30:00")


def test_of_a_time_that_exists_twice_it_is_the_first():
    assert one(BERLIN.to_utc, ticks("2024-10-27T02:30:00")) == ticks("2024-10-27T00:30:00")


def test_months_are_counted_in_local_time():
    last_hour = ticks("2023-12-31T23:30:00")

    assert one(WallClock("ms", "UTC").month_of, last_hour) == (2023 - 1900) * 12 + 11
    assert one(BERLIN.month_of, last_hour) == (2024 - 1900) * 12
    assert one(BERLIN.first_of_month, (2024 - 1900) * 12) == ticks("2024-01-01T00:00:00")


def test_a_month_later_is_the_same_day_or_the_last_of_the_month():
    assert one(BERLIN.add_months, ticks("2024-01-31T08:00:00"), 1) == ticks("2024-02-29T08:00:00")


@pytest.mark.parametrize(("precision", "per_second"), [("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_ticks_are_of_the_precision(precision, per_second):
    seconds = int(datetime(2024, 7, 15, 12, tzinfo=UTC).timestamp())
    clock = WallClock(precision, "Europe/Berlin")

    assert one(clock.to_local, seconds * per_second) == (seconds + 7200) * per_second


def test_utc_shows_itself():
    times = np.array([1, 2], np.int64)
    clock = WallClock("ms", "Etc/UTC")

    assert clock.utc and clock.to_local(times) is times and clock.to_utc(times) is times
    assert not BERLIN.utc


def test_an_unknown_zone_is_an_error():
    with pytest.raises(ZoneInfoNotFoundError):
        WallClock("ms", "Nowhere/Never")

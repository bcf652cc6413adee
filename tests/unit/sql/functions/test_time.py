"""Time: zones, ISO text, shifts and the calendar."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.sql.functions import time as functions
from penstock.sql.functions.base import Compiled
from penstock.sql.functions.time import local, parse_iso, shift, to_ticks
from penstock.sql.functions.zones import zone
from penstock.sql.plan import Duration
from tests.nightly import drawn
from tests.unit.sql.calling import TIMESTAMP, Table, apply, call_of, scope
from tests.unit.sql.reading import refusal

N = None
T = TIMESTAMP
DAY = 86_400_000


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("", "UTC"),
        ("Z", "UTC"),
        ("+00:00", "UTC"),
        ("+08:00", "Etc/GMT-8"),
        ("-0500", "Etc/GMT+5"),
        ("UTC+3", "Etc/GMT-3"),
        ("gmt-3", "Etc/GMT+3"),
        ("Europe/Berlin", "Europe/Berlin"),
        ("+05:30", "+05:30"),
        ("+13", "+13"),
    ],
)
def test_an_offset_of_whole_hours_is_a_zone(name: str, wanted: str) -> None:
    assert zone(name) == wanted


def iso(text: str | None, precision: str = "ms", timezone: str = "UTC") -> Any:
    frame = pl.DataFrame({"t": [text]}, schema={"t": pl.String})
    return frame.select(parse_iso(pl.col("t"), scope(precision, timezone))).item()


@pytest.mark.parametrize(
    ("text", "ticks"),
    [
        ("1970-01-02", DAY),
        ("1970-1-2", DAY),
        (" 1970-01-01T00:00:01 ", 1_000),
        ("1970-01-01 1", 3_600_000),
        ("1970-01-01 01:02", 3_720_000),
        ("1970-01-01 00:00:00.5", 500),
        ("1970-01-01 00:00:00,1239", 123),
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T08:00:00+08:00", 0),
        ("1970-01-01T00:00:00-0130", 5_400_000),
        ("1970-01-01T08:00:00+08", 0),
        ("1969-12-31 23:59:59.999", -1),
        ("1970-02-30", N),
        ("1970-01-01 24:00:00", N),
        ("1970-01-01 00:60:00", N),
        ("1970-01-01 00:00:60", N),
        ("1970-01-01x", N),
        ("5", N),
        ("", N),
        (N, N),
    ],
)
def test_iso_text_is_read(text: str | None, ticks: int | None) -> None:
    assert iso(text) == ticks


def test_iso_text_has_the_precision_and_the_zone_of_the_stream() -> None:
    text = "1970-01-01 00:00:00.123456789"
    assert [iso(text, p) for p in ("ms", "us", "ns")] == [123, 123_456, 123_456_789]
    assert iso("1970-01-01 08:00:00", timezone="Asia/Shanghai") == 0
    assert iso("1970-01-01 08:00:00Z", timezone="Asia/Shanghai") == 8 * 3_600_000


moments = some.datetimes(*map(dt.datetime.fromisoformat, ("0001-01-02", "9999-12-30")))


@settings(max_examples=drawn(60), deadline=None)
@given(moments, some.integers(-12, 12))
def test_iso_text_is_read_as_python_does(moment: dt.datetime, hours: int) -> None:
    placed = moment.replace(
        microsecond=moment.microsecond // 1000 * 1000, tzinfo=dt.timezone(dt.timedelta(hours=hours))
    )
    since = placed - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    assert iso(placed.isoformat()) == since // dt.timedelta(milliseconds=1)


@settings(max_examples=drawn(60), deadline=None)
@given(
    some.integers(0, 4_000_000_000_000),
    some.sampled_from(["UTC", "Asia/Shanghai", "Europe/Berlin", "-03:00"]),
)
def test_ticks_are_shown_in_a_zone(ticks: int, name: str) -> None:
    frame = pl.DataFrame({"t": [ticks]})
    shown = frame.select(local(pl.col("t"), scope(timezone=name))).item()
    there = zoneinfo.ZoneInfo(zone(name))
    wanted = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=ticks)
    assert shown == wanted
    assert shown.utcoffset() == wanted.astimezone(there).utcoffset()


def test_an_hour_that_is_skipped_is_null_and_one_that_comes_twice_the_first() -> None:
    walls = [dt.datetime.fromisoformat(t) for t in ("2023-03-26T02:30", "2023-10-29T02:30")]
    frame = pl.DataFrame({"t": walls}, schema={"t": pl.Datetime("ms")})
    found = frame.select(x=to_ticks(pl.col("t"), scope(timezone="Europe/Berlin")))["x"].to_list()
    assert found == [N, 1_698_539_400_000]


@pytest.mark.parametrize(
    ("start", "by", "sign", "wanted"),
    [
        ("1970-01-31", Duration(1, "n"), 1, "1970-02-28"),
        ("1972-02-29", Duration(1, "y"), 1, "1973-02-28"),
        ("1970-03-31", Duration(1, "n"), -1, "1970-02-28"),
        ("1970-01-31", Duration(2, "d"), 1, "1970-02-02"),
        ("1970-01-01", Duration(1, "w"), -1, "1969-12-25"),
    ],
)
def test_a_time_is_moved_by_a_duration(start: str, by: Duration, sign: int, wanted: str) -> None:
    made = shift(pl.lit(iso(start), pl.Int64), by, scope(), sign)
    assert pl.select(made).item() == iso(wanted)


def test_months_go_by_the_local_calendar() -> None:
    there = scope(timezone="Asia/Shanghai")
    start = iso("1970-02-01", timezone="Asia/Shanghai")
    made = shift(pl.lit(start, pl.Int64), Duration(1, "n"), there, 1)
    assert pl.select(made).item() == iso("1970-03-01", timezone="Asia/Shanghai")


def test_a_time_moved_out_of_64_bits_is_null() -> None:
    made = shift(pl.lit(2**63 - 1, pl.Int64), Duration(1, "s"), scope(), 1)
    assert pl.select(made).item() is None


def at_now(build: Any, **options: Any) -> Any:
    frame = pl.DataFrame({"_now": [1_700_000_000_000]})
    return frame.select(build(call_of(Table(), **options))).item()


def test_now_is_the_append_time() -> None:
    assert at_now(functions.now_) == 1_700_000_000_000
    assert at_now(functions.today) == 1_699_920_000_000
    assert at_now(functions.today, timezone="Asia/Shanghai") == 1_699_977_600_000
    assert at_now(functions.timezone, timezone="Asia/Shanghai") == "Asia/Shanghai"


HOUR = Duration(1, "h")
CASES: list[tuple[Any, tuple[Any, ...], list[Any]]] = [
    (functions.timediff, (([DAY, 0, N], T), ([0, DAY, 0], T)), [DAY, -DAY, N]),
    (functions.timediff, (([5_400_000, -5_400_000], T), 0, HOUR), [1, -1]),
    (functions.timediff, (([5], T), 0, None), [5]),
    (functions.timetruncate, (([5_400_000, -1, N], T), HOUR), [3_600_000, -3_600_000, N]),
    (functions.timetruncate, (([DAY + 5], T), Duration(1, "d")), [DAY]),
    (functions.timetruncate, (([8 * DAY], T), Duration(1, "w")), [7 * DAY]),
    (functions.timetruncate, (([5], T), None), [N]),
    (functions.date_bin, (HOUR, ([5_400_000, -1, N], T)), [3_600_000, -3_600_000, N]),
    (functions.date_bin, (HOUR, ([5_400_000, -1, N], T), 60_000), [3_660_000, -3_540_000, N]),
    (functions.date_bin, (HOUR, ([2**63 - 1], T), -1), [2**63 - 1 - (2**63 % 3_600_000)]),
    (functions.date_bin, (None, ([5], T)), [N]),
    (functions.date, (([0, N], T),), ["1970-01-01", N]),
    (functions.day, (([30 * DAY, N], T),), [31, N]),
    (functions.dayofweek, (([i * DAY for i in range(7)], T),), [5, 6, 7, 1, 2, 3, 4]),
    (functions.weekday, (([i * DAY for i in range(7)], T),), [3, 4, 5, 6, 0, 1, 2]),
    (functions.weekofyear, (([0, 4 * DAY, N], T),), [1, 2, N]),
]


@pytest.mark.parametrize(
    ("build", "arguments", "wanted"),
    CASES,
    ids=[f"{c[0].__name__}{i}" for i, c in enumerate(CASES)],
)
def test_a_function_has_its_value_in_each_row(
    build: Any, arguments: tuple[Any, ...], wanted: list[Any]
) -> None:
    assert apply(build, *arguments) == wanted


def test_days_are_cut_at_local_midnight_or_at_that_of_utc() -> None:
    noon = ([12 * 3_600_000], T)
    day = Duration(1, "d")
    there = {"timezone": "Asia/Shanghai"}
    assert apply(functions.timetruncate, noon, day, **there) == [-8 * 3_600_000]
    assert apply(functions.timetruncate, noon, day, 0, **there) == [0]
    assert apply(functions.date, ([20 * 3_600_000], T), **there) == ["1970-01-02"]


def mysql_week(day: dt.date, mode: int) -> int:
    """MySQL's WEEK(): its own description, step by step."""
    monday, four = mode % 2 == 1, mode in (1, 3, 4, 6)

    def first(year: int) -> dt.date:
        new_year = dt.date(year, 1, 1)
        into = new_year.weekday() if monday else (new_year.weekday() + 1) % 7
        begin = new_year - dt.timedelta(into)
        if four:
            return begin if into <= 3 else begin + dt.timedelta(7)
        return begin if into == 0 else begin + dt.timedelta(7)

    week = (day - first(day.year)).days // 7 + 1
    if mode not in (2, 3, 6, 7):
        return week
    if week < 1:
        return (day - first(day.year - 1)).days // 7 + 1
    return 1 if four and day >= first(day.year + 1) else week


@pytest.mark.parametrize("mode", range(8))
def test_weeks_are_those_of_mysql_in_every_mode(mode: int) -> None:
    days = [
        dt.date(year, 1, 1) + dt.timedelta(shift)
        for year in range(1995, 2025)
        for shift in (-5, -3, -1, 0, 2, 5, 8, 180)
    ]
    ticks = [(d - dt.date(1970, 1, 1)).days * DAY for d in days]
    frame = pl.DataFrame({"t": ticks})
    call = call_of(Table(), Compiled(pl.col("t"), T), mode)
    found = frame.select(x=functions.week(call))["x"].to_list()
    assert found == [mysql_week(d, mode) for d in days]


@pytest.mark.parametrize(
    ("build", "arguments", "message"),
    [
        (functions.week, (([0], T), 8), "the mode of week() is 0 to 7"),
        (functions.week, (([0], T), -1), "the mode of week() is 0 to 7"),
        (functions.timediff, (0, 0, Duration(2, "h")), "the unit of f() must be one of"),
        (functions.timetruncate, (0, Duration(1, "n")), "the unit of f() must be one of"),
        (functions.timetruncate, (0, Duration(1, "u")), "the unit 1u of f() is finer than"),
        (functions.date_bin, (Duration(1, "y"), 0), "bins of 1y have several lengths"),
        (functions.date_bin, (Duration(1, "u"), 0), "bins of 1u are finer than"),
        (functions.date_bin, (Duration(0, "s"), 0), "a bin has a length"),
        (functions.timetruncate, (0, HOUR, 2), "the third argument of timetruncate() is 0"),
    ],
)
def test_an_argument_that_makes_no_sense_is_refused(
    build: Any, arguments: tuple[Any, ...], message: str
) -> None:
    error = refusal(lambda: apply(build, *arguments))
    assert error.code == "E_FUNCTION_ARGUMENT"
    assert error.message.startswith(message)

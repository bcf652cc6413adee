"""A time that is read once is the time that a column of the same text would be."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some

from penstock.sql.compile.constants import ticks_of
from penstock.sql.functions.time import parse_iso
from tests.nightly import drawn
from tests.unit.sql.calling import scope

ZONES = ("UTC", "Z", "+08:00", "Asia/Shanghai", "Europe/Berlin", "America/New_York")
#: DST begins and ends, the ends of the calendar and of nanoseconds, and days that are none
_DAYS = some.sampled_from(
    [
        "1970-01-01",
        "2026-03-29",
        "2026-10-25",
        "1969-12-31",
        "2024-2-29",
        "2023-02-29",
        "0000-01-01",
        "0001-01-01",
        "9999-12-31",
        "2262-04-11",
        "2026-13-01",
        "٢٠٢٦-٠١-٠١",
    ]
) | some.dates().map(str)
_CLOCKS = some.sampled_from(["", " 25:00", "T24", " 1:60", " 01:02:60", " 2", "T02:30", " 3.25"])
_TIMES = some.times().map(lambda time: f" {time}") | _CLOCKS
_FRACTIONS = some.sampled_from(["", ".5", ",123456789", ".1234567891"])
_OFFSETS = some.sampled_from(
    ["", "Z", " z", "+02", "-0330", "+14:00", "-99:99", "+05:45", "+1", "Zulu"]
)
_TEXTS = some.builds("{}{}{}{}".format, _DAYS, _TIMES, _FRACTIONS, _OFFSETS) | some.text(max_size=9)


@given(_TEXTS, some.sampled_from(["ms", "us", "ns"]), some.sampled_from(ZONES))
@example("2026-03-29 02:30:00", "ms", "Europe/Berlin")
@example("2026-10-25 02:30:00", "us", "Europe/Berlin")
@example("2300-01-01 00:00:00", "ns", "UTC")
@example("\u20032026-01-01\u2003", "ms", "UTC")
@settings(max_examples=drawn(100), deadline=None)
def test_a_constant_is_read_as_a_column_is(text: str, precision: str, timezone: str) -> None:
    column = pl.DataFrame({"t": [text]}, schema={"t": pl.String})
    wanted = column.select(parse_iso(pl.col("t"), scope(precision, timezone))).item()
    assert ticks_of(text, precision, timezone) == wanted


@pytest.mark.parametrize(
    ("text", "timezone", "ticks"),
    [
        ("1970-01-02", "UTC", 86_400_000),
        ("1970-01-01 08:00:01", "Asia/Shanghai", 1_000),
        ("1970-01-01T00:00:00.25-00:30", "Asia/Shanghai", 1_800_250),
        ("1969-12-31 23:59:59.5", "UTC", -500),
        ("1970-02-30", "UTC", None),
    ],
)
def test_what_a_time_is(text: str, timezone: str, ticks: int | None) -> None:
    assert ticks_of(text, "ms", timezone) == ticks

"""Functions of times in plain Python, from the words of the documentation."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from tests.sql.engines import MOMENT
from tests.sql.plain_numbers import Case, Row

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = 86_400_000


def _ticks(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _local(ticks: int, zone: str) -> datetime:
    return (_EPOCH + timedelta(milliseconds=ticks)).astimezone(ZoneInfo(zone))


def _at(compute: Callable[[datetime], Any]) -> Callable[[Row, str], Any]:
    return lambda row, zone: None if row["ts"] is None else compute(_local(row["ts"], zone))


def _placed(wall: datetime, zone: str) -> int | None:
    """Return the ticks of a local time: the first of two, NULL where clocks skip it."""
    moment = wall.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    if moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None) != wall:
        return None
    return _ticks(moment)


def read_time(text: str | None, zone: str) -> int | None:
    """Return the ticks of a text in ISO form; None where it is none."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return _ticks(found.astimezone(UTC)) if found.tzinfo else _placed(found, zone)


def _read_seconds(row: Row, zone: str) -> int | None:
    """Read `YYYY-MM-DD HH24:MI:SS`; what stands behind does not matter."""
    found = re.match(r"(\d+-\d+-\d+)\s+(\d+:\d+:\d+)", row["w"] or "")
    return None if found is None else read_time(f"{found[1]} {found[2]}", zone)


def _week(day: date, mode: int) -> int:
    """Count weeks as MySQL does, from the day that decides to which year a week belongs."""
    monday = mode in (1, 3, 5, 7)
    four_days = mode in (1, 3, 4, 6)
    own_year_only = mode in (0, 1, 4, 5)
    begin = day - timedelta(days=day.weekday() if monday else (day.weekday() + 1) % 7)
    deciding = begin + timedelta(days=3 if four_days else 0)
    if own_year_only and deciding.year < day.year:
        return 0
    if own_year_only and deciding.year > day.year:
        deciding = begin - timedelta(days=4)
        return _number(deciding) + 1
    return _number(deciding)


def _number(deciding: date) -> int:
    return (deciding.timetuple().tm_yday - 1) // 7 + 1


def _cut(unit: int) -> Callable[[Row, str], Any]:
    return lambda row, _: None if row["ts"] is None else row["ts"] // unit * unit


def _binned(length: int, origin: int) -> Callable[[Row, str], Any]:
    def cut(row: Row, _: str) -> int | None:
        ts = row["ts"]
        return None if ts is None else (ts - origin) // length * length + origin

    return cut


def _cut_local(days: int) -> Callable[[Row, str], Any]:
    def cut(at: datetime) -> int | None:
        number = (at.date() - date(1970, 1, 1)).days // days * days
        wall = datetime.combine(date(1970, 1, 1) + timedelta(days=number), time())
        return _placed(wall, str(at.tzinfo))

    return _at(cut)


def _between(unit: int) -> Callable[[Row, str], Any]:
    def count(row: Row, _: str) -> int | None:
        if row["ts"] is None:
            return None
        left = int(row["ts"]) - 1_710_000_000_000
        return abs(left) // unit * (1 if left >= 0 else -1)

    return count


def _iso(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}" + at.strftime("%z")


def _iso_at(row: Row, _: str) -> str | None:
    if row["ts"] is None:
        return None
    at = _local(row["ts"], "UTC") + timedelta(hours=5, minutes=30)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}+05:30"


def _char(at: datetime) -> str:
    half = "PM" if at.hour >= 12 else "AM"
    hour = (at.hour - 1) % 12 + 1
    return (
        f"{at.year:04d}/{at.month:02d}/{at.day:02d} {hour:02d}:{at.minute:02d}:{at.second:02d}."
        f"{at.microsecond // 1000:03d} {half} {at.strftime('%a').upper()} at {at.strftime('%j')}"
    )


def _today(_: Row, zone: str) -> int | None:
    here = _local(MOMENT // 1_000_000, zone)
    return _placed(datetime.combine(here.date(), time()), zone)


def _week_case(mode: int) -> Case:
    return f"week(ts, {mode})", _at(lambda at: _week(at.date(), mode))


def _months_later(at: datetime, months: int) -> int | None:
    """Move by the local calendar; what is no day is the month's last."""
    year, month = divmod(at.year * 12 + at.month - 1 + months, 12)
    wall = at.replace(tzinfo=None, day=1, year=year, month=month + 1)
    last = calendar.monthrange(year, month + 1)[1]
    return _placed(wall.replace(day=min(at.day, last)), str(at.tzinfo))


TIMES: list[Case] = [
    ("now()", lambda r, z: MOMENT // 1_000_000),
    ("now", lambda r, z: MOMENT // 1_000_000),
    ("today()", _today),
    ("timezone()", lambda r, z: z),
    ("timediff(ts, 1710000000000)", _between(1)),
    ("timediff(ts, 1710000000000, 1h)", _between(3_600_000)),
    ("timetruncate(ts, 1m)", _cut(60_000)),
    ("timetruncate(ts, 1d)", _cut_local(1)),
    ("timetruncate(ts, 1d, 0)", _cut(_DAY)),
    ("timetruncate(ts, 1w)", _cut_local(7)),
    ("date_bin(15m, ts)", _cut(900_000)),
    ("date_bin(7h, ts)", _cut(7 * 3_600_000)),
    ("date_bin(2w, ts)", _cut(14 * _DAY)),
    ("date_bin(7h, ts, 1710000000000)", _binned(7 * 3_600_000, 1_710_000_000_000)),
    ("date_bin(1d, ts, '2024-01-01T06:00:00Z')", _binned(_DAY, 1_704_088_800_000)),
    ("date(ts)", _at(lambda at: at.strftime("%Y-%m-%d"))),
    (
        "date(w)",
        lambda r, z: (
            None
            if read_time(r["w"], z) is None
            else str(_local(read_time(r["w"], z) or 0, z).date())
        ),
    ),
    ("day(ts)", _at(lambda at: at.day)),
    ("dayofmonth(ts)", _at(lambda at: at.day)),
    ("dayofweek(ts)", _at(lambda at: at.isoweekday() % 7 + 1)),
    ("weekday(ts)", _at(lambda at: at.weekday())),
    ("weekofyear(ts)", _at(lambda at: at.isocalendar().week)),
    ("week(ts)", _at(lambda at: _week(at.date(), 0))),
    *(_week_case(mode) for mode in range(8)),
    ("to_iso8601(ts)", _at(_iso)),
    ("to_iso8601(ts, '+05:30')", _iso_at),
    ("to_char(ts, 'YYYY/MM/DD HH12:MI:SS.MS PM DY \"at\" DDD')", _at(_char)),
    ("to_timestamp(w, 'YYYY-MM-DD HH24:MI:SS')", _read_seconds),
    ("to_unixtimestamp(w)", lambda r, z: read_time(r["w"], z)),
    ("to_unixtimestamp(w, 1)", lambda r, z: read_time(r["w"], z)),
    ("ts + 1d", lambda r, z: None if r["ts"] is None else r["ts"] + _DAY),
    ("ts - 36h + 5", lambda r, z: None if r["ts"] is None else r["ts"] - _DAY * 3 // 2 + 5),
    ("ts + 1n", _at(lambda at: _months_later(at, 1))),
    ("ts - 2y", _at(lambda at: _months_later(at, -24))),
    ("'2024-03-31 12:00:00' - 1d", lambda r, z: (read_time("2024-03-31 12:00:00", z) or 0) - _DAY),
    ("(1u + '1970-01-01T00:00:00Z') - ts", lambda r, z: None if r["ts"] is None else -r["ts"]),
]

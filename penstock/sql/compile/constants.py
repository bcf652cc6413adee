"""Constants that are read when a query is, and not row by row."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import NoReturn

import polars as pl

from penstock.sql.functions.base import CompileScope
from penstock.sql.functions.time import parse_iso, to_ticks
from penstock.sql.functions.zones import zone
from penstock.sql.plan import TICKS_PER_SECOND

#: longer texts are not remembered
_LONGEST_REMEMBERED = 64
#: what `parse_iso` reads, as far as it is ASCII
_TIME = re.compile(
    r"\s*(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[T ]+(?P<hour>\d{1,2})(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2}))?)?"
    r"(?:[.,](?P<fraction>\d{1,9})\d*)?)?\s*"
    r"(?:(?P<utc>[Zz])|(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>\d\d)?)?\s*",
    re.ASCII,
)
_FIRST_DAY = date(1970, 1, 1).toordinal()
_FIRST_MOMENT = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)
_MOST_TICKS = 2**63 - 1


def ticks_of(text: str, precision: str, timezone: str) -> int | None:
    """Return the ticks of a time written as text, in *timezone* unless it names its own; None where
    it is no time.
    """
    if len(text) > _LONGEST_REMEMBERED:
        return _read(text, precision, timezone)
    return _remembered(text, precision, timezone)


def _read(text: str, precision: str, timezone: str) -> int | None:
    """Read a text as `parse_iso` does. What everybody writes is read here: for one text polars
    takes milliseconds.
    """
    match = _TIME.fullmatch(text)
    seconds = None if match is None else _seconds(match, timezone)
    if match is not None and seconds is not None:
        per_second = TICKS_PER_SECOND[precision]
        nanos = int((match["fraction"] or "0").ljust(9, "0"))
        ticks = seconds * per_second + nanos // (1_000_000_000 // per_second)
        if abs(ticks) <= _MOST_TICKS:
            return ticks
    return _read_by_polars(text, precision, timezone)


def _seconds(match: re.Match[str], timezone: str) -> int | None:
    """Return the whole seconds of a time since 1970; None: polars has to say."""
    wall = _wall_seconds(match)
    if wall is None:
        return None
    if match["sign"]:
        shift = int(match["hours"]) * 3_600 + int(match["minutes"] or 0) * 60
        return wall + shift if match["sign"] == "-" else wall - shift
    return wall if match["utc"] or zone(timezone) == "UTC" else _in_zone(wall, timezone)


def _wall_seconds(match: re.Match[str]) -> int | None:
    """Return the whole seconds from 1970 to what clocks show, in any zone; None: no such time."""
    try:
        days = date(*map(int, match.group(1, 2, 3))).toordinal() - _FIRST_DAY
    except ValueError:  # there is no such day, or it is of the year 0
        return None
    hour, minute, second = (int(match[part] or 0) for part in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:
        return None
    return days * 86_400 + hour * 3_600 + minute * 60 + second


def _in_zone(wall: int, timezone: str) -> int | None:
    """Return the moment, in seconds, at which clocks of a zone show *wall*."""
    shown = pl.Series([_FIRST_MOMENT + timedelta(seconds=wall)], dtype=pl.Datetime("us"))
    scope = CompileScope("us", timezone, _refuse)
    ticks = pl.select(to_ticks(pl.lit(shown), scope)).item()
    return None if ticks is None else int(ticks) // 1_000_000


def _read_by_polars(text: str, precision: str, timezone: str) -> int | None:
    scope = CompileScope(precision, timezone, _refuse)
    ticks = pl.select(parse_iso(pl.lit(text), scope)).item()
    return None if ticks is None else int(ticks)


_remembered = lru_cache(maxsize=1024)(_read)


def _refuse(node: object, message: str, **more: object) -> NoReturn:
    """Reading a time refuses nothing: what is none is NULL."""
    raise AssertionError(message)

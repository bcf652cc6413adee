"""Times as clients write them, to ticks of a database and back.

Owns the accepted text forms (ISO 8601 with `T` or a blank, any number of fraction digits up to
nine, with or without a zone) and the form of TDengine's REST answers. Nothing is rounded: digits
finer than the database's precision are cut, as TDengine does.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import polars as pl

from penstock.errors import SqlSemanticError
from penstock.sql.plan import TICKS_PER_SECOND
from penstock.types import TIME_LIMITS

_FORM = re.compile(
    r"\s*(\d{4}-\d{1,2}-\d{1,2})(?:[T\s]\s*(\d{1,2}:\d{2}(?::\d{2})?)(?:[.,](\d{1,9}))?)?\s*(Z|z|[+-]\d{2}:?(?:\d{2})?)?\s*"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS = {"ms": 3, "us": 6, "ns": 9}
LIMITS = TIME_LIMITS


def zone(name: str) -> tzinfo:
    """Return the time zone called *name*. Raises SqlSemanticError."""
    if name.upper() in ("UTC", "Z", ""):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as unknown:
        raise SqlSemanticError(
            f'unknown time zone "{name[:64]}"',
            code="E_TIMEZONE",
            hint="use a name like Europe/Berlin",
        ) from unknown


def parse(text: str, precision: str, tz: tzinfo = UTC) -> int:
    """Ticks of one time text; a text without a zone is in *tz*. Raises ValueError."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:64]!r} is not a time")
    day, clock, fraction, offset = match.groups()
    year, month, number = (int(x) for x in day.split("-"))
    hour, minute, second = (*(int(x) for x in (clock or "0:0").split(":")), 0)[:3]
    moment = datetime(
        year, month, number, hour, minute, second, tzinfo=_offset(offset) if offset else tz
    )
    seconds = (moment - _EPOCH) // timedelta(seconds=1)
    nanos = int((fraction or "0").ljust(9, "0"))
    per_second = TICKS_PER_SECOND[precision]
    return seconds * per_second + nanos * per_second // 10**9


def _offset(text: str) -> tzinfo:
    if text in "Zz":
        return UTC
    return datetime.strptime(text.ljust(3) + "00" if len(text) == 3 else text, "%z").tzinfo or UTC


def parse_column(values: list[Any], precision: str, tz: tzinfo = UTC) -> pl.Series:
    """Ticks of a column of integers (ticks already), texts, datetimes and None. Raises ValueError
    or TypeError at the first bad one.
    """
    return pl.Series(values=[one(v, precision, tz) for v in values], dtype=pl.Int64, strict=True)


def one(value: Any, precision: str, tz: tzinfo) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, str):
        return parse(value, precision, tz)
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=tz)
        return (moment - _EPOCH) // timedelta(microseconds=1) * TICKS_PER_SECOND[precision] // 10**6
    if isinstance(value, date):
        return one(datetime(value.year, value.month, value.day, tzinfo=tz), precision, tz)
    raise ValueError(f"{value!r} is not a time")


def render(ticks: pl.Series, precision: str, tz: str = "UTC") -> pl.Series:
    """TDengine's REST form, `2024-01-01T00:00:00.000Z`: as many digits as the precision has, `Z` or
    the offset behind.
    """
    moments = ticks.cast(pl.Int64).cast(pl.Datetime(precision, "UTC"))  # type: ignore[arg-type]
    if tz.upper() in ("UTC", "Z", ""):
        return moments.dt.strftime(f"%Y-%m-%dT%H:%M:%S%.{_DIGITS[precision]}fZ")
    return (
        moments.dt.convert_time_zone(tz)
        .dt.strftime(f"%Y-%m-%dT%H:%M:%S%.{_DIGITS[precision]}f%:z")
        .str.replace(r"\+00:00$", "Z")
    )

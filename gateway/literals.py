"""Literals of a statement as values of a column.

Owns what SQL allows beyond JSON: numbers in quotes, times relative to now, durations with calendar
units. Values that would lose something are not accepted.
"""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal, InvalidOperation
from typing import Any

from gateway import times
from penstock.sql.plan import TICKS_PER_SECOND, Duration
from penstock.sql.statements import RelativeTime, Value
from penstock.types import ColumnType

_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


def convert(value: Value, kind: ColumnType, precision: str, tz: tzinfo, now: int) -> Any:
    """Return the value of a column of *kind*; *now* in ticks. Raises ValueError."""
    if value is None:
        return None
    if isinstance(value, bytes):
        if kind.kind != "VARBINARY":
            raise ValueError("bytes")
        return value
    if kind.kind == "TIMESTAMP":
        return ticks(value, precision, tz, now)
    if isinstance(value, RelativeTime):
        if kind.kind == "BIGINT":
            return ticks(value, precision, tz, now)
        raise ValueError("a time")
    if kind.kind == "BOOL":
        return _boolean(value)
    if kind.integer:
        return _integer(value)
    if kind.kind in ("FLOAT", "DOUBLE"):
        return _finite(value)
    if kind.kind == "DECIMAL":
        return _decimal(value)
    if not isinstance(value, str):
        raise ValueError(value)
    if kind.kind == "JSON" and value.strip():
        json.loads(value, parse_constant=_refuse_constant)
    return value


def _refuse_constant(text: str) -> None:
    """Refuse NaN and Infinity, which are not JSON, though Python's reader takes them."""
    raise ValueError(text)


def _finite(value: bool | int | float | Decimal | str) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(value)
    return number


def _decimal(value: bool | int | float | Decimal | str) -> Decimal:
    try:
        return Decimal(str(value))
    except InvalidOperation as wrong:
        raise ValueError(value) from wrong


def _boolean(value: bool | int | float | Decimal | str) -> bool:
    if isinstance(value, str):
        if value.lower() not in _BOOLEANS:
            raise ValueError(value)
        return _BOOLEANS[value.lower()]
    return bool(value)


def _integer(value: bool | int | float | Decimal | str) -> int:
    if isinstance(value, str):
        return int(value)
    if value != int(value):
        raise ValueError(value)
    return int(value)


def ticks(value: Value, precision: str, tz: tzinfo, now: int) -> int:
    """Return a time as ticks. Raises ValueError."""
    if isinstance(value, bool | bytes) or value is None:
        raise ValueError(value)
    if isinstance(value, str):
        return times.parse(value, precision, tz)
    if isinstance(value, (int, float, Decimal)):
        return _integer(value)
    if value.base == "now":
        at = now
    elif value.base == "today":
        day = datetime.fromtimestamp(now / TICKS_PER_SECOND[precision], tz).replace(
            hour=0, minute=0, second=0, microsecond=0
        )
        at = int(day.timestamp()) * TICKS_PER_SECOND[precision]
    elif value.literal:
        at = times.parse(str(value.base), precision, tz)
    else:
        at = int(value.base)
    for sign, length in value.steps:
        at = (
            _months(at, sign, length, precision, tz)
            if length.natural
            else at + sign * length.ticks(precision)
        )
    return at


def _months(at: int, sign: int, length: Duration, precision: str, tz: tzinfo) -> int:
    """Calendar steps; a day that the month does not have becomes its last."""
    per_second = TICKS_PER_SECOND[precision]
    seconds, rest = divmod(at, per_second)
    moment = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).astimezone(tz)
    month = (
        moment.year * 12
        + moment.month
        - 1
        + sign * length.value * (12 if length.unit == "y" else 1)
    )
    first_next = datetime((month + 1) // 12, (month + 1) % 12 + 1, 1, tzinfo=tz)
    last_day = (first_next - timedelta(days=1)).day
    made = moment.replace(year=month // 12, month=month % 12 + 1, day=min(moment.day, last_day))
    return int(made.timestamp()) * per_second + rest

"""Times of InfluxQL: nanoseconds since 1970 as texts, and the way back."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

_TEXT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)?)?")
#: what `epoch=` names, in nanoseconds
EPOCHS = {
    "ns": 1,
    "n": 1,
    "u": 10**3,
    "us": 10**3,
    "µ": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_SECOND = 10**9
_ZERO = datetime(1970, 1, 1, tzinfo=UTC)


def nanoseconds(text: str) -> int | None:
    """Return what a text between quotes means; None when it is no time."""
    match = _TEXT.fullmatch(text)
    if match is None:
        return None
    day, clock, fraction, zone = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock or '00:00:00'}").replace(tzinfo=_zone(zone))
        since = moment - _ZERO
    except (ValueError, OverflowError):
        return None
    seconds = since.days * 86_400 + since.seconds
    return seconds * _SECOND + int((fraction or "").ljust(9, "0"))


def _zone(text: str | None) -> timezone:
    if text is None or text == "Z":
        return UTC
    away = timedelta(hours=int(text[1:3]), minutes=int(text[4:6]))
    return timezone(-away if text[0] == "-" else away)


def format_time(moment: int, epoch: str | None) -> int | str:
    """Return a time as answers have it: a number of *epoch*, or RFC 3339 in UTC."""
    if epoch is not None:
        return moment // EPOCHS[epoch]
    seconds, rest = divmod(moment, _SECOND)
    try:
        text = (_ZERO + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    except OverflowError:
        return moment
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{text}{fraction}Z"

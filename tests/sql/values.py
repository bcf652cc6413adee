"""Values of an Arrow table as the texts that a corpus file has, and whether two are the same."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

NULL = "NULL"
EMPTY = "(empty)"
#: stands for a blank at an end of a text, and beside another blank
BLANK = "␣"
#: two floating point numbers are the same up to this part of them
_TOLERANCE = 1e-12
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHOW: dict[str, Callable[[Any], str]] = {
    "R": repr,
    "B": lambda value: str(value).lower(),
    "X": lambda value: value.hex() or EMPTY,
    "D": str,
    "I": str,
}
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}


def letter(kind: pa.DataType) -> str:
    """Return the type letter of a column."""
    if pa.types.is_integer(kind):
        return "I"
    if pa.types.is_floating(kind):
        return "R"
    if pa.types.is_decimal(kind):
        return "D"
    if pa.types.is_boolean(kind):
        return "B"
    if pa.types.is_timestamp(kind):
        return "M"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return "X"
    return "T"


def texts(table: pa.Table, timezone: str) -> list[tuple[str, ...]]:
    """Return the rows of a table as texts."""
    columns = [_column(column, timezone) for column in table.columns]
    return list(zip(*columns, strict=True))


def same(letters: str, wanted: tuple[str, ...], found: tuple[str, ...]) -> bool:
    """Tell if a row is the expected one; numbers of R only have to be close."""
    if len(wanted) != len(found):
        return False
    return all(
        _close(w, f) if kind == "R" else w == f
        for kind, w, f in zip(letters, wanted, found, strict=True)
    )


def shown(value: Any, kind: str, timezone: str) -> str:
    """Return the text of one value of a type letter; a time is milliseconds."""
    if value is None:
        return NULL
    return _moment(value, 1000, timezone) if kind == "M" else _SHOW.get(kind, _text)(value)


def _close(wanted: str, found: str) -> bool:
    if NULL in (wanted, found):
        return wanted == found
    a = float(wanted)
    b = float(found)
    return a == b or (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=_TOLERANCE)


def _column(column: pa.ChunkedArray, timezone: str) -> list[str]:
    if pa.types.is_timestamp(column.type):
        per_second = _TICKS[column.type.unit]
        ticks = column.cast(pa.int64()).to_pylist()
        return [NULL if t is None else _moment(t, per_second, timezone) for t in ticks]
    show = _show_of(column.type)
    return [NULL if value is None else show(value) for value in column.to_pylist()]


def _show_of(kind: pa.DataType) -> Callable[[Any], str]:
    if pa.types.is_float32(kind):
        return lambda value: str(np.float32(value))
    return _SHOW.get(letter(kind), _text)


def _moment(ticks: int, per_second: int, timezone: str) -> str:
    """Return a time as `2024-01-31 09:00:00.5`; with its offset unless the zone is UTC."""
    seconds, rest = divmod(ticks, per_second)
    moment = (_EPOCH + timedelta(seconds=seconds)).astimezone(ZoneInfo(timezone))
    width = len(str(per_second)) - 1
    fraction = f".{rest:0{width}d}".rstrip("0").rstrip(".") if rest else ""
    offset = "" if timezone == "UTC" else moment.isoformat()[19:]
    year = f"{moment.year:04d}"
    return f"{year}-{moment.strftime('%m-%d %H:%M:%S')}{fraction}{offset}"


def _text(value: object) -> str:
    text = str(value)
    if not text:
        return EMPTY
    for given, shown in _ESCAPES.items():
        text = text.replace(given, shown)
    return re.sub(r"^ +| +$| {2,}", lambda blanks: BLANK * len(blanks.group()), text)

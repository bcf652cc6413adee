"""CAST in plain Python: numbers are cut and wrap, text is read as far as it is a number, texts are
cut to their length. What a type cannot have otherwise is NULL.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from tests.sql.plain_numbers import Case, Row
from tests.sql.plain_times import read_time

_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
#: columns of whole numbers, of fractions, and of text
_WHOLE = ("i", "b", "y", "u", "o")
_REAL = ("d", "f")
_TEXT = ("s", "w")


def _wrapped(value: int, kind: str) -> int:
    bits = _BITS[kind.removesuffix(" UNSIGNED")]
    low = value % 2**bits
    return low - 2**bits if "UNSIGNED" not in kind and low >= 2 ** (bits - 1) else low


def _whole(value: Any, kind: str) -> int | None:
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if kind == "BIGINT UNSIGNED" and not -(2.0**63) <= value < 2.0**64:
            return None
        if kind != "BIGINT UNSIGNED":
            value = min(max(value, -(2.0**63)), 2.0**63 - 1024)
    return _wrapped(math.trunc(value), kind)


def _leading(text: str) -> str:
    found = _NUMBER.match(text)
    return found[1] if found is not None else "0"


def _integer(kind: str) -> Callable[[Any], int | None]:
    def convert(value: Any) -> int | None:
        if not isinstance(value, str):
            return _whole(value, kind)
        number = _leading(value)
        exact = re.fullmatch(r"[+-]?\d+", number)
        return _whole(int(number) if exact else float(number), kind)

    return convert


def _double(value: Any) -> float | None:
    if isinstance(value, str):
        found = float(_leading(value))
        return found if math.isfinite(found) else None
    return float(value)


def _single(value: Any) -> float | None:
    found = _double(value)
    if found is None or not math.isfinite(found):
        return None
    try:
        single = struct.unpack("<f", struct.pack("<f", found))[0]
    except OverflowError:
        return None
    return float(single)


def _bool(value: Any) -> bool:
    if not isinstance(value, str):
        return value != 0
    return value.strip().lower() == "true" or float(_leading(value)) != 0


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, float):
        return str(value)
    if not math.isfinite(value):
        return None
    if abs(value) < 2**53:
        return f"{value:.6f}"
    return f"{Decimal(repr(value)):f}".split(".")[0] + ".000000"


def _bytes_cut(length: int) -> Callable[[Any], str | None]:
    def convert(value: Any) -> str | None:
        text = _text(value)
        return None if text is None else text.encode()[:length].decode(errors="ignore")

    return convert


def _letters_cut(length: int) -> Callable[[Any], str | None]:
    def convert(value: Any) -> str | None:
        text = _text(value)
        return None if text is None else text[:length]

    return convert


def _decimal(value: int) -> Decimal | None:
    return Decimal(value) if abs(value) < 10**17 else None


def _time(text: str, zone: str) -> int | None:
    return int(text) if re.fullmatch(r"\s*\d+\s*", text) else read_time(text, zone)


def _cast(column: str, kind: str, convert: Callable[[Any], Any]) -> Case:
    def value(row: Row, _: str) -> Any:
        return None if row[column] is None else convert(row[column])

    return f"CAST({column} AS {kind})", value


def _cast_to_time(column: str) -> Case:
    def value(row: Row, zone: str) -> Any:
        return None if row[column] is None else _time(row[column], zone)

    return f"CAST({column} AS TIMESTAMP)", value


_INTEGERS = [*_BITS, *(f"{name} UNSIGNED" for name in _BITS)]
CASTS: list[Case] = [
    *(
        _cast(column, kind, _integer(kind))
        for column in (*_WHOLE, *_REAL, *_TEXT, "ts")
        for kind in _INTEGERS
    ),
    *(_cast(column, "DOUBLE", _double) for column in (*_WHOLE, *_REAL, *_TEXT, "ts")),
    *(_cast(column, "FLOAT", _single) for column in (*_WHOLE, "d", *_TEXT, "ts")),
    _cast("f", "FLOAT", float),
    *(_cast(column, "BOOL", _bool) for column in (*_WHOLE, *_REAL, *_TEXT, "ts")),
    *(_cast(column, "DECIMAL(20,3)", _decimal) for column in _WHOLE),
    *(
        _cast(column, f"VARCHAR({length})", _bytes_cut(length))
        for column in (*_WHOLE, *_REAL, *_TEXT, "ts")
        for length in (3, 60)
    ),
    *(
        _cast(column, f"NCHAR({length})", _letters_cut(length))
        for column in (*_WHOLE, "d", *_TEXT)
        for length in (3, 200)
    ),
    *(_cast(column, "VARBINARY(4)", lambda text: text.encode()[:4]) for column in _TEXT),
    *(_cast(column, "TIMESTAMP", int) for column in ("i", "y", "o", "ts")),
    _cast_to_time("s"),
]
#: a text is a time in the session's zone
TIME_CASTS: list[Case] = [_cast_to_time("w")]

"""Columns of an answer as PostgreSQL writes values: as text, or in its binary form.

Times have microseconds there; what a column of nanoseconds has beyond them is cut off.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from gateway.postgres.pg_types import (
    ARRAY_TYPES,
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    NUMERIC,
    TEXT,
    TIMESTAMPTZ,
    PgType,
)
from penstock.errors import SqlSemanticError

#: values of a column, as they are sent
Cells = list[bytes | None]
#: 2000-01-01, where PostgreSQL's binary times begin, in microseconds since 1970
EPOCH_US = 946_684_800_000_000
_TIME = "%Y-%m-%d %H:%M:%S%.6f%:z"
_NUMERIC_BASE = 10_000
_ARRAY_OIDS = frozenset(kind.oid for kind in ARRAY_TYPES)


def cells(column: pa.ChunkedArray, kind: PgType, form: int, timezone: str) -> Cells:
    """Return the values of a column.

    Args:
        column: of an answer.
        kind: what it was described as.
        form: 0 for text, 1 for binary.
        timezone: of times in text.

    Raises:
        SqlSemanticError: it has no binary form here.
    """
    if form and kind != TEXT:
        return _binary(column, kind)
    texts = _texts(column, kind, timezone)
    return [None if text is None else text.encode() for text in texts]


# ---------------------------------------------------------------- text


def _texts(column: pa.ChunkedArray, kind: PgType, timezone: str) -> Sequence[str | None]:
    arrow = column.type
    if pa.types.is_timestamp(arrow):
        return _times(column, timezone)
    if pa.types.is_floating(arrow):
        return _map(_shown_float(arrow), column)
    write = _WRITERS.get(kind.oid)
    if write is None and kind.oid in _ARRAY_OIDS:
        write = _array_text
    return _map(write or _plain_text, column)


def _map(write: Callable[[Any], str], column: pa.ChunkedArray) -> list[str | None]:
    return [None if value is None else write(value) for value in column.to_pylist()]


def _times(column: pa.ChunkedArray, timezone: str) -> list[str | None]:
    """Return times as PostgreSQL writes them: `2026-03-01 09:00:00.5+00`."""
    zoned = column.cast(pa.timestamp("us", "UTC"), safe=False)
    series = pl.Series(values=zoned).dt.convert_time_zone(timezone)
    shown = series.dt.strftime(_TIME)
    shown = shown.str.replace(r"\.?0+([+-]\d\d:\d\d)$", "$1").str.replace(":00$", "")
    return list(shown.to_list())


def _shown_float(kind: pa.DataType) -> Callable[[float], str]:
    """Return what writes the shortest text that is the number again."""
    if pa.types.is_float64(kind):
        return lambda value: _float_text(repr(value))
    return lambda value: _float_text(str(np.float32(value)))


def _float_text(text: str) -> str:
    known = {"nan": "NaN", "NaN": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(text)
    return known or text.removesuffix(".0")


def _bool_text(value: Any) -> str:
    return "t" if value else "f"


def _bytes_text(value: Any) -> str:
    return "\\x" + bytes(value).hex()


def _numeric_text(value: Any) -> str:
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _plain_text(value: Any) -> str:
    text = value if isinstance(value, str) else str(value)
    # a text with a zero in it ends there for who reads it in C
    return text.replace("\0", "")


def _array_text(values: Any) -> str:
    return "{" + ",".join(_element(value) for value in values) + "}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return _bool_text(value)
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return str(value)


_WRITERS: dict[int, Callable[[Any], str]] = {
    BOOL.oid: _bool_text,
    BYTEA.oid: _bytes_text,
    NUMERIC.oid: _numeric_text,
    DATE.oid: str,
    INT2.oid: str,
    INT4.oid: str,
    INT8.oid: str,
}


# ---------------------------------------------------------------- binary


def _binary(column: pa.ChunkedArray, kind: PgType) -> Cells:
    write = _BINARY.get(kind.oid)
    if write is None:
        raise SqlSemanticError(
            f"there is no binary form of {kind.name} here",
            code="E_UNSUPPORTED_QUERY",
            hint="ask for the column as text",
        )
    if kind == TIMESTAMPTZ and pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", "UTC"), safe=False).cast(pa.int64())
    try:
        return [None if value is None else write(value) for value in column.to_pylist()]
    except (struct.error, AttributeError, TypeError) as wrong:
        raise SqlSemanticError(
            f"a value does not fit the type {kind.name} that was described",
            code="E_UNSUPPORTED_QUERY",
            detail=type(wrong).__name__,
            hint="describe the statement again",
        ) from None


def _packed(layout: str) -> Callable[[Any], bytes]:
    return struct.Struct(layout).pack


def _numeric(value: Any) -> bytes:
    """Return a number as groups of four decimal digits."""
    number = Decimal(value)
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    whole = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
    scale = max(-exponent, 0)
    pad = -scale % 4
    whole *= 10**pad
    weight = -(scale + pad) // 4
    groups: list[int] = []
    while whole:
        whole, group = divmod(whole, _NUMERIC_BASE)
        groups.append(group)
    weight += len(groups) - 1
    groups.reverse()
    while groups and not groups[-1]:
        groups.pop()
    head = struct.pack("!hhHh", len(groups), weight if groups else 0, 0x4000 if sign else 0, scale)
    return head + struct.pack(f"!{len(groups)}h", *groups)


def _days(value: date) -> bytes:
    return struct.pack("!i", value.toordinal() - date(2000, 1, 1).toordinal())


_BINARY: dict[int, Callable[[Any], bytes]] = {
    BOOL.oid: _packed("!?"),
    INT2.oid: _packed("!h"),
    INT4.oid: _packed("!i"),
    INT8.oid: _packed("!q"),
    FLOAT4.oid: _packed("!f"),
    FLOAT8.oid: _packed("!d"),
    TIMESTAMPTZ.oid: lambda ticks: struct.pack("!q", ticks - EPOCH_US),
    DATE.oid: _days,
    BYTEA.oid: bytes,
    NUMERIC.oid: _numeric,
}

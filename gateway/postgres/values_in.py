"""Values that clients of PostgreSQL's protocol bind, as the parameters that our statements take."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from gateway.postgres.frontend import PgBind, to_text
from gateway.postgres.pg_types import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    NUMERIC,
    TIMESTAMPTZ,
)
from penstock.errors import SqlSemanticError
from penstock.rows.parameters import Moment

_OID = 26
_TIMESTAMP = 1114
_TEXTS = (0, 18, 19, 25, 114, 705, 1042, 1043, 3802)
_TRUE = ("t", "true", "1", "y", "yes", "on")
_FALSE = ("f", "false", "0", "n", "no", "off")
_SIGNS = {0: "", 0x4000: "-"}


def bound_values(message: PgBind, oids: Sequence[int]) -> list[Any]:
    """Return the values of *message*, whose types are *oids*.

    Raises:
        SqlSemanticError: there are too many or too few, or one cannot be read.
        SchemaError: a text is no UTF-8.
    """
    given = message.values
    if len(given) != len(oids):
        raise SqlSemanticError(
            f"the statement takes {len(oids)} parameters, {len(given)} are bound",
            code="E_PARAMETER",
        )
    forms = message.formats
    if len(forms) not in (0, 1, len(given)):
        raise SqlSemanticError("there is not one format for each parameter", code="E_PARAMETER")
    each = forms * len(given) if len(forms) == 1 else forms or (0,) * len(given)
    return [
        None if value is None else _read(number, value, oid, form)
        for number, (value, oid, form) in enumerate(zip(given, oids, each, strict=True), 1)
    ]


def _read(number: int, value: bytes, oid: int, form: int) -> Any:
    readers = _FROM_BINARY if form else _FROM_TEXT
    read = readers.get(oid)
    if read is None and (not form or oid in _TEXTS):
        return to_text(value)
    if read is None:
        raise SqlSemanticError(
            f"parameter ${number} is of the type with the oid {oid}, whose binary form is not read",
            code="E_PARAMETER",
            hint="send it as text",
        )
    try:
        return read(value)
    except (ValueError, InvalidOperation, struct.error, OverflowError):
        raise SqlSemanticError(
            f"the value of parameter ${number} is none of its type", code="E_PARAMETER"
        ) from None


def _text_bool(value: bytes) -> bool:
    word = value.decode().strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(word)


def _text_bytes(value: bytes) -> bytes:
    if not value.startswith(b"\\x"):
        return value
    return bytes.fromhex(value[2:].decode())


def _unpacked(layout: str) -> Callable[[bytes], Any]:
    reader = struct.Struct(layout)
    return lambda value: reader.unpack(value)[0]


def _binary_time(value: bytes) -> Moment:
    (ticks,) = struct.unpack("!q", value)
    return Moment((datetime(2000, 1, 1, tzinfo=UTC) + timedelta(microseconds=ticks)).isoformat())


def _binary_local_time(value: bytes) -> Moment:
    return Moment(_binary_time(value).text.removesuffix("+00:00"))


def _binary_day(value: bytes) -> Moment:
    (days,) = struct.unpack("!i", value)
    return Moment((date(2000, 1, 1) + timedelta(days=days)).isoformat())


def _binary_numeric(value: bytes) -> Decimal:
    """Return the number that groups of four decimal digits are."""
    count, weight, sign, scale = struct.unpack("!HhHH", value[:8])
    groups = struct.unpack(f"!{count}H", value[8:])
    if sign not in _SIGNS or any(group > 9999 for group in groups):
        raise ValueError("it is no finite number")
    digits = "".join(f"{group:04d}" for group in groups) or "0"
    exponent = (weight + 1 - count) * 4 if count else 0
    number = Decimal(f"{_SIGNS[sign]}{digits}e{exponent}")
    return round(number, scale) if exponent < 0 else number


def _text_moment(value: bytes) -> Moment:
    return Moment(value.decode())


def _integer(value: bytes) -> int:
    return int(value.decode())


def _number(value: bytes) -> float:
    return float(value.decode())


def _decimal(value: bytes) -> Decimal:
    return Decimal(value.decode())


_FROM_TEXT: dict[int, Callable[[bytes], Any]] = {
    BOOL.oid: _text_bool,
    BYTEA.oid: _text_bytes,
    INT2.oid: _integer,
    INT4.oid: _integer,
    INT8.oid: _integer,
    _OID: _integer,
    FLOAT4.oid: _number,
    FLOAT8.oid: _number,
    NUMERIC.oid: _decimal,
    TIMESTAMPTZ.oid: _text_moment,
    _TIMESTAMP: _text_moment,
    DATE.oid: _text_moment,
}
_FROM_BINARY: dict[int, Callable[[bytes], Any]] = {
    BOOL.oid: _unpacked("!?"),
    BYTEA.oid: bytes,
    INT2.oid: _unpacked("!h"),
    INT4.oid: _unpacked("!i"),
    INT8.oid: _unpacked("!q"),
    _OID: _unpacked("!I"),
    FLOAT4.oid: _unpacked("!f"),
    FLOAT8.oid: _unpacked("!d"),
    NUMERIC.oid: _binary_numeric,
    TIMESTAMPTZ.oid: _binary_time,
    _TIMESTAMP: _binary_local_time,
    DATE.oid: _binary_day,
}

"""Types of Kafka Connect and Debezium: what the schema of a message calls each field, and what its
values mean in a column of ours.

The schema is the one beside a JSON message's payload, or an Avro schema with Connect's names in it.
Without one a value is taken for what it looks like. Nothing is rounded, and no text of a stranger
becomes a number of more than a hundred digits.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from penstock.foreign.avro import Nanoseconds, decimal_of
from penstock.sql.plan import TICKS_PER_SECOND, Column, Precision

_DEBEZIUM = "io.debezium.time."
_CONNECT = "org.apache.kafka.connect.data."
_NANOS = TICKS_PER_SECOND["ns"]
_DAY_S = 86_400
#: times since 1970: nanoseconds of one
_MOMENTS = {
    _DEBEZIUM + "Timestamp": 10**6,
    _DEBEZIUM + "MicroTimestamp": 10**3,
    _DEBEZIUM + "NanoTimestamp": 1,
    _CONNECT + "Timestamp": 10**6,
}
_DAYS = (_DEBEZIUM + "Date", _CONNECT + "Date")
#: times since midnight: nanoseconds of one
_OF_DAY = {
    _DEBEZIUM + "Time": 10**6,
    _DEBEZIUM + "MicroTime": 10**3,
    _DEBEZIUM + "NanoTime": 1,
    _CONNECT + "Time": 10**6,
}
#: numbers that are no time since 1970
_NO_MOMENTS = (*_OF_DAY, _DEBEZIUM + "Year", _DEBEZIUM + "MicroDuration")
_DECIMAL = _CONNECT + "Decimal"
_VARIABLE_DECIMAL = "io.debezium.data.VariableScaleDecimal"
_MOST_DIGITS = 100
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:?\d\d)?")
_EXACT = decimal.Context(prec=2 * _MOST_DIGITS, traps=[decimal.Inexact, decimal.InvalidOperation])


@dataclass(frozen=True)
class ConnectType:
    """The schema's type of a field: Connect's type (`bytes`), its name (`io.debezium.time.Date`),
    and the scale of a decimal. Empty without a schema.
    """

    base: str = ""
    name: str = ""
    scale: int = 0


UNKNOWN = ConnectType()
#: fields of a record by name
ConnectTypes = Mapping[str, ConnectType]


def kinds_of_json(struct: Any) -> ConnectTypes:
    """Return the types of the fields of a struct in a JSON schema. Raises ValueError."""
    found: dict[str, ConnectType] = {}
    for field in _fields(struct):
        parameters = field.get("parameters")
        scale = parameters.get("scale", 0) if isinstance(parameters, dict) else 0
        found[str(field.get("field"))] = ConnectType(
            str(field.get("type", "")), str(field.get("name") or ""), _scale(scale)
        )
    return found


def struct_of_json(schema: Any, name: str) -> Any:
    """Return the struct in field *name* of the struct *schema*, if any. Raises ValueError."""
    return next((f for f in _fields(schema) if f.get("field") == name), None)


def _fields(struct: Any) -> list[dict[str, Any]]:
    fields = struct.get("fields") if isinstance(struct, dict) else None
    if not isinstance(fields, list) or not all(isinstance(f, dict) for f in fields):
        raise ValueError("the schema beside the payload is none of a struct")
    return fields


def kinds_of_avro(schema: Any, path: tuple[str, ...] = ()) -> ConnectTypes:
    """Return the types of the fields of the record at *path* inside a parsed Avro schema; none
    where there is no record.
    """
    named: dict[str, Any] = {}
    _collect(schema, named)
    record = _without_null(schema, named)
    for step in path:
        if not _is_record(record):
            return {}
        types = {f["name"]: f["type"] for f in record["fields"]}
        record = _without_null(types.get(step, "null"), named)
    if not _is_record(record):
        return {}
    return {f["name"]: _avro_kind(_without_null(f["type"], named)) for f in record["fields"]}


def _is_record(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") in ("record", "error")


def _avro_kind(schema: Any) -> ConnectType:
    if isinstance(schema, dict):
        return ConnectType(str(schema.get("type", "")), str(schema.get("connect.name", "")))
    return ConnectType(schema) if isinstance(schema, str) else UNKNOWN


def _collect(schema: Any, named: dict[str, Any]) -> None:
    """Note the named types inside *schema*; whoever parsed it has bounded its depth."""
    if isinstance(schema, list):
        for branch in schema:
            _collect(branch, named)
    elif isinstance(schema, dict):
        if "name" in schema:
            named[schema["name"]] = schema
        for field in schema.get("fields", ()):
            _collect(field["type"], named)
        for inner in ("type", "items", "values"):
            if not isinstance(schema.get(inner, ""), str):
                _collect(schema[inner], named)


def _without_null(schema: Any, named: Mapping[str, Any]) -> Any:
    """Return the only type of a union besides null; *schema* itself where there are several."""
    if isinstance(schema, list):
        branches = [s for s in schema if s != "null"]
        schema = branches[0] if len(branches) == 1 else schema
    return named.get(schema, schema) if isinstance(schema, str) else schema


# ---------------------------------------------------------------- values


def fit(value: Any, kind: ConnectType, column: Column, precision: Precision) -> Any:
    """Return *value* as *column* holds it; times as ticks. Raises ValueError or OverflowError if
    it does not fit.
    """
    if value is None:
        return None
    value = _plain(value, kind)
    if column.type.kind == "TIMESTAMP":
        return _ticks(value, kind, TICKS_PER_SECOND[precision])
    if column.type.kind == "DECIMAL":
        return _decimal(value, column.type.scale)
    if column.type.integer:
        return _integer(value)
    return _BY_KIND[column.type.kind](value, kind)


def _plain(value: Any, kind: ConnectType) -> Any:
    """Return bytes and decimals for the text or object that JSON has in their place."""
    if kind.name == _VARIABLE_DECIMAL and isinstance(value, dict):
        return decimal_of(_bytes(value.get("value")), _scale(value.get("scale")))
    if kind.base == "bytes" and isinstance(value, str):
        value = _bytes(value)
    if kind.name == _DECIMAL and isinstance(value, bytes):
        return decimal_of(value, kind.scale)
    return value


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise ValueError("no base64")
    return base64.b64decode(value, validate=True)


def _scale(value: Any) -> int:
    scale = int(str(value)[:9])
    if abs(scale) > _MOST_DIGITS:
        raise ValueError(f"a scale of {scale}")
    return scale


def _ticks(value: Any, kind: ConnectType, per_second: int) -> int:
    if isinstance(value, bool) or kind.name in _NO_MOMENTS:
        raise ValueError("no time since 1970")
    if isinstance(value, Nanoseconds):
        return value * per_second // _NANOS
    if isinstance(value, int):
        return _ticks_of_number(value, kind, per_second)
    if isinstance(value, dt.datetime):
        passed = (value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)) - _EPOCH
        seconds = passed.days * _DAY_S + passed.seconds
        return seconds * per_second + passed.microseconds * per_second // 10**6
    if isinstance(value, dt.date):
        return (value - _EPOCH.date()).days * _DAY_S * per_second
    if isinstance(value, str):
        return _ticks_of_text(value, per_second)
    raise ValueError("no time")


def _ticks_of_number(value: int, kind: ConnectType, per_second: int) -> int:
    """Convert days, or the unit that the schema names, to ticks; without one it is ticks."""
    if kind.name in _DAYS:
        return value * _DAY_S * per_second
    unit = _MOMENTS.get(kind.name)
    return value if unit is None else value * unit * per_second // _NANOS


def _ticks_of_text(text: str, per_second: int) -> int:
    """Return the ticks of an ISO 8601 text, in UTC unless it names a zone."""
    found = _ISO.fullmatch(text)
    if found is None:
        raise ValueError("no ISO 8601 time")
    date, time, fraction, zone = found.groups()
    whole = dt.datetime.fromisoformat(f"{date}T{time or '00:00:00'}{zone or '+00:00'}") - _EPOCH
    parts = int((fraction or "").ljust(9, "0"))
    return (whole.days * _DAY_S + whole.seconds) * per_second + parts * per_second // _NANOS


def _number(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise ValueError("no number")
    if isinstance(value, str) and len(value) > _MOST_DIGITS:
        raise ValueError("a number of too many digits")
    try:
        number = Decimal(repr(value) if isinstance(value, float) else value)
    except decimal.InvalidOperation:
        raise ValueError("no number") from None
    if not number.is_finite() or (number and abs(number.adjusted()) > _MOST_DIGITS):
        raise ValueError("no number of this size")
    return number


def _decimal(value: Any, scale: int) -> Decimal:
    try:
        return _number(value).quantize(Decimal(1).scaleb(-scale), context=_EXACT)
    except (decimal.Inexact, decimal.InvalidOperation):
        raise ValueError(f"it has more than {scale} digits behind the point") from None


def _integer(value: Any) -> int:
    if isinstance(value, int):
        return int(value)
    if isinstance(value, bytes):
        raise ValueError("no number")
    if isinstance(value, dt.date | dt.time):
        raise ValueError("a time is no number: declare the column as TIMESTAMP or VARCHAR")
    return int(_decimal(value, 0))


def _double(value: Any, _: ConnectType) -> float:
    if isinstance(value, float):
        return value
    return float(_number(value))


def _bool(value: Any, _: ConnectType) -> bool:
    if value in (0, 1) and isinstance(value, int):
        return bool(value)
    raise ValueError("neither true nor false")


def _text(value: Any, kind: ConnectType) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        raise ValueError("bytes: declare the column as VARBINARY")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(_number(value), "f")
    return _text_of_number(value, kind) if isinstance(value, int) else str(value)


def _text_of_number(value: int, kind: ConnectType) -> str:
    """Return a number as text, or the time that it stands for."""
    if kind.name in _OF_DAY:
        micros = value * _OF_DAY[kind.name] // 10**3
        return (_EPOCH + dt.timedelta(microseconds=micros)).time().isoformat()
    if kind.name in _DAYS:
        return (_EPOCH + dt.timedelta(days=value)).date().isoformat()
    unit = 1 if isinstance(value, Nanoseconds) else _MOMENTS.get(kind.name)
    if unit is not None:
        micros = value * unit // 10**3
        return (_EPOCH + dt.timedelta(microseconds=micros)).isoformat()
    return str(value)


def _binary(value: Any, _: ConnectType) -> bytes:
    return _bytes(value)


_BY_KIND: Mapping[str, Callable[[Any, ConnectType], Any]] = {
    "BOOL": _bool,
    "FLOAT": _double,
    "DOUBLE": _double,
    "VARCHAR": _text,
    "NCHAR": _text,
    "JSON": _text,
    "VARBINARY": _binary,
}

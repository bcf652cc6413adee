"""Parameters of a statement, and their form in JSON: from clients to the gateway, and from there to
the store.

NULL, booleans, numbers and text are JSON's own. Each other type is an object with one key that
names it: `{"$bytes": "00ff"}`, `{"$decimal": "1.50"}`, `{"$timestamp": "2026-03-01T09:00:00Z"}`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from penstock.errors import SchemaError
from penstock.rows import python_values

#: values for `?` in order, or for `:name` by name
Parameters = Sequence[Any] | Mapping[str, Any]
DECIMAL = "$decimal"
TIMESTAMP = "$timestamp"


@dataclass(frozen=True)
class Moment:
    """A time as ISO text, with up to nine digits of a second; without a zone it is in the
    request's.
    """

    text: str


def encode(parameters: Parameters) -> list[Any] | dict[str, Any]:
    """Return *parameters* as JSON has them. Raises SchemaError: one has no such form."""
    if isinstance(parameters, Mapping):
        return {_check_name(name): _encode_one(f":{name}", v) for name, v in parameters.items()}
    if isinstance(parameters, Sequence) and not isinstance(parameters, str | bytes):
        return [_encode_one(f"number {i}", v) for i, v in enumerate(parameters, 1)]
    raise SchemaError(
        "parameters are a list or a dict",
        code="E_PARAMETER",
        detail=type(parameters).__name__,
        hint="[…] for ? in order, {…} for :name",
    )


def decode(sent: object) -> Parameters | None:
    """Return parameters from JSON; what has no type there stays as it is, to be refused where its
    place in the statement is known. Raises SchemaError: they are no list and no object.
    """
    if sent is None:
        return None
    if isinstance(sent, Mapping):
        return {name: _decode_one(value) for name, value in sent.items()}
    if isinstance(sent, list):
        return [_decode_one(value) for value in sent]
    raise SchemaError(
        '"parameters" is no list and no object',
        code="E_PARAMETER",
        hint='send "parameters": […] for ? in order, or {…} for :name',
    )


def _check_name(name: object) -> str:
    if isinstance(name, str):
        return name
    raise SchemaError(
        "names of parameters are text", code="E_PARAMETER", detail=type(name).__name__
    )


def _encode_one(which: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return _encode_float(which, value)
    if isinstance(value, bytes):
        return {python_values.BYTES: value.hex()}
    if isinstance(value, Decimal):
        return {DECIMAL: str(value)}
    if isinstance(value, Moment):
        return {TIMESTAMP: value.text}
    if isinstance(value, date):  # a datetime is one, too
        return {TIMESTAMP: value.isoformat()}
    raise SchemaError(
        f"parameter {which} is of type {type(value).__name__}, which cannot be bound",
        code="E_PARAMETER",
        hint="None, bool, int, float, Decimal, str, bytes, datetime and date can",
    )


def _encode_float(which: str, value: float) -> float | None:
    if math.isinf(value):
        raise SchemaError(f"parameter {which} is infinite", code="E_PARAMETER")
    return None if math.isnan(value) else value


def _decode_one(value: Any) -> Any:
    if not isinstance(value, dict) or len(value) != 1:
        return value
    ((kind, text),) = value.items()
    read = _TYPES.get(kind)
    if read is None or not isinstance(text, str):
        return value
    try:
        return read(text)
    except (ValueError, InvalidOperation):
        return value


_TYPES: dict[str, Callable[[str], Any]] = {
    python_values.BYTES: bytes.fromhex,
    DECIMAL: Decimal,
    TIMESTAMP: Moment,
}

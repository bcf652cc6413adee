"""Avro of strangers: a message costs time and memory in proportion to its bytes, whatever its
schema says.

A schema is measured once, when it comes. Refuses what Avro allows and no bytes pay for: arrays of
values without bytes, records that contain records many times over, types that contain themselves.
"""

from __future__ import annotations

import io
import json
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import fastavro.read
from fastavro.schema import parse_schema

from penstock.errors import SchemaError

#: values that a message may have for nothing, and per byte of an array's or map's item
_MOST_VALUES = 10_000
_VALUES_PER_BYTE = 64
#: a decimal of more digits is nobody's; to make a number of a megabyte takes minutes
_DECIMAL_BYTES = 64
_DEPTH = 32
_LARGEST_SCHEMA = 1 << 20
_VARINTS = frozenset(("int", "long", "boolean", "bytes", "string"))
_SIZES = {"null": 0, "float": 4, "double": 8} | dict.fromkeys(_VARINTS, 1)


def parse(text: Any) -> Any:
    """Parse and measure a registry's schema. Raises SchemaError."""
    try:
        if not isinstance(text, str):
            raise ValueError("it is no text")
        if len(text) > _LARGEST_SCHEMA:
            raise ValueError(f"it is longer than {_LARGEST_SCHEMA} characters")
        schema = parse_schema(json.loads(text))
        _Measure().of(schema, _DEPTH)
    except Exception:
        # fastavro has no error of its own for all of it; a registry's answer is not repeated
        raise SchemaError(
            "the registry's schema is no Avro schema", code="E_REMOTE_SCHEMA"
        ) from None
    return schema


def row_of(body: bytes, schema: Any) -> dict[str, Any]:
    """Return the record that *body* holds. Raises SchemaError."""
    try:
        row = fastavro.schemaless_reader(io.BytesIO(body), schema, None)
    except Exception as wrong:  # whatever broken bytes make of it
        raise SchemaError(
            "the message does not follow its schema", code="E_MALFORMED", detail=str(wrong)[:200]
        ) from None
    if not isinstance(row, dict):
        raise SchemaError("the message is no Avro record", code="E_MALFORMED")
    return row


class _Measure:
    """Fewest bytes of a value of each type, and the values it consists of at least."""

    def __init__(self) -> None:
        self._named: dict[str, tuple[int, int]] = {}
        self._open: set[str] = set()

    def of(self, schema: Any, depth: int) -> tuple[int, int]:
        """Return both for *schema*. Raises ValueError where no bytes would pay for its values."""
        if depth < 0:
            raise ValueError("its types are nested too deeply")
        if isinstance(schema, str):
            return self._by_name(schema)
        if isinstance(schema, list):
            # the branch that is taken may be any: its number is a byte, its values are paid for by
            # themselves
            return 1, 1 + max((self.of(s, depth - 1)[1] for s in schema), default=0)
        kind = schema["type"]
        if kind in ("record", "error"):
            return self._record(schema, depth)
        if kind == "fixed":
            return self._note(schema, (int(schema["size"]), 1))
        if kind == "enum":
            return self._note(schema, (1, 1))
        if kind in ("array", "map"):
            self._check_item(
                kind, self.of(schema["items" if kind == "array" else "values"], depth - 1)
            )
            return 1, 1
        return self.of(kind, depth - 1)

    def _by_name(self, name: str) -> tuple[int, int]:
        if name in _SIZES:
            return _SIZES[name], 1
        if name in self._open:
            raise ValueError(f"type {name} contains itself"[:100])
        return self._named[name]

    def _record(self, schema: Any, depth: int) -> tuple[int, int]:
        name = schema["name"]
        self._open.add(name)
        fields = [self.of(f["type"], depth - 1) for f in schema["fields"]]
        self._open.discard(name)
        size = sum(size for size, _ in fields)
        values = 1 + sum(values for _, values in fields)
        if values > _MOST_VALUES:
            raise ValueError(f"a record has more than {_MOST_VALUES} values")
        return self._note(schema, (size, values))

    def _note(self, schema: Any, found: tuple[int, int]) -> tuple[int, int]:
        self._named[schema["name"]] = found
        return found

    @staticmethod
    def _check_item(kind: str, item: tuple[int, int]) -> None:
        size = item[0] + (kind == "map")
        if item[1] > size * _VALUES_PER_BYTE:
            raise ValueError(f"an {kind} whose items have no bytes")


def decimal_of(data: bytes, scale: int) -> Decimal:
    """Return the number whose digits *data* holds, *scale* of them behind the point. Raises
    ValueError.
    """
    if len(data) > _DECIMAL_BYTES:
        raise ValueError(f"a decimal of {len(data)} bytes")
    number = int.from_bytes(data, "big", signed=True)
    sign, digits, _ = Decimal(number).as_tuple()
    # arithmetic would round to the digits of decimal's context
    return Decimal((sign, digits, -scale))


def _decimal(data: bytes, writer_schema: Any = None, reader_schema: Any = None) -> Decimal:
    return decimal_of(data, int((writer_schema or {}).get("scale", 0)))


class Nanoseconds(int):
    """A time since 1970, finer than a datetime."""


def _nanoseconds(data: int, writer_schema: Any = None, reader_schema: Any = None) -> Nanoseconds:
    return Nanoseconds(data)


def _uuid(data: str | bytes, writer_schema: Any = None, reader_schema: Any = None) -> str:
    """Return a UUID as text. One that was written as text stays as it was spelled."""
    return data if isinstance(data, str) else str(UUID(bytes=data))


for _kind in ("bytes-decimal", "fixed-decimal"):
    fastavro.read.LOGICAL_READERS[_kind] = _decimal
for _kind in ("string-uuid", "fixed-uuid"):
    fastavro.read.LOGICAL_READERS[_kind] = _uuid
for _kind in ("long-timestamp-nanos", "long-local-timestamp-nanos"):
    fastavro.read.LOGICAL_READERS[_kind] = _nanoseconds

"""Protobuf messages of strangers as columns, by the schema of a Confluent Schema Registry.

Only fields that have a column are read. A message inside a message is an object, google's own types
are what they stand for, and a message costs time and memory in proportion to its bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import polars as pl

from penstock.errors import SchemaError
from penstock.foreign import descriptors as d
from penstock.foreign.avro import Nanoseconds, decimal_of
from penstock.foreign.connect import UNKNOWN, fit
from penstock.foreign.descriptors import DescribedField, Descriptors, MessageType
from penstock.foreign.framing import unframe
from penstock.foreign.registry import SchemaRegistry
from penstock.foreign.unreadable import refusing
from penstock.protobuf import BYTES, FIXED32, FIXED64, VARINT, ProtobufReader, signed, zigzag
from penstock.sql.plan import Column, Precision

_NO_PROTOBUF = "the message is no protobuf of its schema"
_DEEPEST = 32
_MOST_FIELDS = 1_000_000
_MOST_INDEXES = 32
_FIXED = {
    d.DOUBLE: struct.Struct("<d"),
    d.FLOAT: struct.Struct("<f"),
    d.FIX64: struct.Struct("<Q"),
    d.FIX32: struct.Struct("<I"),
    d.SFIX32: struct.Struct("<i"),
    d.SFIX64: struct.Struct("<q"),
}
_WIRES = {
    k: FIXED64 if packer.size == 8 else FIXED32 for k, packer in _FIXED.items()
} | dict.fromkeys((d.STRING, d.BINARY, d.MESSAGE), BYTES)
#: google's wrappers: the type of the field `value` in each
_WRAPPERS = {
    "DoubleValue": d.DOUBLE,
    "FloatValue": d.FLOAT,
    "Int64Value": d.INT64,
    "UInt64Value": d.UINT64,
    "Int32Value": d.INT32,
    "UInt32Value": d.UINT32,
    "BoolValue": d.BOOL,
    "StringValue": d.STRING,
    "BytesValue": d.BINARY,
}
_GOOGLE = "google.protobuf."
_TIMESTAMP = _GOOGLE + "Timestamp"
_DECIMAL = "confluent.type.Decimal"


def _type(name: str, *fields: tuple[str, int]) -> MessageType:
    made = {i + 1: DescribedField(n, k, "", False, False) for i, (n, k) in enumerate(fields)}
    return MessageType(name, made, (), is_map_entry=False)


#: types that registries leave out, since every compiler has them
_KNOWN = {
    _GOOGLE + name: _type(_GOOGLE + name, ("value", kind)) for name, kind in _WRAPPERS.items()
} | {
    _TIMESTAMP: _type(_TIMESTAMP, ("seconds", d.INT64), ("nanos", d.INT32)),
    _DECIMAL: _type(_DECIMAL, ("value", d.BINARY), ("precision", d.UINT32), ("scale", d.INT32)),
}


class ProtobufMessages:
    """Decodes messages of one topic.

    Args:
        columns: the table's, its time first.
    """

    def __init__(
        self, columns: Sequence[Column], precision: Precision, registry: SchemaRegistry
    ) -> None:
        self._columns = tuple(columns)
        self._precision = precision
        self._registry = registry
        self._wanted = {c.name for c in columns}
        #: those that have an enum's number
        self._numbers = {c.name for c in columns if c.type.numeric}

    def decode(self, values: Sequence[bytes]) -> pl.DataFrame:
        """A row for each message; times are ticks, fields that a message has not are NULL, other
        fields are left out.

        Raises:
            SchemaError: one of them is no such message.
            RemoteError: its schema cannot be had now.
        """
        with refusing(_NO_PROTOBUF):
            rows = [self._row(value) for value in values]
        return pl.DataFrame([self._column(c, [r.get(c.name) for r in rows]) for c in self._columns])

    def _row(self, value: bytes) -> Mapping[str, Any]:
        schema_id, body = unframe(value)
        found = self._registry.descriptors(schema_id)
        message = _Message(body, found)
        path, start = message.indexes()
        kind = found.at(path)
        return message.top(kind, start, self._wanted, self._numbers)

    def _column(self, column: Column, values: Sequence[Any]) -> pl.Series:
        try:
            fitting = [fit(v, UNKNOWN, column, self._precision) for v in values]
            return pl.Series(column.name, fitting, column.type.polars(), strict=True)
        except (ValueError, OverflowError, TypeError, pl.exceptions.PolarsError) as wrong:
            raise SchemaError(
                f"{column.name} is no {column.type}", code="E_MALFORMED", detail=str(wrong)[:200]
            ) from None


class _Message:
    """One message's bytes."""

    def __init__(self, body: bytes, types: Descriptors) -> None:
        self._body = body
        self._types = types
        self._reader = ProtobufReader(body, _MOST_FIELDS, _broken, _broken)

    def indexes(self) -> tuple[list[int], int]:
        """Return the indexes that lead to the message's type in the schema, and where it begins."""
        end = len(self._body)
        count, at = self._zigzag(0, end)
        if count == 0:
            return [0], at
        if not 0 < count <= _MOST_INDEXES:
            raise _broken("the indexes before the message are none")
        path = []
        for _ in range(count):
            index, at = self._zigzag(at, end)
            path.append(index)
        return path, at

    def top(
        self, kind: MessageType, start: int, wanted: AbstractSet[str], numbers: AbstractSet[str]
    ) -> dict[str, Any]:
        """Return the *wanted* fields of the message; enums in *numbers* as their number."""
        found = self._fields(kind, start, len(self._body), 0, wanted, numbers)
        for field in kind.fields.values():
            if field.name in wanted and field.name not in found and not field.present:
                found[field.name] = self._default(field, field.name in numbers)
        return found

    def _or_default(self, values: Mapping[str, Any], field: DescribedField) -> Any:
        absent = None if field.present else self._default(field, as_number=False)
        return values.get(field.name, absent)

    def _default(self, field: DescribedField, as_number: bool) -> Any:
        """Return the value that proto3 leaves out of a message."""
        if field.repeated:
            return []
        if field.kind == d.ENUM:
            return 0 if as_number else self._symbol(field, 0)
        return {d.STRING: "", d.BINARY: b"", d.BOOL: False}.get(field.kind, 0)

    def _fields(
        self,
        kind: MessageType,
        start: int,
        end: int,
        depth: int,
        wanted: AbstractSet[str] | None = None,
        numbers: AbstractSet[str] = frozenset(),
    ) -> dict[str, Any]:
        if depth > _DEEPEST:
            raise _broken("it is nested too deeply")
        found: dict[str, Any] = {}
        for number, wire, begin, stop in self._reader.fields(start, end):
            field = kind.fields.get(number)
            if field is None or (wanted is not None and field.name not in wanted):
                continue
            as_number = field.name in numbers
            if not field.repeated:
                found[field.name] = self._value(field, wire, begin, stop, depth, as_number)
            elif wire == BYTES and _WIRES.get(field.kind, VARINT) != BYTES:
                many = found.setdefault(field.name, [])
                many += self._packed(field, begin, stop, depth, as_number)
            else:
                self._add(found, field, self._value(field, wire, begin, stop, depth, as_number))
        return found

    def _add(self, found: dict[str, Any], field: DescribedField, value: Any) -> None:
        """Add a value to a repeated field; entries of a map make one object."""
        entry = self._types.messages.get(field.kind_name)
        if entry is not None and entry.is_map_entry:
            key, held = (self._or_default(value, entry.fields[n]) for n in (1, 2))
            found.setdefault(field.name, {})[str(key)] = held
        else:
            found.setdefault(field.name, []).append(value)

    def _packed(
        self, field: DescribedField, at: int, end: int, depth: int, as_number: bool
    ) -> list[Any]:
        values = []
        wire = _WIRES.get(field.kind, VARINT)
        while at < end:
            if wire == VARINT:
                number, at = self._reader.varint(at, end)
                values.append(self._value(field, wire, number, at, depth, as_number))
                continue
            stop = at + (8 if wire == FIXED64 else 4)
            if stop > end:
                raise _broken("a field is longer than its message")
            values.append(self._value(field, wire, at, stop, depth, as_number))
            at = stop
        return values

    def _value(
        self, field: DescribedField, wire: int, start: int, end: int, depth: int, as_number: bool
    ) -> Any:
        """Return the value of a field; *start* is the number itself where *wire* is VARINT."""
        kind = field.kind
        if wire != _WIRES.get(kind, VARINT):
            raise _broken(f"a field has wire type {wire}, which its schema does not say")
        if kind in _FIXED:
            return _FIXED[kind].unpack_from(self._body, start)[0]
        if kind == d.STRING:
            return self._reader.text(start, end)
        if kind == d.BINARY:
            return self._body[start:end]
        if kind == d.MESSAGE:
            return self._inner(field.kind_name, start, end, depth)
        if kind == d.ENUM and not as_number:
            return self._symbol(field, signed(start))
        return _of_varint(kind, start)

    def _inner(self, name: str, start: int, end: int, depth: int) -> Any:
        kind = self._types.messages.get(name) or _KNOWN.get(name)
        if kind is None:
            raise _broken("the schema does not have a message that is inside it")
        found = self._fields(kind, start, end, depth + 1)
        if name == _TIMESTAMP:
            return Nanoseconds(found.get("seconds", 0) * 10**9 + found.get("nanos", 0))
        if name == _DECIMAL:
            scale = found.get("scale", 0)
            if abs(scale) > 100:
                raise _broken(f"a scale of {scale}")
            return decimal_of(found.get("value", b""), scale)
        if name in _KNOWN:
            return self._or_default(found, kind.fields[1])
        return found

    def _symbol(self, field: DescribedField, number: int) -> str:
        return self._types.enums.get(field.kind_name, {}).get(number, str(number))

    def _zigzag(self, at: int, end: int) -> tuple[int, int]:
        number, at = self._reader.varint(at, end)
        return zigzag(number), at


def _of_varint(kind: int, number: int) -> int | bool:
    """Return the value of a field of *kind* that is written as the VARINT *number*."""
    if kind == d.BOOL:
        return bool(number)
    if kind in (d.SINT32, d.SINT64):
        return zigzag(number)
    return number if kind in (d.UINT32, d.UINT64) else signed(number)


def _broken(why: str) -> SchemaError:
    return SchemaError(_NO_PROTOBUF, code="E_MALFORMED", detail=why)

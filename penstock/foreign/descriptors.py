"""Descriptors of protobuf: what a registry's files say of messages, their fields and enums.

Owns the numbers of descriptor.proto. Options, services and extensions are stepped over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from penstock.errors import SchemaError
from penstock.protobuf import BYTES, VARINT, ProtobufReader, signed

#: types of fields, as descriptor.proto numbers them
DOUBLE, FLOAT, INT64, UINT64, INT32, FIX64, FIX32, BOOL, STRING = range(1, 10)
MESSAGE, BINARY, UINT32, ENUM, SFIX32, SFIX64, SINT32, SINT64 = range(11, 19)
_REPEATED = 3
_DEEPEST = 32
_MOST_FIELDS = 1_000_000


@dataclass(frozen=True)
class DescribedField:
    """`present`: a message says whether it has the field. `kind_name` is the full name of its
    message or enum.
    """

    name: str
    kind: int
    kind_name: str
    repeated: bool
    present: bool


@dataclass(frozen=True)
class MessageType:
    """`nested` are the full names of the messages inside it, in their order."""

    name: str
    fields: dict[int, DescribedField]
    nested: tuple[str, ...]
    is_map_entry: bool


@dataclass
class Descriptors:
    """Messages and enums by their full names; `top` are the messages of the last file that was
    read, in their order.
    """

    messages: dict[str, MessageType] = field(default_factory=dict)
    enums: dict[str, dict[int, str]] = field(default_factory=dict)
    top: tuple[str, ...] = ()

    def add(self, file: bytes) -> None:
        """Read a serialized FileDescriptorProto. Raises SchemaError."""
        _File(file, self).read()

    def at(self, path: Sequence[int]) -> MessageType:
        """The message at the indexes that stand before a message's bytes. Raises SchemaError."""
        names = self.top
        found = None
        for index in path:
            if not 0 <= index < len(names):
                raise SchemaError(
                    "the schema has no message of this index", code="E_MALFORMED", detail=str(path)
                )
            found = self.messages[names[index]]
            names = found.nested
        assert found is not None
        return found


class _File:
    def __init__(self, data: bytes, into: Descriptors) -> None:
        self._reader = ProtobufReader(data, _MOST_FIELDS, _broken, _broken)
        self._into = into
        self._end = len(data)
        self._keeps_absent = True

    def read(self) -> None:
        package = ""
        messages = []
        enums = []
        for number, wire, start, end in self._reader.fields(0, self._end):
            if wire != BYTES:
                continue
            if number == 2:
                package = self._reader.text(start, end)
            elif number == 4:
                messages.append((start, end))
            elif number == 5:
                enums.append((start, end))
            elif number == 12:
                self._keeps_absent = self._reader.text(start, end) != "proto3"
        for place in enums:
            self._enum(package, *place)
        self._into.top = tuple(self._message(package, *place, 0) for place in messages)

    def _message(self, scope: str, start: int, end: int, depth: int) -> str:
        """Note a message and those inside it; return its full name."""
        if depth > _DEEPEST:
            raise _broken("messages are nested too deeply")
        name = _inside(scope, self._text(1, start, end))
        fields = dict(self._field(*place) for place in self._parts(2, start, end))
        nested = tuple(
            self._message(name, *place, depth + 1) for place in self._parts(3, start, end)
        )
        for place in self._parts(4, start, end):
            self._enum(name, *place)
        options = next(self._parts(7, start, end), None)
        entry = options is not None and self._number(7, *options) == 1
        self._into.messages[name] = MessageType(name, fields, nested, entry)
        return name

    def _field(self, start: int, end: int) -> tuple[int, DescribedField]:
        kind = self._number(5, start, end) or 0
        in_oneof = self._number(9, start, end) is not None
        found = DescribedField(
            self._text(1, start, end),
            kind,
            self._text(6, start, end).lstrip("."),
            self._number(4, start, end) == _REPEATED,
            self._keeps_absent or in_oneof or kind == MESSAGE,
        )
        return self._number(3, start, end) or 0, found

    def _enum(self, scope: str, start: int, end: int) -> None:
        name = _inside(scope, self._text(1, start, end))
        self._into.enums[name] = {
            signed(self._number(2, *place) or 0): self._text(1, *place)
            for place in self._parts(2, start, end)
        }

    def _parts(self, wanted: int, start: int, end: int) -> Iterator[tuple[int, int]]:
        for number, wire, begin, stop in self._reader.fields(start, end):
            if number == wanted and wire == BYTES:
                yield begin, stop

    def _text(self, wanted: int, start: int, end: int) -> str:
        place = next(self._parts(wanted, start, end), None)
        return "" if place is None else self._reader.text(*place)

    def _number(self, wanted: int, start: int, end: int) -> int | None:
        for number, wire, value, _ in self._reader.fields(start, end):
            if number == wanted and wire == VARINT:
                return value
        return None


def _inside(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name


def _broken(why: str) -> SchemaError:
    return SchemaError(
        "the registry's schema is no descriptor of protobuf",
        code="E_REMOTE_SCHEMA",
        detail=why,
    )

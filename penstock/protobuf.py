"""Fields of protobuf messages, one after the other; what they mean is for their readers to know.

No library of the mesh reads protobuf, and its messages need a page. Nothing is allocated by what a
body says without a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from penstock.errors import SchemaError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10
_SIGN = 1 << 63
#: number, wire type, and its value: a whole number, or where its bytes begin and end
Field: TypeAlias = tuple[int, int, int, int]
#: makes the error of a wire from what is wrong
Refuse: TypeAlias = Callable[[str], SchemaError]


class ProtobufReader:
    """Reads one body."""

    def __init__(self, data: bytes, most_fields: int, broken: Refuse, too_large: Refuse) -> None:
        self.data = data
        self._most_fields = most_fields
        self._fields_left = most_fields
        self._broken = broken
        self._too_large = too_large

    def fields(self, at: int, end: int) -> Iterator[Field]:
        """Yield the fields of the message between *at* and *end*. Raises SchemaError."""
        while at < end:
            self._fields_left -= 1
            if self._fields_left < 0:
                raise self._too_large(f"it has more than {self._most_fields} fields")
            key, at = self.varint(at, end)
            number, wire = key >> 3, key & 7
            if wire == VARINT:
                value, at = self.varint(at, end)
                yield number, wire, value, at
                continue
            size, at = self._size(wire, at, end)
            yield number, wire, at, at + size
            at += size

    def varint(self, at: int, end: int) -> tuple[int, int]:
        """Return the number that begins at *at*, and where it ends. Raises SchemaError."""
        value = 0
        for place in range(min(_LONGEST_VARINT, end - at)):
            byte = self.data[at + place]
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                return value & (1 << 64) - 1, at + place + 1
        raise self._broken("a number has no end")

    def text(self, start: int, end: int) -> str:
        """Return the text between *start* and *end*. Raises SchemaError."""
        try:
            return self.data[start:end].decode()
        except UnicodeDecodeError:
            raise self._broken("a text is not UTF-8") from None

    def _size(self, wire: int, at: int, end: int) -> tuple[int, int]:
        """Return how many bytes the value has that begins at *at*, and where they begin."""
        if wire == BYTES:
            size, at = self.varint(at, end)
        elif wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
        else:
            raise self._broken(f"wire type {wire}")
        if size > end - at:
            raise self._broken("a field is longer than its message")
        return size, at


def signed(value: int) -> int:
    """Return a number of 64 bits with its sign."""
    return value - (1 << 64) if value & _SIGN else value


def zigzag(value: int) -> int:
    """Return the signed number that zigzag encoding writes as *value*.

    >>> [zigzag(n) for n in range(5)]
    [0, -1, 1, -2, 2]
    """
    return value >> 1 ^ -(value & 1)


def varint_bytes(value: int) -> bytes:
    """Return a number that is not negative as protobuf writes it."""
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*made, value))


def number_field(number: int, value: int) -> bytes:
    """Return a field with a number, or nothing for 0."""
    return varint_bytes(number << 3 | VARINT) + varint_bytes(value) if value else b""


def bytes_field(number: int, value: bytes) -> bytes:
    """Return a field with a text or a message, or nothing for an empty one."""
    return varint_bytes(number << 3 | BYTES) + varint_bytes(len(value)) + value if value else b""

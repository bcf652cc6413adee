"""Values that clients bind, out of TDengine's blocks (`gateway/wires/tdengine/block.py` has their
layout). What is sent is not to be believed: each length is checked before it is used.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import numpy as np

from gateway.wires.tdengine import types
from penstock.errors import SchemaError

_HEADER = struct.Struct("<iiiiiQ")
_COLUMN = struct.Struct("<bi")
#: of a block that is bound
MOST_COLUMNS = 4200
MOST_ROWS = 1 << 20
_WIDE = 4


class BlockPart:
    """Bytes that are read from the front, as far as there are any."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> memoryview:
        """Return the next *count* bytes. Raises SchemaError: there are fewer."""
        if not 0 <= count <= len(self._data) - self._at:
            raise broken(f"{count} bytes are announced, {len(self._data) - self._at} are there")
        self._at += count
        return self._data[self._at - count : self._at]

    def unpack(self, form: struct.Struct) -> tuple[Any, ...]:
        return form.unpack(self.take(form.size))

    def number(self, form: str) -> int:
        """Return one whole number in `struct`'s *form*."""
        return int(struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))[0])

    def numbers(self, form: str, count: int) -> np.ndarray[Any, Any]:
        """Return *count* numbers of numpy's type *form*."""
        if not 0 <= count <= len(self._data):
            raise broken(f"{count} values are announced")
        return np.frombuffer(self.take(count * np.dtype(form).itemsize), form)


def broken(detail: str) -> SchemaError:
    """Return the error for bytes that are no block."""
    return SchemaError("the block cannot be read", code="E_BODY", detail=detail)


def decode(data: memoryview) -> list[list[Any]]:
    """Return the values of each column of a block: times as ticks, NULL as None.

    Raises:
        SchemaError: it is none.
    """
    part = BlockPart(data)
    _, _, rows, columns, _, _ = part.unpack(_HEADER)
    if not 0 <= rows <= MOST_ROWS or not 0 <= columns <= MOST_COLUMNS:
        raise broken(f"it announces {rows} rows and {columns} columns")
    heads = [part.unpack(_COLUMN) for _ in range(columns)]
    lengths = part.numbers("<i4", columns).tolist()
    return [
        _column(part, code, size, rows, length)
        for (code, size), length in zip(heads, lengths, strict=True)
    ]


def _column(part: BlockPart, code: int, size: int, rows: int, length: int) -> list[Any]:
    if code in types.SIZED:
        places = part.numbers("<i4", rows).tolist()
        content = part.take(length)
        return [text_of(code, _value_at(content, place)) for place in places]
    bits = np.frombuffer(part.take((rows + 7) // 8), "u1")
    nulls = np.unpackbits(bits, count=rows).astype(bool)
    values = fixed_values(code, part.take(length), rows, scale=size & 0xFF)
    return [None if null else value for value, null in zip(values, nulls.tolist(), strict=True)]


def _value_at(content: memoryview, place: int) -> memoryview | None:
    if place == -1:
        return None
    if not 0 <= place <= len(content) - 2:
        raise broken(f"a value is said to stand at {place} of {len(content)} bytes")
    part = BlockPart(content[place:])
    return part.take(part.number("H"))


def text_of(code: int, value: memoryview | None) -> str | bytes | None:
    """Return a value of a type whose values differ in length, as a block has it."""
    if value is None:
        return None
    data = bytes(value)
    if code == types.VARBINARY:
        return data
    try:
        return data.decode("utf-32-le" if code == types.NCHAR else "utf-8")
    except UnicodeDecodeError as wrong:
        raise broken(f"a text is none: {wrong}") from None


def fixed_values(code: int, data: memoryview, rows: int, *, scale: int = 0) -> list[Any]:
    """Return *rows* values of a type whose values all have one length.

    Raises:
        SchemaError: there is no such type, or there are fewer values.
    """
    part = BlockPart(data)
    if code in (types.DECIMAL, types.DECIMAL_64):
        width = 16 if code == types.DECIMAL else 8
        whole = bytes(part.take(rows * width))
        parts = (whole[i : i + width] for i in range(0, len(whole), width))
        numbers = (int.from_bytes(one, "little", signed=True) for one in parts)
        # scaleb() would round to the context's digits
        return [Decimal(f"{number}E-{scale}") for number in numbers]
    form = types.NUMBERS.get(code)
    if form is None:
        raise broken(f"there is no type {code} whose values can be bound")
    values = part.numbers(form, rows)
    return [bool(v) for v in values] if code == types.BOOL else list(values.tolist())

"""Blocks of rows in TDengine's binary layout, all numbers little-endian.

A header of 28 bytes (version, bytes of the block, rows, columns, flags, group), for each column its
type and size (five bytes), for each column the bytes of its values, then the columns. A column of
values of one length is a bitmap, whose bit is set where a value is NULL, the first row's highest,
and the values; one of texts has four bytes a row, where the value stands behind them or -1, and the
values, each after two bytes of its length.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.wires.tdengine import types
from gateway.wires.tdengine.columns import WireColumn, WireTable
from penstock.errors import SchemaError

_HEADER = struct.Struct("<iiiiiQ")
_COLUMN = struct.Struct("<bi")
_VERSION = 1
_FLAGS = -(1 << 31)
#: bytes of a text, whose length has 16 bits
MOST_BYTES = 0xFFFF
_MOST_ROWS = 4096
#: bytes of Arrow that a block is made of
_BLOCK_BYTES = 4 << 20
_WIDE = 4


def rows_of_block(table: WireTable) -> int:
    """Return how many rows of *table* go into a block."""
    if not table.rows:
        return 1
    size = sum(column.values.nbytes for column in table.columns)
    return int(max(1, min(_MOST_ROWS, _BLOCK_BYTES * table.rows // max(size, 1))))


def encode(table: WireTable, start: int, rows: int) -> bytes:
    """Return *rows* rows of *table* from row *start* on as a block.

    Raises:
        SchemaError: a text is longer than a block can hold.
    """
    parts = [_encode_column(c, c.values.slice(start, rows).combine_chunks()) for c in table.columns]
    head = b"".join(_COLUMN.pack(c.code, size_of(c)) for c in table.columns)
    lengths = np.array([length for length, _ in parts], "<i4").tobytes()
    data = b"".join(part for _, part in parts)
    size = _HEADER.size + len(head) + len(lengths) + len(data)
    front = _HEADER.pack(_VERSION, size, rows, len(table.columns), _FLAGS, 0)
    return b"".join((front, head, lengths, data))


def size_of(column: WireColumn) -> int:
    """Return the size of a column as a block's header has it; that of a decimal holds its digits,
    too.
    """
    if column.code in (types.DECIMAL, types.DECIMAL_64):
        packed = column.length << 24 | column.precision << 8 | column.scale
        return int(np.uint32(packed).astype(np.int32))
    if column.code == types.NCHAR:
        return column.length * _WIDE + 2
    return column.length + 2 if column.code in types.SIZED else column.length


def _encode_column(column: WireColumn, values: pa.Array) -> tuple[int, bytes]:
    """Return the bytes of the values alone, and all of a column."""
    if column.code in types.SIZED:
        return _encode_texts(column, values)
    nulls = np.packbits(values.is_null().to_numpy(zero_copy_only=False)).tobytes()
    data = _numbers(column, values).tobytes()
    return len(data), nulls + data


def _numbers(column: WireColumn, values: pa.Array) -> np.ndarray[Any, Any]:
    """Return the values; what is NULL is zero."""
    if column.code not in types.NUMBERS:
        return _decimals(column, values)
    zero = pa.scalar(0).cast(values.type)
    numbers: np.ndarray[Any, Any] = values.fill_null(zero).to_numpy(zero_copy_only=False)
    return numbers.astype(types.NUMBERS[column.code])


def _decimals(column: WireColumn, values: pa.Array) -> np.ndarray[Any, Any]:
    """Return the digits of decimals as whole numbers of eight or sixteen bytes."""
    words = np.frombuffer(values.buffers()[1], "<u8").reshape(-1, 2)
    words = words[values.offset : values.offset + len(values)].copy()
    words[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return words if column.code == types.DECIMAL else np.ascontiguousarray(words[:, 0])


def _encode_texts(column: WireColumn, values: pa.Array) -> tuple[int, bytes]:
    content = values.cast(pa.large_binary())
    if column.code == types.NCHAR:
        content = _widen(values)
    lengths = pc.binary_length(content).fill_null(0).to_numpy(zero_copy_only=False)
    if len(lengths) and int(lengths.max()) > MOST_BYTES:
        raise SchemaError(
            f'a value of column "{column.name[:192]}" has more than {MOST_BYTES} bytes here',
            code="E_ROW_TOO_LARGE",
            hint="ask over REST, or cut it",
        )
    prefixes = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(2), len(lengths), [None, pa.py_buffer(lengths.astype("<u2").tobytes())]
    ).cast(pa.large_binary())
    joined = pc.binary_join_element_wise(prefixes, content, pa.scalar(b"", pa.large_binary()))
    nulls = content.is_null().to_numpy(zero_copy_only=False)
    ends = np.cumsum(np.where(nulls, 0, lengths + 2))
    places = np.where(nulls, -1, ends - np.where(nulls, 0, lengths + 2)).astype("<i4")
    data = _content(joined)
    return len(data), places.tobytes() + data


def _content(joined: pa.Array) -> bytes:
    """Return the bytes of all values, one behind the other."""
    _, offsets, data = joined.buffers()
    if data is None or not len(joined):
        return b""
    bounds = np.frombuffer(offsets, "<i8")
    first, last = bounds[joined.offset], bounds[joined.offset + len(joined)]
    return bytes(memoryview(data)[first:last])


def _widen(values: pa.Array) -> pa.Array:
    """Return texts with four bytes for each character."""
    texts: Sequence[str | None] = values.to_pylist()
    return pa.array(
        [None if text is None else text.encode("utf-32-le", "replace") for text in texts],
        pa.large_binary(),
    )

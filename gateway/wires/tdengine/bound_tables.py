"""What `stmt2_bind` sends: for each table its name, its tags and its columns, all optional.

Seven numbers of four bytes come first: bytes in all, tables, tags of each, columns of each, and
where names, tags and columns stand. Behind each of these places come the lengths of all tables'
parts (two bytes for names, else four), then the parts. A column has its own length, type, number of
values, a byte for each that tells NULL, a byte that tells whether lengths follow, these, the bytes
of its values, and the values.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gateway.wires.tdengine import types
from gateway.wires.tdengine.block_reader import (
    MOST_COLUMNS,
    MOST_ROWS,
    BlockPart,
    broken,
    fixed_values,
)

_HEADER = struct.Struct("<7I")
_MOST_TABLES = 1 << 17


@dataclass(frozen=True)
class BoundTable:
    """Values for one table; `columns` are columns of values."""

    name: str | None
    tags: list[Any]
    columns: list[list[Any]]


def read_tables(data: memoryview) -> list[BoundTable]:
    """Return what is bound, table by table.

    Raises:
        SchemaError: the bytes are not of this layout.
    """
    head = BlockPart(data).unpack(_HEADER)
    _, tables, tags, columns, names_at, tags_at, columns_at = head
    if not 1 <= tables <= _MOST_TABLES or tags > MOST_COLUMNS or columns > MOST_COLUMNS:
        raise broken(f"it announces {tables} tables, {tags} tags and {columns} columns")
    names = list(_names(data, names_at, tables)) if names_at else [None] * tables
    tag_columns = _find_columns(data, tags_at, tables, tags)
    values = _find_columns(data, columns_at, tables, columns)
    return [
        BoundTable(name, _single_values(own), rows)
        for name, own, rows in zip(names, tag_columns, values, strict=True)
    ]


def _names(data: memoryview, at: int, tables: int) -> Iterator[str | None]:
    part = BlockPart(data[at:])
    for length in part.numbers("<u2", tables).tolist():
        text = bytes(part.take(length)).rstrip(b"\0")
        try:
            yield text.decode() or None
        except UnicodeDecodeError as wrong:
            raise broken(f"a table's name is no text: {wrong}") from None


def _find_columns(data: memoryview, at: int, tables: int, count: int) -> list[list[list[Any]]]:
    """Return the columns of each table, none where nothing is sent."""
    return list(_columns(data, at, tables, count)) if at and count else [[]] * tables


def _single_values(columns: list[list[Any]]) -> list[Any]:
    if any(len(column) != 1 for column in columns):
        raise broken("a tag has other than one value")
    return [column[0] for column in columns]


def _columns(data: memoryview, at: int, tables: int, count: int) -> Iterator[list[list[Any]]]:
    part = BlockPart(data[at:])
    for length in part.numbers("<u4", tables).tolist():
        own = BlockPart(part.take(length))
        yield [_column(own) for _ in range(count)]


def _column(part: BlockPart) -> list[Any]:
    part.take(4)
    code = part.number("i")
    rows = part.number("i")
    if not 0 <= rows <= MOST_ROWS:
        raise broken(f"a column announces {rows} values")
    nulls = [bool(flag) for flag in part.take(rows)]
    lengths = part.numbers("<i4", rows).tolist() if part.number("B") else None
    content = part.take(part.number("I"))
    if all(nulls):
        return [None] * rows
    if lengths is not None:
        return _sized(code, content, nulls, lengths)
    values = fixed_values(code, content, rows)
    return [None if null else value for value, null in zip(values, nulls, strict=True)]


def _sized(code: int, content: memoryview, nulls: list[bool], lengths: list[int]) -> list[Any]:
    """Return texts, all of them UTF-8 here, and bytes."""
    part = BlockPart(content)
    made: list[Any] = []
    for null, length in zip(nulls, lengths, strict=True):
        if null:
            made.append(None)
            continue
        value = bytes(part.take(length))
        try:
            made.append(value if code == types.VARBINARY else value.decode())
        except UnicodeDecodeError as wrong:
            raise broken(f"a text is none: {wrong}") from None
    return made

"""Columns of an answer as TDengine's blocks have them: each of one of its types, and all times of
one unit.

What has no type there (a time of day, a list) becomes text, as in answers over REST.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from gateway import answers
from gateway.wires.tdengine import types
from penstock.errors import SchemaError

_ARROW: dict[int, pa.DataType] = {
    types.BOOL: pa.bool_(),
    types.TINYINT: pa.int8(),
    types.SMALLINT: pa.int16(),
    types.INT: pa.int32(),
    types.BIGINT: pa.int64(),
    types.FLOAT: pa.float32(),
    types.DOUBLE: pa.float64(),
    types.TINYINT_UNSIGNED: pa.uint8(),
    types.SMALLINT_UNSIGNED: pa.uint16(),
    types.INT_UNSIGNED: pa.uint32(),
    types.BIGINT_UNSIGNED: pa.uint64(),
    types.VARCHAR: pa.large_string(),
    types.NCHAR: pa.large_string(),
    types.JSON: pa.large_string(),
    types.VARBINARY: pa.large_binary(),
}
_UNITS = ("ms", "us", "ns")


@dataclass(frozen=True)
class WireColumn:
    """A column of an answer.

    Args:
        code: number of its type.
        length: bytes of a value, or the most that one has; characters of NCHAR.
        values: of the Arrow type that stands for `code`; times and decimals as they are.
    """

    name: str
    code: int
    length: int
    values: pa.ChunkedArray
    precision: int = 0
    scale: int = 0


@dataclass(frozen=True)
class WireTable:
    """The columns of an answer, and the unit of its times: `ms`, `us` or `ns`."""

    columns: tuple[WireColumn, ...]
    unit: str
    rows: int


def wire_table(table: pa.Table) -> WireTable:
    """Return *table* in TDengine's types.

    Raises:
        SchemaError: it has times that the finest unit among them cannot hold.
    """
    unit = _finest(table.schema)
    made = []
    for (name, kind, size), column in zip(answers.describe(table), table.columns, strict=True):
        code = types.code_of(kind, size)
        try:
            values = _convert(column, code, unit)
        except pa.ArrowInvalid as wrong:
            raise SchemaError(
                f'values of column "{name[:192]}" cannot be sent over this wire',
                code="E_ROW",
                detail=str(wrong)[:200],
                hint="cast them to text, or ask over REST",
            ) from None
        digits = (values.type.precision, values.type.scale) if _is_decimal(code) else (0, 0)
        made.append(WireColumn(name, code, size, values, *digits))
    return WireTable(tuple(made), unit, table.num_rows)


def _finest(schema: pa.Schema) -> str:
    """Return the unit that no time of *schema* loses digits in."""
    units = [f.type.unit for f in schema if pa.types.is_timestamp(f.type) and f.type.unit in _UNITS]
    return max(units, key=_UNITS.index, default="ms")


def _is_decimal(code: int) -> bool:
    return code in (types.DECIMAL, types.DECIMAL_64)


def _convert(column: pa.ChunkedArray, code: int, unit: str) -> pa.ChunkedArray:
    """Return values of the Arrow type that *code* stands for. Raises pa.ArrowInvalid."""
    kind = column.type
    if code == types.TIMESTAMP:
        if pa.types.is_date(kind):
            column = column.cast(pa.timestamp("s"))
        return column.cast(pa.timestamp(unit, getattr(kind, "tz", None))).cast(pa.int64())
    if _is_decimal(code):
        return column.cast(pa.decimal128(min(kind.precision, 38), kind.scale))
    wanted = _ARROW[code]
    if kind == wanted:
        return column
    if pa.types.is_nested(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind):
        return pa.chunked_array([pa.array(_texts(column), pa.large_string())])
    return column.cast(wanted)


def _texts(column: pa.ChunkedArray) -> list[Any]:
    return [None if value is None else str(value) for value in column.to_pylist()]

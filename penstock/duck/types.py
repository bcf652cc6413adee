"""Penstock's column types as DuckDB calls them."""

from __future__ import annotations

import pyarrow as pa

from penstock.sql.functions.base import MAX_TEXT
from penstock.types import FROM_ARROW, ColumnType

_DUCK = {
    "BOOL": "BOOLEAN",
    "TINYINT": "TINYINT",
    "SMALLINT": "SMALLINT",
    "INT": "INTEGER",
    "BIGINT": "BIGINT",
    "TINYINT UNSIGNED": "UTINYINT",
    "SMALLINT UNSIGNED": "USMALLINT",
    "INT UNSIGNED": "UINTEGER",
    "BIGINT UNSIGNED": "UBIGINT",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
    "VARCHAR": "VARCHAR",
    "NCHAR": "VARCHAR",
    "JSON": "VARCHAR",
    "VARBINARY": "BLOB",
}
_TIMES = {"ms": "TIMESTAMP_MS", "us": "TIMESTAMP", "ns": "TIMESTAMP_NS"}


def duck_type(kind: str, precision: str, text: str) -> str:
    """Return DuckDB's name of a column type.

    Args:
        kind: of the type.
        precision: of the database, which a TIMESTAMP has.
        text: the type in full, which a DECIMAL keeps.
    """
    if kind == "TIMESTAMP":
        return _TIMES[precision]
    return text if kind == "DECIMAL" else _DUCK[kind]


#: Arrow's types as DuckDB hands them over
_ARROW = FROM_ARROW | {pa.null(): "NULL", pa.date32(): "TIMESTAMP"}


def column_type(arrow: pa.DataType) -> ColumnType | None:
    """Return the type of a column that DuckDB has handed over; None: we have no such type."""
    known = _ARROW.get(arrow)
    if known is not None:
        return ColumnType(known)
    if pa.types.is_timestamp(arrow):
        return ColumnType("TIMESTAMP")
    if pa.types.is_decimal(arrow):
        return ColumnType("DECIMAL", precision=arrow.precision, scale=arrow.scale)
    if pa.types.is_binary(arrow) or pa.types.is_large_binary(arrow):
        return ColumnType("VARBINARY", length=MAX_TEXT)
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow):
        return ColumnType("VARCHAR", length=MAX_TEXT)
    return None


_SPOKEN = {duck: kind for kind, duck in reversed(_DUCK.items())} | {
    **dict.fromkeys((*_TIMES.values(), "DATE"), "TIMESTAMP"),
    "STRING_LITERAL": "VARCHAR",
    "INTEGER_LITERAL": "INT",
}


def spoken_type(name: str) -> str:
    """Return what the dialect calls a type of DuckDB's; one that it does not have stays."""
    return _SPOKEN.get(name, name)

"""Types of columns as the standard tells them apart, and its constructors of values."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

import pyarrow as pa


class Kind:
    """Equal to each type code that is of this kind."""

    def __init__(self, name: str, *types: str) -> None:
        self.name = name
        self._types = frozenset(types)

    def __eq__(self, other: object) -> bool:
        return other is self or (isinstance(other, str) and other in self._types)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name


STRING = Kind("STRING", "VARCHAR", "NCHAR", "JSON")
BINARY = Kind("BINARY", "VARBINARY")
NUMBER = Kind(
    "NUMBER",
    "BOOL",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "TINYINT UNSIGNED",
    "SMALLINT UNSIGNED",
    "INT UNSIGNED",
    "BIGINT UNSIGNED",
    "FLOAT",
    "DOUBLE",
    "DECIMAL",
)
DATETIME = Kind("DATETIME", "TIMESTAMP")
#: a row is known by its table and time, so no column is of this kind
ROWID = Kind("ROWID")

Binary = bytes
Date = date
Time = time
Timestamp = datetime

_CODES = (
    (pa.types.is_boolean, "BOOL"),
    (pa.types.is_int8, "TINYINT"),
    (pa.types.is_int16, "SMALLINT"),
    (pa.types.is_int32, "INT"),
    (pa.types.is_int64, "BIGINT"),
    (pa.types.is_uint8, "TINYINT UNSIGNED"),
    (pa.types.is_uint16, "SMALLINT UNSIGNED"),
    (pa.types.is_uint32, "INT UNSIGNED"),
    (pa.types.is_uint64, "BIGINT UNSIGNED"),
    (pa.types.is_float32, "FLOAT"),
    (pa.types.is_floating, "DOUBLE"),
    (pa.types.is_decimal, "DECIMAL"),
    (pa.types.is_timestamp, "TIMESTAMP"),
    (pa.types.is_date, "TIMESTAMP"),
    (pa.types.is_binary, "VARBINARY"),
    (pa.types.is_large_binary, "VARBINARY"),
)


def code_of(kind: pa.DataType) -> str:
    """Return the type code of a column: the name of its type in SQL."""
    return next((code for fits, code in _CODES if fits(kind)), "VARCHAR")


def DateFromTicks(seconds: float) -> date:  # noqa: N802 - the standard's name
    """Return the day of a Unix time."""
    return datetime.fromtimestamp(seconds, UTC).date()


def TimeFromTicks(seconds: float) -> time:  # noqa: N802 - the standard's name
    """Return the time of day of a Unix time."""
    return datetime.fromtimestamp(seconds, UTC).time()


def TimestampFromTicks(seconds: float) -> datetime:  # noqa: N802 - the standard's name
    """Return a Unix time as a datetime."""
    return datetime.fromtimestamp(seconds, UTC)

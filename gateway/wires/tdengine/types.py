"""Numbers by which TDengine's clients know column types and units of time."""

from __future__ import annotations

BOOL = 1
TINYINT = 2
SMALLINT = 3
INT = 4
BIGINT = 5
FLOAT = 6
DOUBLE = 7
VARCHAR = 8
TIMESTAMP = 9
NCHAR = 10
TINYINT_UNSIGNED = 11
SMALLINT_UNSIGNED = 12
INT_UNSIGNED = 13
BIGINT_UNSIGNED = 14
JSON = 15
VARBINARY = 16
#: of 128 bits, more than 18 digits
DECIMAL = 17
#: of 64 bits, up to 18 digits
DECIMAL_64 = 21

_CODES = {
    "BOOL": BOOL,
    "TINYINT": TINYINT,
    "SMALLINT": SMALLINT,
    "INT": INT,
    "BIGINT": BIGINT,
    "FLOAT": FLOAT,
    "DOUBLE": DOUBLE,
    "VARCHAR": VARCHAR,
    "TIMESTAMP": TIMESTAMP,
    "NCHAR": NCHAR,
    "TINYINT UNSIGNED": TINYINT_UNSIGNED,
    "SMALLINT UNSIGNED": SMALLINT_UNSIGNED,
    "INT UNSIGNED": INT_UNSIGNED,
    "BIGINT UNSIGNED": BIGINT_UNSIGNED,
    "JSON": JSON,
    "VARBINARY": VARBINARY,
}
#: types whose values differ in length
SIZED = frozenset((VARCHAR, NCHAR, JSON, VARBINARY))
#: numpy's types of values that all have one length, but for decimals
NUMBERS = {
    BOOL: "<u1",
    TINYINT: "<i1",
    SMALLINT: "<i2",
    INT: "<i4",
    BIGINT: "<i8",
    FLOAT: "<f4",
    DOUBLE: "<f8",
    TIMESTAMP: "<i8",
    TINYINT_UNSIGNED: "<u1",
    SMALLINT_UNSIGNED: "<u2",
    INT_UNSIGNED: "<u4",
    BIGINT_UNSIGNED: "<u8",
}
#: unit of a database's times → its number
PRECISIONS = {"ms": 0, "us": 1, "ns": 2}


def code_of(kind: str, size: int) -> int:
    """Return the number of a type as `column_meta` names it; *size* in bytes."""
    if kind.startswith("DECIMAL"):
        return DECIMAL if size > 8 else DECIMAL_64
    return _CODES[kind]

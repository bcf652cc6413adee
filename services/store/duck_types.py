"""Penstock's column types as DuckDB calls them."""

from __future__ import annotations

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

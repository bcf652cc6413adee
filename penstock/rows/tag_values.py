"""Values of tags as JSON has them: in the catalog, in Redis, in plans and in controls of the log.

There, DECIMAL is its digits as text, VARBINARY is hexadecimal digits, and TIMESTAMP is ticks; all
others are JSON's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import polars as pl

from penstock.rows import python_values
from penstock.types import ColumnType


def to_json(value: Any) -> Any:
    """Return the value of a tag in the form that JSON has; one in that form stays as it is."""
    if isinstance(value, bytes):
        return value.hex()
    # never with an exponent, which the readers of text do not all know
    return format(value, "f") if isinstance(value, Decimal) else value


def from_json(value: Any, kind: ColumnType) -> Any:
    """Return the value of a tag of *kind* that JSON had."""
    if value is None or isinstance(value, bytes):
        return value
    if kind.kind == "DECIMAL":
        return Decimal(str(value))
    return _bytes(value) if kind.kind == "VARBINARY" else value


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        # earlier builds kept the literal of CREATE TABLE … USING as it was
        return python_values.binary(text)


def to_series(name: str, kind: ColumnType, values: Sequence[Any]) -> pl.Series:
    """Return *values* of JSON as a column of *kind*; times are ticks."""
    if kind.kind in ("DECIMAL", "VARBINARY"):
        values = [from_json(value, kind) for value in values]
    return pl.Series(name, values, dtype=kind.polars(), strict=False)

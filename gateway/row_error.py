"""Rows that do not fit their table: the error, with the row's index and the column."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from penstock.errors import SchemaError

_SHOWN = 64


class RowError(SchemaError):
    """A row that does not fit its table; `row` counts from 0 within the request."""

    code = "E_ROW"

    def __init__(
        self, message: str, *, row: int = -1, column: str = "", detail: str = "", hint: str = ""
    ) -> None:
        parts = []
        if row >= 0:
            parts.append(f"row {row}")
        if column:
            parts.append(f'column "{column}"')
        where = ", ".join(parts)
        super().__init__(f"{where}: {message}" if where else message, detail=detail, hint=hint)
        self.row = row
        self.column = column

    def to_dict(self) -> dict[str, Any]:
        more: dict[str, Any] = {}
        if self.row >= 0:
            more["row"] = self.row
        if self.column:
            more["column"] = self.column
        return {**super().to_dict(), **more}


def blame(column: str, values: pl.Series, bad: pl.Series, words: str) -> None:
    """Raise RowError for the first bad row, if there is one."""
    if bad.any():
        row = int(bad.arg_true()[0])
        message = f"{abbreviate(values[row])} {words}" if column else words
        raise RowError(message, row=row, column=column)


def abbreviate(value: Any) -> str:
    """Return *value* as JSON that fits into a message."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "…"

"""One INSERT for many rows: `executemany` sends a thousand rows at a time, not one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from penstock.rows.parameters import Parameters

#: rows of one statement
ROWS = 1_000
#: the one row of placeholders that an INSERT ends with
_ROW = re.compile(r"\bVALUES\s*(\(\s*\?(?:\s*,\s*\?)*\s*\))\s*;?\s*\Z", re.IGNORECASE)
_INSERT = re.compile(r"\s*INSERT\s", re.IGNORECASE)


def fold(sql: str, rows: Sequence[Sequence[Any]]) -> Iterator[tuple[str, Parameters]] | None:
    """Return statements that do what *sql* does for each of *rows*, with their parameters; None if
    it is no INSERT that ends with one row of `?`.
    """
    found = _ROW.search(sql) if _INSERT.match(sql) else None
    if found is None:
        return None
    row = found[1]
    width = row.count("?")
    if any(len(values) != width for values in rows):
        return None
    return _statements(sql[: found.start(1)], row, rows)


def _statements(
    beginning: str, row: str, rows: Sequence[Sequence[Any]]
) -> Iterator[tuple[str, Parameters]]:
    for start in range(0, len(rows), ROWS):
        some = rows[start : start + ROWS]
        yield beginning + ", ".join([row] * len(some)), [v for values in some for v in values]

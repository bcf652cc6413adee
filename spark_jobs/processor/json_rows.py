"""Rows in dead letters, as JSON that people read."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from penstock.records import DeadLetter


def json_rows(rows: pl.DataFrame) -> bytes:
    """Return *rows* as lines of JSON. JSON has no bytes, so those are hex, as in SQL."""
    return rows.with_columns(pl.col(pl.Binary).bin.encode("hex")).write_ndjson().encode()


def letter_values(rows: pl.DataFrame) -> Iterator[tuple[int, bytes]]:
    """Yield all of *rows* as lines of JSON in pieces that fit a dead letter, each with its number
    of rows. A row that is too large by itself is a piece of its own.
    """
    lines = json_rows(rows).splitlines(keepends=True)
    taken = 0
    size = 0
    for at, line in enumerate(lines):
        if at > taken and size + len(line) > DeadLetter.MAX_VALUE:
            yield at - taken, b"".join(lines[taken:at])
            taken = at
            size = 0
        size += len(line)
    if lines:
        yield len(lines) - taken, b"".join(lines[taken:])

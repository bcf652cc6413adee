"""Rows in a dead letter, as JSON that people read."""

from __future__ import annotations

import polars as pl


def json_rows(rows: pl.DataFrame) -> bytes:
    """Return *rows* as lines of JSON. JSON has no bytes, so those are hex, as in SQL."""
    return rows.with_columns(pl.col(pl.Binary).bin.encode("hex")).write_ndjson().encode()

"""Checks of a whole frame of rows: sizes, names, and times.

All checks run on whole columns; only after one failed the row to blame is looked for.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from gateway import times
from gateway.layout import TBNAME, RowLayout
from gateway.row_error import blame
from penstock import names
from penstock.sql.plan import Column

MAX_ROW_BYTES = 64 * 1024


def check(layout: RowLayout, frame: pl.DataFrame, now: int) -> None:
    """Check sizes, names and times of a whole frame; *now* in ticks. Raises RowError with the index
    of the first bad row.
    """
    _check_time(layout, frame[layout.time], now)
    _check_names(frame[TBNAME])
    key = layout.key_column
    if key and frame[key].null_count():
        blame(key, frame[key], frame[key].is_null(), "is null, but part of the key")
    _check_values(layout, frame)
    _check_sizes(layout, frame)


def _check_time(layout: RowLayout, time: pl.Series, now: int) -> None:
    low, high = times.LIMITS[layout.precision]
    ahead = min(now + layout.max_ahead, high)
    if time.null_count() or _above(time.max(), ahead) or _above(low, time.min()):
        blame(layout.time, time, time.is_null(), "is null")
        blame(layout.time, time, (time < low) | (time > high), "is out of range")
        blame(layout.time, time, time > ahead, "is more than MAX_AHEAD in the future")


def _check_names(children: pl.Series) -> None:
    lengths = children.str.len_bytes()
    most = names.MAX_NAME_BYTES
    if children.null_count() or _above(1, lengths.min()) or _above(lengths.max(), most):
        blame(TBNAME, children, children.is_null() | (lengths == 0), "is empty")
        blame(TBNAME, children, lengths > most, f"is longer than {most} bytes")


def _check_values(layout: RowLayout, frame: pl.DataFrame) -> None:
    """Raise RowError for what could not be read back: times out of range, infinity."""
    low, high = times.LIMITS[layout.precision]
    for field in layout.fields:
        column = frame[field.name]
        if field.type.kind == "TIMESTAMP" and field.name != layout.time:
            if _above(column.max(), high) or _above(low, column.min()):
                blame(field.name, column, (column < low) | (column > high), "is out of range")
        elif field.type.kind in ("FLOAT", "DOUBLE") and column.is_infinite().any():
            blame(
                field.name, column, column.is_infinite(), "is infinite or too large for its column"
            )


def _check_sizes(layout: RowLayout, frame: pl.DataFrame) -> None:
    sizes = []
    for field in layout.fields:
        if not (field.type.text or field.type.kind == "VARBINARY"):
            continue
        column = frame[field.name]
        if column.null_count() != len(column):
            sizes.append(_check_size(field, column))
    fixed = 8 * len(layout.fields)
    if sum(int(str(size.max() or 0)) for size in sizes) > MAX_ROW_BYTES - fixed:
        total = pl.select(
            pl.sum_horizontal([size.cast(pl.Int64).fill_null(0) for size in sizes])
        ).to_series()
        bad = total + fixed > MAX_ROW_BYTES
        blame("", total, bad, f"is larger than {MAX_ROW_BYTES} bytes")


def _check_size(field: Column, column: pl.Series) -> pl.Series:
    """Check the length of texts or bytes; return their sizes in bytes."""
    size = column.bin.size() if field.type.kind == "VARBINARY" else column.str.len_bytes()
    counted = column.str.len_chars() if field.type.kind == "NCHAR" else size
    limit = field.type.bytes()
    if _above(counted.max(), limit):
        blame(field.name, column, counted > limit, f"is longer than {limit}")
    return size


def _above(value: Any, limit: Any) -> bool:
    """Tell whether *value* is beyond *limit*; nothing is beyond None."""
    return value is not None and limit is not None and value > limit

"""Notices: what a client is told of a write that was taken whole, but perhaps not as it was meant.

Texts are ASCII without commas: a header separates them by commas.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa

from gateway.layout import OP, TBNAME, RowLayout
from penstock.rows.versions import UPSERT
from penstock.sql.plan import TICKS_PER_SECOND

if TYPE_CHECKING:
    from gateway.coalescer import PendingWrite

HEADER = "Penstock-Notice"
#: 1990-01-01: a number before it is nearly always one of another unit
_EARLY_SECONDS = 631_152_000
_UNITS = {"ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
#: column that holds which write a row is of; no name of a table's column begins like this
_WRITE = "\0write"
_ROWS = "\0rows"
_WHOLE = "\0whole"


def headers(notices: Sequence[str]) -> dict[str, str]:
    """Return the header with *notices*, if there are any."""
    return {HEADER: ", ".join(notices)} if notices else {}


def of_numbers(values: Sequence[Any], precision: str) -> list[str]:
    """Return a notice of times before 1990 among *values*, as far as these are numbers of ticks."""
    per_second = TICKS_PER_SECOND[precision]
    early = [v for v in values if type(v) in (int, float) and v < _EARLY_SECONDS * per_second]
    if not early:
        return []
    try:
        first = (
            f" ({early[0]} is"
            f" {datetime.fromtimestamp(early[0] // per_second, UTC):%Y-%m-%dT%H:%M:%SZ})"
        )
    except (ValueError, OverflowError, OSError):
        first = ""
    return [
        f"{len(early)} of {len(values)} times are before 1990{first}; numbers count"
        f" {_UNITS[precision]} here"
    ]


def of_writes(
    layout: RowLayout, frame: pl.DataFrame, writes: Sequence[PendingWrite], counts: Sequence[int]
) -> list[tuple[str, ...]]:
    """Return notices of each of *writes*, whose rows are in *frame* one after the other."""
    notices = [list(write.notices) for write in writes]
    told = [i for i, write in enumerate(writes) if write.told]
    if told and _has_early(layout, frame):
        for i in told:
            notices[i] += of_numbers(_times(layout, writes[i]), layout.precision)
    if any(counts[i] > 1 for i in told):
        replaced = _count_replacements(layout, frame, counts)
        for i in replaced.keys() & set(told):
            notices[i].append(_of_replacements(replaced[i], counts[i]))
    return [tuple(some) for some in notices]


def _has_early(layout: RowLayout, frame: pl.DataFrame) -> bool:
    """Tell whether a time is before 1990."""
    least = frame.get_column(layout.time).min()
    limit = _EARLY_SECONDS * TICKS_PER_SECOND[layout.precision]
    return isinstance(least, int) and least < limit


def _of_replacements(replaced: int, count: int) -> str:
    words = "the later replaced the earlier; a key column or a supertable keeps both"
    return f"{replaced} of {count} rows share their key; {words}"


def _times(layout: RowLayout, write: PendingWrite) -> list[Any]:
    """Return times of a write as they were sent; of a frame none, as who made it has looked."""
    body = write.body
    time = layout.time.lower()
    if isinstance(body, pa.Table):
        column = next(
            (body.column(i) for i, name in enumerate(body.column_names) if name.lower() == time),
            None,
        )
        sent: list[Any] = column.to_pylist() if column is not None else []
        return sent
    if isinstance(body, pl.DataFrame):
        return []
    return [value for row in body for name, value in row.items() if name.lower() == time]


def _count_replacements(
    layout: RowLayout, frame: pl.DataFrame, counts: Sequence[int]
) -> dict[int, int]:
    """Count, for each write by its number, rows that share their key with others, of which a later
    one replaced values.
    """
    if frame.get_column(layout.time).n_unique() == frame.height:
        return {}
    keys = [_WRITE, TBNAME, layout.time, *([layout.key_column] if layout.key_column else [])]
    rows = frame.with_columns(pl.Series(_WRITE, np.repeat(np.arange(len(counts)), counts)))
    twice = rows.select(keys).is_duplicated()
    if not twice.any():
        return {}
    values = [c.name for c in layout.columns if c.name not in keys]
    groups = (
        rows.filter(twice)
        .group_by(keys, maintain_order=True)
        .agg(
            pl.len().alias(_ROWS),
            (pl.col(OP) == UPSERT).slice(1).any().alias(_WHOLE),
            *(pl.col(v).count() for v in values),
        )
    )
    # partial rows that set different columns stay side by side
    lost = groups.filter(pl.any_horizontal(_WHOLE, *(pl.col(v) > 1 for v in values)))
    return {
        int(write): int(count)
        for write, count in lost.group_by(_WRITE).agg(pl.col(_ROWS).sum()).iter_rows()
    }

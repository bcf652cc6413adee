"""Rows that are in segments and no longer in the log, in the order of the log: what a reader from
the very beginning gets first.

Blocks on files. Does not judge which version of a row counts: all of them come, as the log had
them.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from penstock.catalog.model import Table
from penstock.catalog.stored import present_rows
from penstock.storage import segments
from penstock.storage.segments import Position, Segment


def position(segments_dir: str, table: Table, partition: int, owner: int) -> Position:
    """What of the partition is in segments. Raises StateError."""
    return Position.load(segments_dir, table.topic, partition, owner)


def read(
    segments_dir: str, table: Table, partition: int, where: Position, start: int
) -> Iterator[pl.DataFrame]:
    """Rows of records from *start* on that were in segments at *where*, file by file; times are
    ticks. Rows that a DELETE took are left out.
    """
    at = start
    while (segment := _next(segments_dir, table, partition, where, at)) is not None:
        try:
            rows = pl.read_parquet(segment.path)
        except FileNotFoundError:
            continue  # merged with others, long after it was listed
        rows = present_rows(table.stored_names, rows)
        rows = rows.filter(pl.col("_offset").is_between(at, where.next, closed="left")).sort(
            "_offset", "_row"
        )
        at = segment.last + 1
        rows = _complete(table, _without_deleted(table, where, _in_ticks(table, rows)))
        if rows.height:
            yield rows.with_columns(_time=pl.col(table.time_column))


def _in_ticks(table: Table, rows: pl.DataFrame) -> pl.DataFrame:
    """Return *rows* with their times as ticks."""
    times = [c.name for c in (*table.columns, *table.tags) if c.type.kind == "TIMESTAMP"]
    return rows.with_columns(
        pl.col(t).cast(pl.Datetime(table.precision)).cast(pl.Int64)
        for t in times
        if t in rows.columns
    )


def _without_deleted(table: Table, where: Position, rows: pl.DataFrame) -> pl.DataFrame:
    """Leave out the rows that a DELETE took."""
    for delete in where.deletes:
        if delete.table_id != table.id:
            continue
        hit = (pl.col("_offset") < delete.offset) & pl.col(table.time_column).is_between(
            delete.low, delete.high
        )
        if delete.tables is not None:
            hit &= pl.col("tbname").is_in(list(delete.tables))
        rows = rows.filter(~hit)
    return rows


def _complete(table: Table, rows: pl.DataFrame) -> pl.DataFrame:
    """Add the columns that the table got after *rows* were written."""
    wanted = {c.name: c.type.polars() for c in (*table.columns, *table.tags)}
    return rows.with_columns(
        pl.lit(None, kind).alias(n) for n, kind in wanted.items() if n not in rows.columns
    )


def _next(
    segments_dir: str, table: Table, partition: int, where: Position, at: int
) -> Segment | None:
    """The segment that goes on at offset *at*. Who reads slowly finds files merged, also with such
    as are not below *where*.
    """
    if at >= where.next:
        return None
    now = position(segments_dir, table, partition, where.owner)
    found = segments.segments(
        segments.directory(segments_dir, table.id, partition, table.topic), now.next
    )
    return next((s for s in found if s.last >= at and s.first < where.next), None)

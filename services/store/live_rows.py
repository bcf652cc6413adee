"""The live rows of a table in ticks; for corrections, not for queries."""

from __future__ import annotations

import polars as pl

from penstock.catalog.model import Table
from penstock.storage import segments
from services.store import flush
from services.store.partitions import Partitions, layout_of
from services.store.tail import PartitionView


def live_rows(
    partitions: Partitions, table: Table, children: tuple[str, ...] | None
) -> pl.DataFrame:
    """Read the live rows of a table, or of some of its child tables."""
    layout = layout_of(table)
    parts = []
    for partition, view in partitions.views(table.topic).items():
        versions = _versions(partitions.root, table, partition, view, children)
        if versions:
            deletes = [d for d in view.deletes if d.table_id == table.id]
            rows = pl.concat(versions, how="diagonal_relaxed")
            parts.append(segments.live(rows, layout.keys, deletes))
    schema = {"tbname": pl.String, table.time_column: pl.Int64, "_op": pl.Int8}
    return pl.concat(parts, how="diagonal_relaxed") if parts else pl.DataFrame(schema=schema)


def _versions(
    root: str,
    table: Table,
    partition: int,
    view: PartitionView,
    children: tuple[str, ...] | None,
) -> list[pl.DataFrame]:
    """Read all versions of a table's rows in one partition, from segments and tail."""
    directory = segments.directory(root, table.id, partition, table.topic)
    found = segments.segments(directory, view.position.next)
    stored = segments.read(found, time_column=table.time_column, tables=children)
    versions = [] if stored is None else [flush.to_ticks(stored, layout_of(table))]
    for frame in view.frames.get(table.id, ()):
        mine = frame if children is None else frame.filter(pl.col("tbname").is_in(list(children)))
        versions.append(mine)
    return versions

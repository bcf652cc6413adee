"""A database gets more partitions: its segments are split by child table into those of the next
generation of its topic.

Every row keeps its offset, because the new topic goes on where the old one ends. Files are written
beside the old ones, in a directory of their generation, and nobody reads them before the catalog
names the new topic. Doing it again is fine: what was split is not split twice. Most is split while
rows still flow, so that at the end only the newest files are left.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from penstock import names
from penstock.catalog.model import Database, Table
from penstock.rows.partition import partition_of
from penstock.storage import segments
from penstock.storage.segments import Position, Segment


def split(
    root: str, database: Database, tables: list[Table], positions: Mapping[int, Position]
) -> int:
    """Split what is in segments of the tables that share the database's topic; how many rows were
    written.

    Args:
        positions: of each partition, what of it is in segments.
    """
    written = 0
    for table in tables:
        for partition, position in positions.items():
            where = segments.directory(root, table.id, partition, database.topic)
            for segment in segments.segments(where, position.next):
                done = _mark(root, table, database, partition, segment)
                if not done.exists():
                    written += _split(root, table, database, segment)
                    done.parent.mkdir(parents=True, exist_ok=True)
                    done.touch()
    return written


def commit(
    root: str, database: Database, begins: Mapping[int, int], positions: Mapping[int, Position]
) -> None:
    """Say of each partition of the next generation that all below its beginning is in segments."""
    for partition, begin in begins.items():
        old = positions[partition % database.partitions]
        Position(
            database.next_topic, partition, database.id, begin, old.producers, old.deletes, old.tags
        ).save(root)


def _mark(root: str, table: Table, database: Database, partition: int, segment: Segment) -> Path:
    generation = Path(names.segment_directory(root, table.id, 0, database.generation + 1)).parent
    return generation / "split" / f"{partition}-{segment.first}-{segment.last}"


def _split(root: str, table: Table, database: Database, segment: Segment) -> int:
    assert database.move is not None
    rows = pl.read_parquet(segment.path)
    place = partition_of(rows["tbname"], database.move.partitions)
    for partition in place.unique().to_list():
        part = rows.filter(place == partition)
        times = part[table.time_column].cast(pl.Int64)
        low = times.min()
        high = times.max()
        assert isinstance(low, int) and isinstance(high, int)
        where = segments.directory(root, table.id, partition, database.next_topic)
        segments.write(
            where,
            part.to_arrow(),
            table.time_column,
            segment.first,
            segment.last,
            fresh=segment.fresh,
            low=low,
            high=high,
        )
    return rows.height

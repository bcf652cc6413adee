"""A store over Kafka and Redis in memory: a catalog, partitions on disk, and rows put into them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl

from penstock.catalog.model import Database, Entry, Table, TableVersion
from penstock.catalog.view import Catalog
from penstock.codec import TableCodec
from penstock.rows.versions import UPSERT
from penstock.runtime.clock import ManualClock
from penstock.sql.plan import Column
from penstock.types import ColumnType
from services.store.flush import flush
from services.store.partitions import Partitions, layout_of
from services.store.resolve import Resolver
from services.store.settings import StoreSettings
from tests.unit.services.kit import MemoryLog
from tests.unit.services.memory_redis import MemoryRedis

NOW_MS = 1_800_000_000_000
TOPIC = "in.d"
COLUMNS = (
    Column("ts", ColumnType("TIMESTAMP")),
    Column("v", ColumnType("INT")),
    Column("w", ColumnType("VARCHAR", 16)),
)
TAGS = (Column("g", ColumnType("INT")),)
DATABASE = Database(1, "d", partitions=1)
PLAIN = Table(7, "d", "plain", "plain", TOPIC, 1, "ms", (TableVersion(107, COLUMNS),))
STABLE = Table(8, "d", "meters", "stable", TOPIC, 1, "ms", (TableVersion(108, COLUMNS, TAGS),))


class MemoryStore:
    """What the store's parts share."""

    def __init__(
        self,
        directory: Path,
        *entries: Entry,
        catalog: Catalog | None = None,
        log: MemoryLog | None = None,
        memory_redis: MemoryRedis | None = None,
    ) -> None:
        """*catalog*, *log*, *memory_redis*: what others share with it; else it has its own."""
        self.catalog = catalog or Catalog(entries or (DATABASE, PLAIN, STABLE))
        self.reader: Any = SimpleNamespace(
            catalog=self.catalog, know=lambda ids: None, listen=lambda listener: None
        )
        self.settings = StoreSettings(data_dir=directory)
        self.partitions = Partitions(self.settings.segments_dir, self.catalog.topic_owner)
        self.clock = ManualClock(NOW_MS * 10**6)
        self.log: Any = log or MemoryLog(self.clock)
        self.memory_redis = memory_redis or MemoryRedis(self.clock)
        self.redis: Any = self.memory_redis
        self.resolver = Resolver(self.reader, self.redis)

    def put(
        self, table: Table, *rows: tuple[Any, ...], topic: str = "", partition: int = 0
    ) -> None:
        """Put rows (tbname, columns, tags) into a tail, as one record."""
        tail = self.partitions.open(topic or table.topic, partition)
        frame = frame_of(table, rows, tail.next)
        tail.append(tail.next + 1, {table.id: frame}, [], 1.0)

    def flush(self, topic: str = TOPIC, partition: int = 0) -> None:
        """Cut a tail into segments."""
        tail = self.partitions.open(topic, partition)
        frozen = tail.freeze()
        assert frozen is not None
        layouts = {t.id: layout_of(t) for t in self.catalog.tables_of_topic(topic)}
        newest = self.partitions.newest[topic, partition]
        position = flush(
            self.partitions.root, topic, partition, tail.owner, frozen, layouts, newest
        )
        tail.thaw(position)


def frame_of(table: Table, rows: Sequence[tuple[Any, ...]], offset: int) -> pl.DataFrame:
    """Rows as the decoder hands them over."""
    columns = (*table.columns, *table.tags)
    schema: dict[str, Any] = {"tbname": pl.String}
    schema |= {c.name: c.type.polars() for c in columns}
    frame = pl.DataFrame([list(row) for row in rows], schema=schema, orient="row")
    return frame.with_columns(
        pl.lit(UPSERT, pl.Int8).alias("_op"),
        pl.lit(offset, pl.Int64).alias("_offset"),
        pl.int_range(pl.len(), dtype=pl.UInt32).alias("_row"),
    )


def record(table: Table, *rows: tuple[Any, ...], **more: Any) -> bytes:
    """Rows (tbname, columns, tags) as a record of the log."""
    frame = frame_of(table, rows, 0).drop("_offset", "_row")
    (value,) = TableCodec(table).encode(frame, max_bytes=1_000_000, **more)
    return value

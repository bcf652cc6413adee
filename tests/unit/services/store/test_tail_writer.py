"""From records of the log to the tail, to segments, and to what Redis is told: without Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl

from penstock.bus import Batch
from penstock.catalog.model import Database, Table, TableVersion
from penstock.catalog.view import Catalog
from penstock.codec import TableCodec
from penstock.records import ControlRecord, encode
from penstock.sql.plan import Column
from penstock.types import ColumnType
from services.store.controls import ControlHandler
from services.store.latest import LatestRows
from services.store.live_rows import live_rows
from services.store.partitions import Partitions
from services.store.record_decoder import RecordDecoder
from services.store.redis_reports import RedisReports
from services.store.tail_flusher import TailFlusher
from services.store.tail_writer import TailWriter

VERSION = TableVersion(100, (Column("ts", ColumnType("TIMESTAMP")), Column("v", ColumnType("INT"))))
TABLE = Table(2, "d", "t", "plain", "in.d", 1, "ms", (VERSION,))
NOW = 1_700_000_000_000


class _Redis:
    def __init__(self) -> None:
        self.hashes: dict[str, dict[str, int]] = {}

    def hset(self, key: str, field: str, value: int) -> None:
        self.hashes.setdefault(key, {})[field] = value

    def expire(self, key: str, seconds: int) -> None:
        assert key in self.hashes

    def hdel(self, key: str, *fields: str) -> None:
        for field in fields:
            self.hashes.get(key, {}).pop(field, None)

    def hscan_iter(self, key: str, count: int) -> Iterator[tuple[str, int]]:
        return iter(self.hashes.get(key, {}).items())


class _DeadLetters:
    def __init__(self) -> None:
        self.codes: list[str] = []

    def bury(self, batch: Batch, index: int, code: str, reason: str) -> None:
        self.codes.append(code)


def batch(*values: bytes) -> Batch:
    offsets = np.arange(len(values), dtype=np.int64)
    times = np.full(len(values), NOW, dtype=np.int64)
    return Batch("in.d", 0, offsets, times, [None] * len(values), list(values))


def test_rows_controls_and_unusable_records_of_one_batch(tmp_path: Path) -> None:
    reader = cast(
        Any,
        SimpleNamespace(catalog=Catalog([Database(1, "d"), TABLE]), know=lambda ids: None),
    )
    client = cast(Any, _Redis())
    dead = cast(Any, _DeadLetters())
    partitions = Partitions(str(tmp_path), reader.catalog.topic_owner)
    latest = LatestRows(client)
    read: list[int] = []
    writer = TailWriter(
        reader,
        partitions,
        RecordDecoder(reader, dead),
        ControlHandler(reader, partitions, client, latest, dead),
        latest,
        RedisReports(),
        lambda rows, _: read.append(rows),
    )
    rows = pl.DataFrame(
        {"tbname": ["t", "t"], "ts": [NOW, NOW + 1], "v": [1, 2], "_op": [0, 0]},
        schema={"tbname": pl.String, "ts": pl.Int64, "v": pl.Int32, "_op": pl.Int8},
    )
    (record,) = TableCodec(TABLE).encode(rows, max_bytes=100_000)
    delete = ControlRecord("delete", table=2, tables=("t",), low=NOW, high=NOW, id="b9")
    writer.take(
        batch(
            record, encode(delete), encode(ControlRecord("barrier", id="b1")), b"junk", record[:7]
        )
    )
    assert read == [2]
    assert dead.codes == ["E_UNKNOWN_SCHEMA", "E_MALFORMED"]
    assert client.hashes["penstock:barrier:b9"] == {"store:in.d:0": 1}
    assert client.hashes["penstock:barrier:b1"] == {"store:in.d:0": 2}
    assert live_rows(partitions, TABLE, None)["v"].to_list() == [2], "the DELETE took the other"

    settings = cast(Any, SimpleNamespace(flush_seconds=0.0, flush_rows=1))
    flusher = TailFlusher(settings, reader, partitions)
    flusher.step()
    flusher.flush_all()
    flusher.close()
    tail = partitions.open("in.d", 0)
    assert (tail.position.next, tail.rows) == (5, 0)
    assert live_rows(partitions, TABLE, None)["v"].to_list() == [2], "from segments as from memory"

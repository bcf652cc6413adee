"""Stored rows while the store flushes and merges: every row once, whoever has it at the moment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl

from penstock.bus import Batch
from penstock.catalog.model import Table, TableVersion
from penstock.codec import TableCodec
from penstock.records import ControlRecord, encode
from penstock.sql.plan import Column, Source
from penstock.storage import segments
from penstock.storage.segments import Position, RangeDelete
from penstock.types import ColumnType
from spark_jobs.history import TableHistory

COLUMNS = (Column("ts", ColumnType("TIMESTAMP")), Column("v", ColumnType("INT")))
TABLE = Table(7, "db", "t", "plain", "in.db", 1, "ms", (TableVersion(8, COLUMNS),))


def worker(root: str) -> Any:
    """What a history asks of a worker, with a catalog of one table."""
    catalog = SimpleNamespace(
        topic_owner=lambda topic: 1,
        schema=lambda number: (TABLE, TABLE.versions[-1]) if number == 8 else None,
    )
    return SimpleNamespace(
        settings=SimpleNamespace(segments_dir=root),
        catalog=SimpleNamespace(catalog=catalog, know=lambda ids: None),
        codecs=SimpleNamespace(decoder=lambda number: TableCodec(TABLE) if number == 8 else None),
    )


def record(offset: int) -> bytes:
    rows = pl.DataFrame(
        {"tbname": ["t"], "ts": [1000 + offset], "v": [offset]}, schema_overrides={"v": pl.Int32}
    )
    [(_, value)] = TableCodec(TABLE).encode_partitioned(rows, 1)
    return value


def flushed(root: str, first: int, last: int, deletes: tuple[RangeDelete, ...] = ()) -> None:
    offsets = list(range(first, last + 1))
    rows = pl.DataFrame(
        {
            "tbname": "t",
            "ts": [1000 + i for i in offsets],
            "v": offsets,
            "_op": 0,
            "_offset": offsets,
            "_row": 0,
        },
        schema_overrides={"_op": pl.Int8, "_offset": pl.Int64, "_row": pl.UInt32, "v": pl.Int32},
    ).with_columns(pl.col("ts").cast(pl.Datetime("ms")))
    where = segments.directory(root, 7, 0, "in.db")
    segments.write(
        where, rows.to_arrow(), "ts", first, last, fresh=True, low=1000 + first, high=1000 + last
    )
    Position("in.db", 0, 1, last + 1, deletes=deletes).save(root)


def test_rows_go_from_the_tail_to_segments_and_these_are_merged(tmp_path: Path) -> None:
    root = str(tmp_path)
    flushed(root, 0, 3)
    history = TableHistory(
        worker(root), Source(7, "db", "t", "plain", COLUMNS, (), "ms"), "in.db", lambda: {0: 10}
    )
    # what a Kafka consumer would have brought; the tail takes it as `advance` does
    values: list[bytes | None] = [record(i) for i in range(4, 10)]
    values[4] = encode(ControlRecord("delete", table=7, low=1001, high=1002))
    tail = history._tail(0, 4)
    tail._take(Batch("in.db", 0, np.arange(4, 10), np.full(6, 5_000), [None] * 6, values), 6)
    tail._next = 10

    def seen() -> list[int]:
        versions = [v for piece in history.versions(["v"]) for v in piece["v"].to_list()]
        assert sorted(versions) == [0, 1, 2, 3, 4, 5, 6, 7, 9]
        return history.fetch(0, 5000)["v"].to_list()

    assert seen() == [0, 3, 4, 5, 6, 7, 9]
    flushed(root, 4, 7)
    assert seen() == [0, 3, 4, 5, 6, 7, 9]
    # merged, and what was merged is gone
    flushed(root, 0, 7)
    for part in ("0" * 20 + "-" + f"{3:020d}", f"{4:020d}-{7:020d}"):
        Path(segments.directory(root, 7, 0, "in.db"), f"{part}.parquet").unlink()
    assert seen() == [0, 3, 4, 5, 6, 7, 9]
    flushed(root, 8, 9, (RangeDelete(7, 8, None, 1001, 1002),))
    assert history.fetch(0, 5000)["v"].to_list() == [0, 3, 4, 5, 6, 7, 8, 9]


def test_a_renamed_column_is_found_in_segments_and_in_the_log(tmp_path: Path) -> None:
    root = str(tmp_path)
    flushed(root, 0, 3)
    renamed = (COLUMNS[0], Column("w", ColumnType("INT")), Column("v", ColumnType("VARCHAR", 8)))
    second = TableVersion(9, renamed[:2], (), (("v", "w"),), (("w", "v"),))
    third = TableVersion(10, renamed, (), (), (("w", "v"), ("v", "v#10")))
    table = replace(TABLE, versions=(*TABLE.versions, second, third))
    works = worker(root)
    works.catalog.catalog.schema = lambda number: (
        (table, table.version(number)) if number in (8, 10) else None
    )
    works.codecs.decoder = lambda number: TableCodec(table, number)
    source = Source(7, "db", "t", "plain", renamed, (), "ms")
    history = TableHistory(
        works, source, "in.db", lambda: {0: 6}, stored=lambda: table.stored_names
    )
    new = pl.DataFrame(
        {"tbname": ["t"], "ts": [1005], "v": ["x"], "w": [5]}, schema_overrides={"w": pl.Int32}
    )
    [(_, value)] = TableCodec(table).encode_partitioned(new, 1)
    tail = history._tail(0, 4)
    tail._take(
        Batch("in.db", 0, np.arange(4, 6), np.full(2, 5_000), [None] * 2, [record(4), value]), 2
    )
    tail._next = 6
    rows = history.fetch(0, 2000)
    assert rows["w"].to_list() == [0, 1, 2, 3, 4, 5] and rows["v"].to_list() == [None] * 5 + ["x"]
    pieces = pl.concat(history.versions(["w", "v"]))
    assert sorted(pieces["w"].to_list()) == [0, 1, 2, 3, 4, 5] and pieces[
        "v"
    ].drop_nulls().to_list() == ["x"]

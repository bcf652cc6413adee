"""Rows out of segments for a reader from the beginning: each once, though files are merged while it
reads.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import polars as pl

from penstock.catalog.model import Table, TableVersion
from penstock.sql.plan import Column
from penstock.storage import segments
from penstock.storage.segments import Position
from penstock.types import ColumnType
from services.federation import stored

TABLE = Table(
    7,
    "db",
    "t",
    "plain",
    "in.db",
    1,
    "ms",
    (TableVersion(8, (Column("ts", ColumnType("TIMESTAMP")), Column("v", ColumnType("INT")))),),
)


def write(root: str, first: int, last: int) -> None:
    rows = pl.DataFrame(
        {
            "tbname": "t",
            "ts": [1000 + i for i in range(first, last + 1)],
            "v": range(first, last + 1),
            "_op": 0,
            "_offset": range(first, last + 1),
            "_row": 0,
        },
        schema_overrides={"_op": pl.Int8, "_offset": pl.Int64, "_row": pl.UInt32, "v": pl.Int32},
    ).with_columns(pl.col("ts").cast(pl.Datetime("ms")))
    where = segments.directory(root, 7, 0, "in.db")
    segments.write(
        where, rows.to_arrow(), "ts", first, last, fresh=True, low=1000 + first, high=1000 + last
    )


def test_files_are_merged_while_somebody_reads(tmp_path: Path) -> None:
    root = str(tmp_path)
    for first in (0, 10, 20):
        write(root, first, first + 9)
    where = Position("in.db", 0, 1, 30)
    where.save(root)
    pieces = stored.read(root, TABLE, 0, where, 5)
    seen = next(pieces)["v"].to_list()
    # meanwhile the store flushes, merges all but the first, and removes what it merged
    write(root, 10, 39)
    Position("in.db", 0, 1, 40).save(root)
    for first in (10, 20):
        Path(
            segments.directory(root, 7, 0, "in.db"), f"{first:020d}-{first + 9:020d}.parquet"
        ).unlink()
    for piece in pieces:
        seen += piece["v"].to_list()
    assert seen == list(range(5, 30))


def test_columns_come_under_their_present_names(tmp_path: Path) -> None:
    root = str(tmp_path)
    write(root, 0, 1)
    where = Position("in.db", 0, 1, 2)
    where.save(root)
    first = TABLE.versions[0]
    renamed = (
        first.columns[0],
        Column("w", ColumnType("INT")),
        Column("v", ColumnType("VARCHAR", 8)),
    )
    table = dataclasses.replace(
        TABLE, versions=(first, TableVersion(9, renamed, stored=(("w", "v"), ("v", "v#9"))))
    )
    [piece] = stored.read(root, table, 0, where, 0)
    assert piece["w"].to_list() == [0, 1] and piece["v"].to_list() == [None, None]

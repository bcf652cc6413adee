"""Segments split for more partitions: every version of every row goes to its table's partition,
once, however often it is done.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl

from penstock.catalog.model import Database, Move, Table, TableVersion
from penstock.rows.partition import partition
from penstock.sql.plan import Column
from penstock.storage import segments
from penstock.storage.segments import Position, RangeDelete
from penstock.types import ColumnType
from services.store import splitting
from services.store.flush import Newest, SegmentLayout, flush, merge
from services.store.tail import Tail

COLUMNS = (
    Column("ts", ColumnType("TIMESTAMP")),
    Column("v", ColumnType("INT")),
    Column("w", ColumnType("VARCHAR", 4)),
)
TABLE = Table(
    7,
    "d",
    "m",
    "stable",
    "in.d",
    2,
    "ms",
    (TableVersion(100, COLUMNS, (Column("g", ColumnType("INT")),)),),
)
DATABASE = Database(1, "d", partitions=2, move=Move(6, True, (99, 199)))


def test_split_again_and_again(
    tmp_path: Path, layout: SegmentLayout, rows: Callable[..., pl.DataFrame]
) -> None:
    root = str(tmp_path)
    delete = RangeDelete(7, 50, None, 0, 5)
    tails = {
        p: Tail(Position("in.d", p, 1, producers={"s:1": (4, 0)}, deletes=(delete,)))
        for p in range(2)
    }
    wanted: list[tuple[object, ...]] = []

    def put(first: int) -> None:
        for p, tail in tails.items():
            given = [
                (f"t{i}", first + i, i, "w", 0, first + i % 3)
                for i in range(40)
                if partition(f"t{i}", 2) == p
            ]
            wanted.extend((name, ts, offset) for name, ts, _, _, _, offset in given)
            tail.append(first + 3, {7: rows(*given)}, [], 1.0)
            frozen = tail.freeze()
            assert frozen is not None
            tail.thaw(flush(root, "in.d", p, 1, frozen, {7: layout}, {7: Newest()}))

    def positions() -> dict[int, Position]:
        return {p: t.position for p, t in tails.items()}

    put(0)
    assert splitting.split(root, DATABASE, [TABLE], positions()) == 40
    assert splitting.split(root, DATABASE, [TABLE], positions()) == 0
    for first in range(3, 27, 3):
        put(first)
    for p, tail in tails.items():  # files that were split are merged with others meanwhile
        assert merge(root, layout, p, tail.next) > 0
    splitting.split(root, DATABASE, [TABLE], positions())
    begins = {q: (100, 200)[q % 2] for q in range(6)}
    splitting.commit(root, DATABASE, begins, positions())

    found: list[tuple[object, ...]] = []
    for q, begin in begins.items():
        position = Position.load(root, "in.d-g2", q, 1)
        assert position == Position("in.d-g2", q, 1, begin, {"s:1": (4, 0)}, (delete,))
        read = segments.read(
            segments.segments(segments.directory(root, 7, q, "in.d-g2"), position.next),
            time_column="ts",
        )
        assert read is not None
        assert {partition(name, 6) for name in read["tbname"].unique()} == {q}
        found += read.select("tbname", pl.col("ts").cast(pl.Int64), "_offset").rows()
    assert sorted(found, key=str) == sorted(wanted, key=str)


def test_a_tail_remembers_that_it_has_ended(tmp_path: Path) -> None:
    tail = Tail(Position("in.d", 0, 1))
    tail.close()
    assert (tail.over, tail.ended) == ("close", False)
    assert (tail.end(9), tail.end(12), tail.ended) == (9, 9, True)
    tail.close()
    tail.append(13, {}, [], 1.0)
    frozen = tail.freeze()
    assert frozen is not None
    flush(str(tmp_path), "in.d", 0, 1, frozen, {}, {}).save(str(tmp_path))
    assert Tail(Position.load(str(tmp_path), "in.d", 0, 1)).end(20) == 9

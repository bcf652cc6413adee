"""Results that leave together: each is sent under its own stream's guard, and one that does not fit
costs the others nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from penstock.catalog.model import Table, TableVersion
from penstock.codec import Outgoing, TableCodec
from penstock.errors import SchemaError
from penstock.sql.plan import Column
from penstock.types import ColumnType
from spark_jobs.processor import result_batcher as module
from spark_jobs.processor.result_batcher import ResultBatcher


class Stream:
    """Notes what is sent for it, and why it failed."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.sent: list[tuple[int, bytes]] = []
        self.failure = ""

    def guard(self, action: Callable[[], None], first: int, last: int) -> None:
        assert (first, last) == (self.number, self.number + 1)
        try:
            action()
        except SchemaError as error:
            self.failure = error.message

    def part(self, rows: int = 100, longest: int = 1) -> Outgoing:
        columns = (Column("ts", ColumnType("TIMESTAMP")), Column("v", ColumnType("VARCHAR", 10)))
        target = Table(
            self.number,
            "db",
            f"t{self.number}",
            "plain",
            "in.db",
            4,
            "ms",
            (TableVersion(100 + self.number, columns, ()),),
        )
        v = ["x"] * (rows - 1) + ["x" * longest]
        frame = pl.DataFrame(
            {"tbname": [f"d{i % 3}" for i in range(rows)], "ts": range(rows), "v": v}
        )
        return Outgoing(
            TableCodec(target), frame, 4, f"p{self.number}", self.number, self.number + 1
        )


def test_each_gets_its_own() -> None:
    streams = [Stream(i) for i in range(4)]
    batcher = ResultBatcher()
    for stream in streams:
        batcher.add(stream, stream.part(), stream.sent.extend)
    assert not any(s.sent for s in streams)
    batcher.flush()
    assert all(s.sent == s.part().encode() for s in streams)
    batcher.flush()
    assert all(s.sent == s.part().encode() for s in streams)


def test_one_that_does_not_fit_fails_alone() -> None:
    streams = [Stream(i) for i in range(3)]
    batcher = ResultBatcher()
    for stream in streams:
        batcher.add(
            stream, stream.part(longest=1_000_000 if stream.number == 1 else 1), stream.sent.extend
        )
    batcher.flush()
    assert [s.failure for s in streams] == ["", "a row is larger than a record may be", ""]
    assert [bool(s.sent) for s in streams] == [True, False, True]


def test_whatever_goes_wrong_together_is_tried_alone(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    def panic(parts: object) -> None:
        raise BaseException("a panic")  # noqa: TRY002

    monkeypatch.setattr(module, "encode_together", panic)
    streams = [Stream(i) for i in range(2)]
    batcher = ResultBatcher()
    for stream in streams:
        batcher.add(stream, stream.part(), stream.sent.extend)
    batcher.flush()
    assert all(s.sent == s.part().encode() for s in streams)


def test_many_rows_do_not_wait_for_the_last_stream(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(module, "_MOST_ROWS", 150)
    streams = [Stream(i) for i in range(3)]
    batcher = ResultBatcher()
    for stream in streams:
        batcher.add(stream, stream.part(), stream.sent.extend)
    assert [bool(s.sent) for s in streams] == [True, True, False]

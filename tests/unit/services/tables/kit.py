"""A stream table, its log in memory, and nodes that read it as far as a test lets them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.bus import Batch, Delivery
from penstock.catalog import stream_tables
from penstock.catalog.model import Database, Replicated, Table
from penstock.catalog.view import Catalog
from penstock.errors import BusError, PenstockError
from penstock.runtime.clock import ManualClock
from penstock.sql.plan import Column
from penstock.types import ColumnType
from services.tables.copy import Copy
from services.tables.leadership_term import LeadershipTerm
from services.tables.replica import Replica
from services.tables.rows import TableRows
from services.tables.session import LeaderSession
from services.tables.shape import Shape
from services.tables.writes import ProducerWrite

NOW = 1_800_000_000_000_000_000


def stream_table(
    *,
    limit: int = 100,
    keys: tuple[str, ...] = (),
    minutes: float = 1440,
    stamped: str | None = None,
    **options: Any,
) -> Table:
    catalog = Catalog([Database(100, "ha")])
    ids = iter(range(200, 300))
    columns = [
        Column("ts", ColumnType("TIMESTAMP")),
        Column("sym", ColumnType("VARCHAR", 8)),
        Column("n", ColumnType("BIGINT")),
        Column("came", ColumnType("TIMESTAMP")),
    ]
    wanted = Replicated(11, limit, limit, minutes, keys, timestamp_column=stamped, **options)
    made = stream_tables.create(catalog, lambda: next(ids), "ha", "trades", columns, wanted)
    (table,) = made.puts
    assert isinstance(table, Table)
    return table


def shape(table: Table, *, flush_rows: int = 50, pre_cache: int | None = None) -> Shape:
    return (
        Shape.of(table, flush_rows, 1000)
        if pre_cache is None
        else replace(Shape.of(table, flush_rows, 1000), pre_cache=pre_cache)
    )


def rows(*numbers: int, sym: str = "A") -> pa.Table:
    n = len(numbers)
    return pa.table(
        {
            "ts": pa.array([NOW // 10**6] * n, pa.timestamp("ms", "UTC")),
            "sym": [sym] * n,
            "n": pa.array(numbers, pa.int64()),
        }
    )


def whole_rows(*numbers: int) -> pa.Table:
    """With every column, as a program sends them that knows the table."""
    return rows(*numbers).append_column("came", pa.nulls(len(numbers), pa.timestamp("ms", "UTC")))


class Outcome:
    """Takes what becomes of a write, as a future does, without a loop."""

    def __init__(self) -> None:
        self.result: int | None = None
        self.error: PenstockError | None = None

    def done(self) -> bool:
        return self.result is not None or self.error is not None

    def set_result(self, rows: int, /) -> None:
        self.result = rows

    def set_exception(self, error: PenstockError, /) -> None:
        self.error = error


class Log:
    """One partition: records in order, with the producers' reports held back until a test wants
    them.
    """

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.values: list[bytes] = []
        self.times: list[int] = []
        self.clock = ManualClock(NOW)

    def add(self, value: bytes) -> int:
        self.values.append(value)
        self.times.append(self.clock.now() // 10**6)
        return len(self.values) - 1

    def batch(self, start: int, stop: int) -> Batch:
        n = stop - start
        return Batch(
            self.topic,
            0,
            np.arange(start, stop, dtype=np.int64),
            np.array(self.times[start:stop], dtype=np.int64),
            [None] * n,
            list(self.values[start:stop]),
        )


class Bus:
    """What a node sends; nothing is in the log before `pass_on`."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.queue: list[tuple[bytes, Callable[[Delivery | BusError], None]]] = []
        self.reports: list[tuple[Callable[[Delivery | BusError], None], Delivery]] = []

    def send(
        self,
        topic: str,
        value: bytes,
        *,
        key: bytes,
        partition: int,
        on_delivery: Callable[[Delivery | BusError], None],
    ) -> None:
        assert (topic, partition) == (self.log.topic, 0)
        self.queue.append((value, on_delivery))

    def pass_on(self, count: int = 1_000) -> None:
        """Let records reach the log; their reports wait."""
        for value, report in self.queue[:count]:
            self.reports.append((report, Delivery(self.log.topic, 0, self.log.add(value), 0)))
        del self.queue[:count]

    def report(self, count: int = 1_000) -> None:
        for report, delivery in self.reports[:count]:
            report(delivery)
        del self.reports[:count]


class Straight:
    """The short way to the log, for one record at a time; what becomes of it a test decides."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.open = False
        self.sent = 0
        self._under_way: list[tuple[bytes, Callable[[Delivery | BusError | None], None]]] = []
        self._written: list[tuple[Callable[[Delivery | BusError | None], None], Delivery]] = []

    def ready(self, topic: str) -> bool:
        return self.open

    def send(
        self,
        topic: str,
        value: bytes,
        key: bytes,
        answer: Callable[[Delivery | BusError | None], None],
    ) -> None:
        assert (topic, key) == (self.log.topic, b"trades")
        self.sent += 1
        self._under_way.append((value, answer))

    def pass_on(self) -> None:
        """Let what is under way reach the log; its answers wait."""
        for value, answer in self._under_way:
            self._written.append((answer, Delivery(self.log.topic, 0, self.log.add(value), 0)))
        self._under_way.clear()

    def report(self) -> None:
        written = self._written
        self._written = []
        for answer, delivery in written:
            answer(delivery)

    def refuse(self) -> None:
        """The broker says that it has not written what is under way."""
        refused = self._under_way
        self._under_way = []
        for _, answer in refused:
            answer(None)

    def cut(self) -> None:
        """The connection breaks: what has no answer may be in the log or not."""
        broken = [answer for _, answer in self._under_way] + [answer for answer, _ in self._written]
        self._under_way = []
        self._written = []
        for answer in broken:
            answer(BusError("the connection to Kafka broke"))


class Node:
    """A copy and, while it leads, a session."""

    def __init__(
        self, name: str, table: Table, log: Log, directory: Path, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.name = name
        self.table = table
        self.log = log
        self.loop = loop
        self.bus = Bus(log)
        self.direct = Straight(log)
        self.replica = Replica(
            table, TableRows(table, 86_400_000), Copy(directory / name, shape(table)), loop
        )
        self.session: LeaderSession | None = None
        self.terms = 0
        #: how often the writer thread was woken
        self.woken = 0

    def read(self, count: int = 1_000) -> None:
        """Apply up to *count* more records."""
        start = self.replica.copy.offset
        stop = min(start + count, len(self.log.values))
        if stop > start:
            self.replica.apply(self.log.batch(start, stop))

    def lead(self, epoch: int) -> LeaderSession:
        self.terms += 1
        term = LeadershipTerm(epoch, f"{self.name}.{self.terms}")
        session = LeaderSession(
            self.replica,
            term,
            self.bus,
            self.log.clock,
            self.loop,  # type: ignore[arg-type]
            max_bytes=1 << 30,
            wake=self._wake,
            on_over=lambda why: None,
            direct=self.direct,  # type: ignore[arg-type]
        )
        term.expect(self.table.id)
        self.session = self.replica.session = session
        session.start()
        return session

    def _wake(self) -> None:
        self.woken += 1

    def settle(self) -> None:
        """Everything that can happen without others happens."""
        for _ in range(3):
            if self.session is not None:
                while self.session.work():
                    pass
            for way in (self.direct, self.bus):
                way.pass_on()
                way.report()
            self.read()

    def write(
        self,
        producer: str,
        sequence: int,
        data: pa.Table,
        settled: int | None = None,
        *,
        after: int | None = None,
    ) -> asyncio.Future[int]:
        done: asyncio.Future[int] = self.loop.create_future()
        assert self.session is not None
        self.session.submit(
            ProducerWrite(
                producer,
                sequence,
                settled if settled is not None else sequence,
                data,
                data.nbytes,
                done,
                after,
            )
        )
        return done

    def numbers(self) -> list[Any]:
        """Column n of all rows that can be read, in order."""
        found: list[Any] = []
        at = self.replica.copy.earliest
        while (chunk := self.replica.copy.read(at, 1_000)) is not None:
            assert chunk.batch.column("row_id").to_pylist() == list(range(chunk.first, chunk.next))
            found += chunk.batch.column("n").to_pylist()
            at = chunk.next
        return found

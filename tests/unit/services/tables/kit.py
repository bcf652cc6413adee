"""A stream table, its log in memory, and nodes that read it as far as a test lets them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.bus import Batch, BusError, Delivery
from penstock.catalog import changes
from penstock.catalog.model import Database, Table
from penstock.catalog.view import Catalog
from penstock.clock import ManualClock
from penstock.sql.plan import Column
from penstock.types import ColumnType
from services.tables.copy import Copy, Shape
from services.tables.replica import Replica
from services.tables.rows import Rows
from services.tables.session import Session, Term
from services.tables.writes import Write

NOW = 1_800_000_000_000_000_000


def stream_table(*, limit: int = 100, keys: tuple[str, ...] = (), minutes: float = 1440, stamped: str | None = None) -> Table:
    catalog = Catalog([Database(100, "ha")])
    ids = iter(range(200, 300))
    columns = [
        Column("ts", ColumnType("TIMESTAMP")), Column("sym", ColumnType("VARCHAR", 8)), Column("n", ColumnType("BIGINT")),
        Column("came", ColumnType("TIMESTAMP")),
    ]  # fmt: skip
    made = changes.create_stream_table(
        catalog, lambda: next(ids), "ha", "trades", columns, 11, limit, key_columns=keys, retention_minutes=minutes,
        timestamp_column=stamped,
    )  # fmt: skip
    (table,) = made.puts
    assert isinstance(table, Table)
    return table


def shape(table: Table, *, flush_rows: int = 50, pre_cache: int | None = None) -> Shape:
    r = table.replicated
    assert r is not None
    return Shape(table.id, r.cache_limit, int(r.retention_minutes * 60_000), r.key_columns, pre_cache or r.cache_limit, flush_rows, 1000)


def rows(*numbers: int, sym: str = "A") -> pa.Table:
    n = len(numbers)
    return pa.table({"ts": pa.array([NOW // 10**6] * n, pa.timestamp("ms", "UTC")), "sym": [sym] * n, "n": pa.array(numbers, pa.int64())})


class Log:
    """One partition: records in order, with the producers' reports held back until a test wants them."""

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
            self.topic, 0, np.arange(start, stop, dtype=np.int64), np.array(self.times[start:stop], dtype=np.int64), [None] * n,
            list(self.values[start:stop]),
        )  # fmt: skip


class Bus:
    """What a node sends; nothing is in the log before `pass_on`."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.queue: list[tuple[bytes, Callable[[Delivery | BusError], None]]] = []
        self.reports: list[tuple[Callable[[Delivery | BusError], None], Delivery]] = []

    def send(self, topic: str, value: bytes, *, key: bytes, partition: int, on_delivery: Callable[[Delivery | BusError], None]) -> None:
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


class Node:
    """A copy and, while it leads, a session."""

    def __init__(self, name: str, table: Table, log: Log, directory: Path, loop: asyncio.AbstractEventLoop) -> None:
        self.name, self.table, self.log, self.loop = name, table, log, loop
        self.bus = Bus(log)
        self.replica = Replica(table, Rows(table, 86_400_000), Copy(directory / name, shape(table)), loop)
        self.session: Session | None = None
        self.terms = 0

    def read(self, count: int = 1_000) -> None:
        """Apply up to *count* more records."""
        start = self.replica.copy.offset
        stop = min(start + count, len(self.log.values))
        if stop > start:
            self.replica.apply(self.log.batch(start, stop))

    def lead(self, epoch: int) -> Session:
        self.terms += 1
        term = Term(epoch, f"{self.name}.{self.terms}")
        session = Session(
            self.replica, term, self.bus, self.log.clock, self.loop,  # type: ignore[arg-type]
            max_bytes=1 << 30, wake=lambda: None, on_over=lambda why: None,
        )  # fmt: skip
        term.expect(self.table.id)
        self.session = self.replica.session = session
        session.start()
        return session

    def settle(self) -> None:
        """Everything that can happen without others happens."""
        for _ in range(3):
            if self.session is not None:
                while self.session.work():
                    pass
            self.bus.pass_on()
            self.bus.report()
            self.read()

    def write(
        self, producer: str, sequence: int, data: pa.Table, settled: int | None = None, *, after: int | None = None
    ) -> asyncio.Future[int]:
        done: asyncio.Future[int] = self.loop.create_future()
        assert self.session is not None
        self.session.submit(Write(producer, sequence, settled if settled is not None else sequence, data, data.nbytes, done, after))
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

"""Rows for stream tables, on their way to the leaders of their groups.

Rows that come in over SQL, HTTP, WebSocket or line protocol are checked here like those of any
table, and written by one producer per table, so a change of the leader loses and doubles nothing.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import polars as pl
import pyarrow as pa

from gateway import row_checks
from gateway.coalescer import PendingWrite
from gateway.idempotency import Receipt
from gateway.row_batches import frame_of
from penstock.catalog.model import Table
from penstock.catalog.view import Catalog
from penstock.client.appender import Appender
from penstock.client.nodes import Nodes
from penstock.errors import BusError, CatalogError, PenstockError
from penstock.runtime import vital
from penstock.runtime.clock import Clock
from penstock.sql.plan import TICKS_PER_SECOND


class StreamTableRows:
    """`write` from the event loop; rows are checked and sent in threads."""

    def __init__(
        self,
        nodes: Nodes,
        catalog: Callable[[], Catalog],
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        timeout: float,
    ) -> None:
        """
        Args:
            timeout: seconds to look for a leader.
        """
        self._nodes = nodes
        self._catalog = catalog
        self._clock = clock
        self._loop = loop
        self._timeout = timeout
        self._appenders: dict[int, Appender] = {}
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(4, "stream-tables")
        self._running: set[asyncio.Task[None]] = set()

    def close(self) -> None:
        for appender in self._appenders.values():
            appender.abandon()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def write(self, write: PendingWrite, key: str | None) -> asyncio.Future[Receipt]:
        """Have the leader write rows; with *key*, only if that is new."""
        task = self._loop.create_task(self._run(write, key))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return write.done

    async def _run(self, write: PendingWrite, key: str | None) -> None:
        try:
            sent = await self._loop.run_in_executor(self._threads, self._submit, write, key)
            write.done.set_result(Receipt(await asyncio.wrap_future(sent)))
        except PenstockError as error:
            if not write.done.done():
                write.done.set_exception(error)
        except vital.FAULTS as bug:
            if not write.done.done():
                write.done.set_exception(
                    BusError(
                        "the rows could not be written",
                        code="E_INTERNAL",
                        detail=type(bug).__name__,
                    )
                )

    def _submit(self, write: PendingWrite, key: str | None) -> Future[int]:
        layout = write.layout
        frame = frame_of(layout, write)
        now = self._clock.now() * TICKS_PER_SECOND[layout.precision] // 10**9
        row_checks.check(layout, frame, now)
        data = _arrow(frame.select(c.name for c in layout.columns))
        table = self._catalog().table_by_id(layout.table_id)
        if table is None or table.replicated is None:
            raise CatalogError(f'table "{layout.table}" was dropped', code="E_NO_TABLE")
        return self._appender(table).submit(data) if key is None else self._once(table, data, key)

    def _appender(self, table: Table) -> Appender:
        with self._lock:
            found = self._appenders.get(table.id)
            if found is None:
                found = self._appenders[table.id] = self._new_appender(table)
            return found

    def _once(self, table: Table, data: pa.Table, key: str) -> Future[int]:
        """Send a write under an idempotency key: the only one of a producer named by it."""
        appender = self._new_appender(table, f"k:{key}"[:128])
        sent = appender.submit(data)
        sent.add_done_callback(lambda _: appender.abandon())
        return sent

    def _new_appender(self, table: Table, producer: str = "") -> Appender:
        assert table.replicated is not None
        return Appender(
            self._nodes,
            f"{table.database}.{table.name}",
            table.replicated.group,
            patience=self._timeout,
            producer=producer,
        )


def _arrow(frame: pl.DataFrame) -> pa.Table:
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())

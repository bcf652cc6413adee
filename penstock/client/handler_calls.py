"""Rows of a subscription on their way into its handler: gathered, handed over when they are due,
and counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.client.result import Result
from penstock.client.subscription_options import SubscriptionOptions
from penstock.client.wire import ROW_ID
from penstock.notebook.newest_rows import NewestRows


@dataclass(frozen=True)
class Message(Result):
    """Rows as a table; `row_ids` are their indexes in the stream table."""

    row_ids: pa.ChunkedArray | None = None


class Executors:
    """Threads that subscriptions with a hash share: two of the same hash never run at the same
    time.
    """

    def __init__(self, count: int = 4) -> None:
        self._threads = [ThreadPoolExecutor(1, f"sub-executor-{i}") for i in range(count)]

    def of(self, number: int) -> ThreadPoolExecutor:
        return self._threads[number % len(self._threads)]

    def close(self) -> None:
        for thread in self._threads:
            thread.shutdown(wait=False, cancel_futures=True)


@dataclass
class Statistics:
    """Counts of rows and calls: one line of subWorkers in `client.ha.stat()`."""

    rows: int = 0
    calls: int = 0
    failed: int = 0
    last_error: str = ""
    connects: int = 0
    cumulative_ms: float = 0.0
    last_ms: float = 0.0
    #: (monotonic time, row) of the last rows handed over
    handled: tuple[float, int] = field(default=(0.0, -1))


class HandlerCalls:
    """Rows that wait for their call, and the calls. One thread at a time."""

    def __init__(
        self, handler: Callable[..., Any], options: SubscriptionOptions, executors: Executors
    ) -> None:
        self._handler = handler
        self._options = options
        self._executors = executors
        self.stat = Statistics()
        self._rows: list[pa.Table] = []
        #: rows that wait
        self.waiting = 0
        self.newest = NewestRows()
        #: since when, or since the last call
        self._since = 0.0

    def add(self, rows: pa.Table) -> None:
        if not self.waiting and not self._options.time_trigger:
            self._since = time.monotonic()
        self._rows.append(rows)
        self.newest.add(rows)
        self.waiting += rows.num_rows

    def drop(self) -> None:
        """Forget the rows that wait."""
        self._rows = []
        self.waiting = 0

    def seconds_left(self) -> float | None:
        """Return the seconds until a call is due without another row; None if none will be."""
        options = self._options
        if not options.time_trigger and (options.batch_size <= 0 or not self.waiting):
            return None
        return self._since + options.throttle - time.monotonic()

    def is_due(self) -> bool:
        """Tell whether it is time to call the handler."""
        options = self._options
        waits = self.waiting > 0
        if waits and self.waiting >= options.batch_size:
            return True
        late = time.monotonic() >= self._since + options.throttle
        return late and (options.time_trigger or (waits and options.batch_size > 0))

    def run(self) -> bool:
        """Call the handler with what waits. Tell whether there was a call."""
        self._since = time.monotonic()
        if not self.waiting and not self._options.time_trigger:
            return False
        rows = pa.concat_tables(self._rows) if self._rows else None
        self.drop()
        if self._options.hash >= 0:
            self._executors.of(self._options.hash).submit(self._handle, rows).result()
        else:
            self._handle(rows)
        return True

    def _handle(self, rows: pa.Table | None) -> None:
        began = time.monotonic()
        last = int(rows.column(ROW_ID)[-1].as_py()) if rows is not None else -1
        try:
            message = self._message(rows)
            if self._options.handler_need_msg_id:
                self._handler(message, last)
            else:
                self._handler(message)
        except Exception as failed:
            # the stream goes on: one bad message must not stop those behind it
            self.stat.failed += 1
            self.stat.last_error = f"{type(failed).__name__}: {failed}"[:500]
        self.stat.calls += 1
        self.stat.rows += rows.num_rows if rows is not None else 0
        self.stat.last_ms = (time.monotonic() - began) * 1000
        self.stat.cumulative_ms += self.stat.last_ms
        self.stat.handled = (time.monotonic(), last)

    def _message(self, rows: pa.Table | None) -> Any:
        """Return rows as the handler wants them: a result without the ids, or a list of columns."""
        if rows is None:
            return Message(pa.table({})) if self._options.msg_as_table else []
        plain = rows.drop_columns([ROW_ID])
        return (
            Message(plain, rows.column(ROW_ID))
            if self._options.msg_as_table
            else [column.to_pylist() for column in plain.columns]
        )

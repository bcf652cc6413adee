"""Rows written without pause, under idempotency keys, until told to stop, beside a stream over them
and a subscriber to its windows.

Every write is repeated until it is acked, so in the end each batch has to be there exactly once,
each window has to be right, and the subscriber has to have seen each window once, whatever died in
between.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Any

from penstock.client.connection import Connection
from penstock.errors import PenstockError

#: 2026-03-01 00:00 UTC in milliseconds
START = 1772323200000
TABLES = 6
STEP_MS = 100
WINDOW_MS = 1000
PER_WINDOW = WINDOW_MS // STEP_MS


class Load:
    """Of one database, which it makes and drops. Use it in a `with`."""

    def __init__(
        self, client: Connection, database: str, *, partitions: int = 2, pause: float = 0.02
    ) -> None:
        self.database = database
        self._client = client
        self._pause = pause
        self.acked = 0
        #: batch → when its ack came
        self.times: dict[int, float] = {}
        self.seen: Counter[tuple[str, int]] = Counter()
        #: newest window that the subscriber has seen, in batches
        self.newest = -1
        self.retries = 0
        self.problem: Exception | None = None
        self._stop = threading.Event()
        self._abandon = threading.Event()
        client.execute(f"CREATE DATABASE {database} PARTITIONS {partitions}")
        client.execute(f"CREATE STABLE {database}.m (ts TIMESTAMP, v INT) TAGS (place INT)")
        client.execute(
            f"CREATE STREAM {database}.s TRIGGER WINDOW_CLOSE INTO {database}.w TAGS (name VARCHAR(16)) AS "
            f"SELECT _wstart, count(*) AS n, sum(v) AS v FROM {database}.m PARTITION BY tbname AS name INTERVAL(1s)"
        )
        self._subscription = client.subscribe(f"{database}.s", stream=True).open()
        self._threads = [
            threading.Thread(target=self._guard, args=(work,), daemon=True)
            for work in (self._write, self._listen)
        ]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._abandon.set()
        self._subscription.close()
        for thread in self._threads:
            thread.join(60)

    def _guard(self, work: Any) -> None:
        try:
            work()
        except Exception as error:
            if not self._stop.is_set():
                self.problem = error

    def _write(self) -> None:
        batch = 0
        while not self._stop.is_set():
            rows = [
                {"tbname": f"t{i}", "ts": START + batch * STEP_MS, "v": batch + i, "place": i}
                for i in range(TABLES)
            ]
            while True:
                try:
                    self._client.write(
                        f"{self.database}.m", rows, idempotency_key=f"{self.database}-{batch}"
                    )
                    break
                except PenstockError:
                    self.retries += 1
                    if self._abandon.wait(0.1):
                        return
            batch += 1
            self.acked = batch
            self.times[batch] = time.monotonic()
            self._stop.wait(self._pause)

    def _listen(self) -> None:
        for update in self._subscription:
            for row in update.items:
                self.seen[row["name"], row["_wstart"]] += 1
                self.newest = max(self.newest, (row["_wstart"] - START) // STEP_MS)

    def wait(self, condition: Any, seconds: float = 240.0) -> float:
        """Seconds until *condition* holds."""
        began = time.monotonic()
        while not condition():
            if self.problem is not None:
                raise AssertionError("the load broke") from self.problem
            assert time.monotonic() - began < seconds, (
                f"acked {self.acked}, newest window {self.newest}, retries {self.retries}"
            )
            time.sleep(0.02)
        return time.monotonic() - began

    def recovery(self) -> tuple[float, float]:
        """Wait until writes are acked and windows over them arrive that began after now; seconds of
        either.
        """
        began = time.monotonic()
        batch = self.acked
        self.wait(lambda: self.acked >= batch + 2)
        acked = self.times[batch + 2] - began
        self.wait(lambda: self.newest > batch + PER_WINDOW)
        return acked, time.monotonic() - began

    def check(self) -> None:
        """Stop writing; everything acked is there once, every window is right, and was told
        once.
        """
        self._stop.set()
        self._threads[0].join(200)
        assert not self._threads[0].is_alive() and self.problem is None, self.problem
        self._settle(lambda: self._client.execute(f"FLUSH STREAM {self.database}.s"))
        self._settle(lambda: self._client.drain(self.database))
        found = self._client.query(f"SELECT count(*) AS n, sum(v) AS v FROM {self.database}.m").rows
        values = {i: [b + i for b in range(self.acked)] for i in range(TABLES)}
        assert found == [(TABLES * self.acked, sum(map(sum, values.values())))]
        rows = self._client.query(f"SELECT name, _wstart, n, v FROM {self.database}.w").rows
        windows = [(name, round(start.timestamp() * 1000), n, v) for name, start, n, v in rows]
        wanted = {
            (f"t{i}", START + first * STEP_MS, len(part), sum(part))
            for i, all_ in values.items()
            for first in range(0, self.acked, PER_WINDOW)
            for part in [all_[first : first + PER_WINDOW]]
        }
        assert len(windows) == len(wanted)
        assert set(windows) == wanted
        self.wait(lambda: len(self.seen) == len(wanted), 60)
        assert {key for key, times in self.seen.items() if times != 1} == set()

    def drop(self) -> None:
        """The database is of no more use."""
        self._settle(lambda: self._client.execute(f"DROP STREAM {self.database}.s"))
        self._settle(lambda: self._client.execute(f"DROP DATABASE {self.database}"))

    def _settle(self, action: Any, seconds: float = 240.0) -> None:
        """Repeat while services come back."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                action()
                return
            except PenstockError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

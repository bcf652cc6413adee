"""Writers of rows stop for a moment while the partitions of a database change: what is under way,
and who has stopped.

A `Gate` counts writes on their way to each topic and lets none through while the catalog says that
the topic is halted; `Halts` says in Redis once nothing is under way any more. What a halted writer
does with what it gets, hold or refuse, is its own affair.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

import redis

from penstock.catalog.apply import Changed
from penstock.catalog.reader import CatalogReader
from penstock.repartition import progress
from penstock.runtime import log, vital

_EVERY_SECONDS = 1.0
_LONGEST_SECONDS = 60.0
_log = log.get(__name__)


class Gate:
    """Thread-safe."""

    def __init__(self, halted: Callable[[str], bool]) -> None:
        """*halted*: `Catalog.is_halted`."""
        self._halted = halted
        self._under_way: Counter[str] = Counter()
        self._changed = threading.Condition()

    def enter(self, topic: str) -> bool:
        """Tell whether a write to *topic* may go; it counts until `leave`."""
        with self._changed:
            if self._halted(topic):
                return False
            self._under_way[topic] += 1
            return True

    def leave(self, topic: str) -> None:
        """A write that entered has come to its end."""
        with self._changed:
            self._under_way[topic] -= 1
            self._changed.notify_all()

    def wait_quiet(self, topic: str, timeout: float) -> bool:
        """Wait until nothing is on its way to *topic*."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._under_way[topic], timeout)


class Halts(threading.Thread):
    """Tells Redis that this writer has stopped, as often as somebody might have forgotten it; runs
    until `stop`.
    """

    def __init__(
        self, catalog: CatalogReader, gate: Gate, client: redis.Redis, writer: str
    ) -> None:
        super().__init__(name="halts", daemon=True)
        self._catalog = catalog
        self._gate = gate
        self._redis = client
        self._writer = writer
        self._wake = threading.Event()
        self._halt = threading.Event()
        catalog.listen(self._hear)

    def _hear(self, _: list[Changed]) -> None:
        self._wake.set()

    @vital.run
    def run(self) -> None:
        while not self._halt.is_set():
            self._wake.wait(_EVERY_SECONDS)
            self._wake.clear()
            for database in self._catalog.catalog.databases():
                if (
                    database.move is None
                    or not database.move.halted
                    or not self._gate.wait_quiet(database.topic, _LONGEST_SECONDS)
                ):
                    continue
                try:
                    progress.say(self._redis, progress.key(database), f"writer:{self._writer}", 1)
                except redis.RedisError as down:
                    _log.warning(
                        "cannot say that writing has stopped",
                        database=database.name,
                        reason=str(down),
                    )

    def stop(self) -> None:
        self._halt.set()
        self._wake.set()

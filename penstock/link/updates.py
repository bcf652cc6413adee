"""Events of a followed table, for listeners and iterators."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa


@dataclass(frozen=True)
class TableUpdate:
    """One event. `rows`: added or changed rows (and, where `_op` is 1, removed ones); `reset`: all
    is new; `clear`: cut off.
    """

    kind: Literal["rows", "delete", "reset", "clear", "restored"]
    rows: pa.Table | None = None


class UpdateFeed:
    """Hands updates to everybody who asked for them. Thread-safe."""

    def __init__(self, lock: threading.Condition) -> None:
        """`lock` is notified of every update."""
        self._lock = lock
        self._listeners: list[Callable[[TableUpdate], None]] = []
        self._watchers: list[queue.SimpleQueue[TableUpdate | None]] = []
        self._ended = False

    def listen(self, listener: Callable[[TableUpdate], None]) -> None:
        """Have *listener* called, on the publishing thread, with every update from now on."""
        with self._lock:
            self._listeners.append(listener)

    def watch(self, timeout: float | None) -> Iterator[TableUpdate | None]:
        """Yield updates from now on, and None once there are no more; ends when nothing came for
        *timeout* seconds.
        """
        watcher: queue.SimpleQueue[TableUpdate | None] = queue.SimpleQueue()
        with self._lock:
            self._watchers.append(watcher)
            if self._ended:
                watcher.put(None)
        try:
            while True:
                try:
                    update = watcher.get(timeout=timeout)
                except queue.Empty:
                    return
                yield update
                if update is None:
                    return
        finally:
            with self._lock:
                self._watchers.remove(watcher)

    def publish(self, update: TableUpdate) -> None:
        self._put(update)
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener(update)

    def end(self) -> None:
        """Tell everybody who watches, or will, that nothing more comes."""
        with self._lock:
            self._ended = True
        self._put(None)

    def _put(self, update: TableUpdate | None) -> None:
        with self._lock:
            watchers = list(self._watchers)
            self._lock.notify_all()
        for watcher in watchers:
            watcher.put(update)

"""Answers to writes and offsets, given in the event loop; and how much waits for one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

from penstock.errors import OverloadError, PenstockError
from services.tables.writes import Entry, ProducerWrite


class Answers:
    """Thread-safe."""

    def __init__(self, loop: asyncio.AbstractEventLoop, max_bytes: int) -> None:
        """*max_bytes*: of entries that may wait."""
        self._loop = loop
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._pending = 0

    def expect(self, entry: Entry) -> None:
        """Count an entry that waits from now on. Raises OverloadError."""
        with self._lock:
            if self._pending + entry.size > self._max_bytes and self._pending:
                raise OverloadError(
                    "too many writes wait", hint="wait for answers before writing more"
                )
            self._pending += entry.size

    def give(self, entries: Sequence[Entry], error: PenstockError | None) -> None:
        """Answer entries: with the number of their rows, or else with *error*."""
        with self._lock:
            self._pending -= sum(e.size for e in entries)
        if not entries or self._loop.is_closed():
            return
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self._loop.call_soon_threadsafe(_resolve, list(entries), error)
        else:
            _resolve(entries, error)  # this is the loop


def _resolve(entries: Sequence[Entry], error: PenstockError | None) -> None:
    for entry in entries:
        if entry.done.done():
            continue
        if error is not None:
            entry.done.set_exception(error)
        else:
            entry.done.set_result(entry.rows if isinstance(entry, ProducerWrite) else entry.row)

"""Writes that wait for the writer thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from services.tables.writes import Entry

#: writes that share records, at most: bytes
_TOGETHER = 8 << 20


class WaitingWrites:
    """In the order in which they came. Used under the session's lock."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """
        Args:
            wake: has the writer thread look.
        """
        self._wake = wake
        self._entries: deque[Entry] = deque()

    def __bool__(self) -> bool:
        return bool(self._entries)

    def put(self, entry: Entry) -> None:
        self._entries.append(entry)
        self._wake()

    def remind(self) -> None:
        """Wake the writer thread if something waits: for nothing, it would only fight this thread
        for the interpreter.
        """
        if self._entries:
            self._wake()

    def take(self) -> list[Entry]:
        """Take the first ones, as many as go into records together."""
        taken: list[Entry] = []
        size = 0
        while self._entries and (not taken or size + self._entries[0].size <= _TOGETHER):
            taken.append(self._entries.popleft())
            size += taken[-1].size
        return taken

    def take_all(self) -> list[Entry]:
        taken = list(self._entries)
        self._entries.clear()
        return taken

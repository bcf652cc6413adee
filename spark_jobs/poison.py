"""Which record kills the operator: a mark outside the process of the unit at work, and the count of its deaths.

The mark is a small file that each unit overwrites in place before it runs (some microseconds, no sync: it has to outlive the process,
not the machine). Who starts after a death reads it: the unit at work then is tried again record by record, and a record that was at
work in three deaths is given up as a dead letter. The end of a unit clears the mark, so that other deaths count for nobody.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

_MARK = struct.Struct("<qqq")
_NONE = _MARK.pack(0, -1, 0)
#: deaths after which a record is given up
LIMIT = 3


class Poison:
    """The mark of one topic-partition."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        raw = os.pread(self._file, _MARK.size, 0)
        mark: tuple[int, int, int] = _MARK.unpack(raw) if len(raw) == _MARK.size else (0, -1, 0)
        self._first, self._last, self._deaths = mark

    def alone(self, offset: int, *, bound: bool) -> bool:
        """Whether the record must run in a unit of its own. *bound*: outputs of the unit are published, so that cutting it
        otherwise would change their positions; that is done only after a second death.
        """
        return self.suspects(offset) and (not bound or self._deaths >= LIMIT - 1)

    def limit(self, first: int, last: int, *, bound: bool) -> int:
        """Where a unit that begins at *first* has to end: in front of a suspect, which must not hide in the unit of its neighbours."""
        inside = first < self._first <= last and (not bound or self._deaths >= LIMIT - 1)
        return self._first - 1 if inside else last

    def given_up(self, offset: int) -> bool:
        """Whether the record has killed often enough."""
        return self._first == self._last == offset and self._deaths >= LIMIT

    def suspects(self, offset: int) -> bool:
        """Whether the record was at work in a death."""
        return self._first <= offset <= self._last

    def begin(self, first: int, last: int) -> None:
        """A unit goes to work."""
        os.pwrite(self._file, _MARK.pack(first, last, (self._deaths if self.suspects(first) else 0) + 1), 0)

    def clear(self) -> None:
        """The unit is done."""
        os.pwrite(self._file, _NONE, 0)

    def close(self) -> None:
        os.close(self._file)

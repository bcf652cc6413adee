"""Which record kills the operator: a mark outside the process of the chunk at work, and the count
of its deaths.

The mark is a small file that each chunk overwrites in place before it runs (as mapped memory,
within a microsecond; no sync: it has to outlive the process, not the machine). Who starts after a
death reads it: the chunk at work then is tried again record by record, and a record that was at
work in three deaths is given up as a dead letter. The end of a chunk clears the mark, so that other
deaths count for nobody.

When the driver went too, it mostly took its workers along, and the record at work is as good as any
other: such a death counts a fourth. It counts, for a record may bring down a whole machine.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from pathlib import Path

#: first and last offset at work, weight of their deaths before, and the driver's run
_MARK = struct.Struct("<qqqq")
_NONE = _MARK.pack(0, -1, 0, 0)
#: weight of the death of a worker, and of one together with its driver
ALONE = 4
WITH_DRIVER = 1
#: weight at which a record is given up: three deaths of workers
LIMIT = 3 * ALONE


class Poison:
    """The mark of one topic-partition, read and written under one run of the driver."""

    def __init__(self, path: Path, driver: str) -> None:
        """`driver`: another one after each start of the driver."""
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if os.fstat(file).st_size < _MARK.size:
                os.pwrite(file, _NONE, 0)
            self._mark = mmap.mmap(file, _MARK.size)
        finally:
            os.close(file)
        self._run = zlib.crc32(driver.encode())
        mark: tuple[int, int, int, int] = _MARK.unpack(self._mark[:])
        self._first, self._last, self._weight, run = mark
        if self._last >= self._first:
            self._weight += ALONE if run == self._run else WITH_DRIVER

    def alone(self, offset: int, *, bound: bool) -> bool:
        """Whether the record must run in a chunk of its own. *bound*: outputs of the chunk are
        published, so that cutting it otherwise would change their positions; that is done only
        after a second death.
        """
        return self.suspects(offset) and (not bound or self._weight >= LIMIT - ALONE)

    def limit(self, first: int, last: int, *, bound: bool) -> int:
        """Where a chunk that begins at *first* has to end: in front of a suspect, which must not
        hide in the chunk of its neighbours.
        """
        inside = first < self._first <= last and (not bound or self._weight >= LIMIT - ALONE)
        return self._first - 1 if inside else last

    def is_given_up(self, offset: int) -> bool:
        """Whether the record has killed often enough."""
        return self._first == self._last == offset and self._weight >= LIMIT

    def suspects(self, offset: int) -> bool:
        """Whether the record was at work in a death."""
        return self._first <= offset <= self._last

    def begin(self, first: int, last: int) -> None:
        """A chunk goes to work."""
        self._mark[:] = _MARK.pack(
            first, last, self._weight if self.suspects(first) else 0, self._run
        )

    def clear(self) -> None:
        """The chunk is done."""
        self._mark[:] = _NONE

    def close(self) -> None:
        self._mark.close()

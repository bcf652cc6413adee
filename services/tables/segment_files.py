"""The files of a copy: rows one behind the other, each file written once and deleted whole."""

from __future__ import annotations

import bisect
import threading
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from services.tables import chunk as files
from services.tables.chunk import Chunk, SegmentFile, join
from services.tables.shape import Shape

#: small files are merged when this many lie behind each other, into one of at most that many rows …
_MERGE = 8
_MERGED_ROWS = 500_000
#: … that spans at most this part of the retention time, because files are deleted whole
_MERGED_PART = 20
#: segments that readers have open
_OPEN = 4


class SegmentFiles:
    """Used under the copy's lock; `write`, `merge` and `open` take their time and need none."""

    def __init__(self, directory: Path, shape: Shape, lock: threading.RLock) -> None:
        """
        Args:
            lock: that of the copy; held for moments only.
        """
        self.directory = directory
        self._shape = shape
        self._lock = lock
        self._files: list[SegmentFile] = []
        self._open = lru_cache(maxsize=_OPEN)(SegmentFile.read)

    def __len__(self) -> int:
        return len(self._files)

    def __iter__(self) -> Iterator[SegmentFile]:
        return iter(self._files)

    @property
    def first(self) -> int | None:
        """The oldest row, if there is any."""
        return self._files[0].first if self._files else None

    @property
    def rows(self) -> int:
        return sum(s.rows for s in self._files)

    def load(self, next_: int) -> None:
        """Take over the files that lie one behind the other up to row *next_*; delete those
        beyond.
        """
        found = files.segments(self.directory)
        for segment in [s for s in found if s.next > next_]:
            segment.path.unlink()
            found.remove(segment)
        # what lies before a hole is of no use: rows are read one behind the other
        for i in range(len(found) - 1, 0, -1):
            if found[i].first != found[i - 1].next:
                found = found[i:]
                break
        self._files = found if found and found[-1].next == next_ else []

    def find(self, row: int) -> SegmentFile | None:
        """Return the file that has *row*."""
        at = bisect.bisect_right(self._files, row, key=lambda s: s.first) - 1
        return self._files[at] if at >= 0 and row < self._files[at].next else None

    def open(self, segment: SegmentFile) -> Chunk:
        """Return the rows of a file; the last few are at hand. Raises FileNotFoundError when it
        has been merged or deleted.
        """
        return self._open(segment)

    def write(self, chunk: Chunk) -> SegmentFile:
        """Put rows into a file, which is not one of these before it is added."""
        return files.write(self.directory, chunk, self._shape.compress)

    def add(self, segment: SegmentFile) -> None:
        self._files.append(segment)

    def take_older(self, before: int) -> list[SegmentFile]:
        """Remove those whose rows were all appended before *before* (ms), but do not delete
        them.
        """
        old = [s for s in self._files if s.newest < before]
        del self._files[: len(old)]
        return old

    def clear(self) -> None:
        """Delete all of them."""
        delete(self._files)
        self._files = []

    def merge(self) -> None:
        """Make one file of the small ones at the end."""
        with self._lock:
            tail = self._mergeable()
        if len(tail) < _MERGE:
            return
        merged = self.write(join([s.read() for s in tail]))
        with self._lock:
            if self._files[-len(tail) :] != tail:  # retention came in between
                delete([merged])
                return
            self._files[-len(tail) :] = [merged]
        delete(tail)

    def _mergeable(self) -> list[SegmentFile]:
        """Return the files at the end that may become one."""
        tail: list[SegmentFile] = []
        for segment in reversed(self._files):
            rows = sum(s.rows for s in tail)
            span = (tail[0].newest - segment.oldest) if tail else 0
            too_many = rows + segment.rows > _MERGED_ROWS
            if too_many or span * _MERGED_PART > self._shape.retention_ms:
                break
            tail.append(segment)
        tail.reverse()
        return tail


def delete(segments: Iterable[SegmentFile]) -> None:
    """Delete files, if they are still there."""
    for segment in segments:
        segment.path.unlink(missing_ok=True)

"""A node's copy of one stream table: the newest rows in memory, the older ones in files, and what
has to be known about them.

Rows come in log order only and are never changed. The newest `cache_limit` rows are in memory; all
rows within the retention time are in segments or wait for one. Everything here can be read again
from the log, so nothing is synced to disk; the position is written after the rows that it covers.
Owns the keys of a keyed table. Refused: reading a row that retention took (`E_OFFSET_GONE`, naming
the earliest).
"""

from __future__ import annotations

import shutil
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import BusError
from penstock.runtime.log import get
from services.tables.chunk import Chunk, SegmentFile, join
from services.tables.keys import TableKeys
from services.tables.position import CopyPosition, read_position, write_position
from services.tables.recent_rows import RecentRows, drop_older, holding, join_small
from services.tables.segment_files import SegmentFiles, delete
from services.tables.shape import Shape
from services.tables.stamp import Fence, ProducerPositions

log = get(__name__)


@dataclass(frozen=True)
class Flush:
    """Rows on their way into a file, and the position they reach."""

    chunk: Chunk | None
    position: dict[str, Any]


class Copy:
    """Safe to use from several threads; one thread appends, one flushes."""

    def __init__(self, directory: Path, shape: Shape) -> None:
        self.shape = shape
        self._lock = threading.RLock()
        self._memory = RecentRows(shape)
        self._unsaved: list[Chunk] = []
        self._saving: Chunk | None = None
        self._files = SegmentFiles(directory, shape, self._lock)
        #: how far the log has been read: the next record's offset
        self.offset = 0
        self.fence = Fence()
        self.producers = ProducerPositions(shape.max_producers)
        #: index that the next row gets; how many rows the table ever had
        self.next = 0
        #: empty without key columns
        self.keys = TableKeys(shape.key_columns, shape.key_rule, shape.time_columns)
        self._dirty = False
        self._load()

    # ---------------------------------------------------------------- from the log

    def append(self, chunk: Chunk) -> None:
        """Take over accepted rows."""
        with self._lock:
            if chunk.first != self.next:
                log.warning(
                    "rows are missing in the log, older ones are given up",
                    next=self.next,
                    first=chunk.first,
                )
                self._give_up()
                self.next = chunk.first
            self.keys.note(chunk.batch, chunk.first)
            self._memory.append(chunk)
            self._unsaved.append(chunk)
            self.next = chunk.next
            join_small(self._unsaved)

    def skip(self, row: int) -> None:
        """The log says that the next row is *row*: what lies before it is not in the log any
        more.
        """
        with self._lock:
            self._give_up()
            self.next = row

    def advance(self, offset: int) -> None:
        """Note that all records below *offset* are applied."""
        with self._lock:
            self.offset = offset
            self._dirty = True

    def _give_up(self) -> None:
        self._files.clear()
        self._memory.clear()
        self._unsaved = []
        self._saving = None
        self.keys.clear()

    # ---------------------------------------------------------------- reading

    @property
    def earliest(self) -> int:
        """The oldest row that can be read; `next` when there is none."""
        with self._lock:
            firsts = [f for f in (self._files.first, self._memory.first) if f is not None]
            if self._unsaved:
                firsts.append(self._unsaved[0].first)
            if self._saving is not None:
                firsts.append(self._saving.first)
            return min(firsts, default=self.next)

    @property
    def memory_first(self) -> int:
        """The oldest row in memory."""
        with self._lock:
            first = self._memory.first
            return self.next if first is None else first

    def read(self, row: int, limit: int) -> Chunk | None:
        """Rows from *row* on, as many as lie together, at most *limit*; None: there are none yet.

        Raises:
            BusError: `E_OFFSET_GONE`: retention took the row.
        """
        while True:
            with self._lock:
                if row >= self.next:
                    return None
                if row < self.earliest:
                    raise offset_gone(row, self.earliest)
                found = self._find(row)
            try:
                chunk = self._files.open(found) if isinstance(found, SegmentFile) else found
                return chunk.since(row).upto(row + limit)
            except FileNotFoundError:
                continue  # merged or expired in this moment: look again

    def _find(self, row: int) -> Chunk | SegmentFile:
        """Return what has *row*: rows in memory, else a file."""
        found = self._memory.find(row) or holding(self._unsaved, row)
        if found is not None:
            return found
        saving = self._saving
        if saving is not None and saving.first <= row < saving.next:
            return saving
        segment = self._files.find(row)
        assert segment is not None
        return segment

    def in_memory(self, row: int) -> bool:
        """Tell if reading *row* needs no file."""
        with self._lock:
            return row >= self.memory_first

    def resident(self) -> list[Chunk]:
        """The chunks in memory."""
        with self._lock:
            return self._memory.chunks()

    def meta(self) -> dict[str, Any]:
        """Sizes and positions, with the names of `client.ha.meta`."""
        with self._lock:
            memory = self.next - self.memory_first
            return {
                "totalSize": self.next,
                "sizeInMemory": memory,
                "memoryOffset": self.next - memory,
                "sizeOnDisk": self._files.rows,
                "diskOffset": self.earliest,
                "retentionMinutes": self.shape.retention_ms / 60_000,
                "cacheLimit": self.shape.cache_limit,
                "lastLogSeqNum": self.offset - 1,
                "persistenceDir": str(self._files.directory),
                "tableId": self.shape.table_id,
                "bytesInMemory": self._memory.bytes,
                "files": len(self._files),
                "keys": len(self.keys),
            }

    # ---------------------------------------------------------------- to disk

    def due(self) -> bool:
        """Tell if enough rows wait for a file."""
        with self._lock:
            return self.waiting >= min(self.shape.flush_rows, self.shape.cache_limit)

    @property
    def waiting(self) -> int:
        """Rows that wait for a file."""
        with self._lock:
            return sum(c.rows for c in self._unsaved)

    def begin_flush(self) -> Flush | None:
        """Set aside what waits, with the position it reaches; None when there is nothing. One
        thread at a time, and not while records are being applied.
        """
        with self._lock:
            if not self._dirty:
                return None
            self._saving = join(self._unsaved) if self._unsaved else None
            self._unsaved = []
            self._dirty = False
            return Flush(self._saving, self._position().to_json(self.shape.table_id))

    def finish_flush(self, flush: Flush) -> None:
        """Write the file, then the position."""
        made = self._files.write(flush.chunk) if flush.chunk is not None else None
        with self._lock:
            if made is not None and self._saving is flush.chunk:
                self._files.add(made)
            elif made is not None:
                delete([made])  # given up meanwhile
            self._saving = None
        write_position(self._files.directory, flush.position)
        self._files.merge()

    def undo_flush(self) -> None:
        """What was set aside waits again."""
        with self._lock:
            if self._saving is not None:
                self._unsaved.insert(0, self._saving)
            self._saving = None
            self._dirty = True

    def expire(self, now: int) -> int:
        """Drop rows appended before *now* (ms) less the retention time; return how many."""
        before = now - self.shape.retention_ms
        with self._lock:
            start = self.earliest
            old = self._files.take_older(before)
            self._memory.expire(before)
            drop_older(self._unsaved, before)
            earliest = self.earliest
            self.keys.forget_before(earliest)
        delete(old)
        return earliest - start

    def remove(self) -> None:
        """The table is gone: delete its files."""
        with self._lock:
            self._give_up()
        shutil.rmtree(self._files.directory, ignore_errors=True)

    # ---------------------------------------------------------------- position

    def _position(self) -> CopyPosition:
        fence = Fence(self.fence.epoch, self.fence.number, self.fence.leader)
        return CopyPosition(self.offset, self.next, fence, self.producers.all())

    def _load(self) -> None:
        """Begin where the files end; files of another table of this name, or damaged ones, only
        mean reading more of the log.
        """
        directory = self._files.directory
        directory.mkdir(parents=True, exist_ok=True)
        try:
            position = read_position(directory, self.shape.table_id)
        except (OSError, ValueError, KeyError, TypeError) as absent:
            if not isinstance(absent, FileNotFoundError):
                log.warning(
                    "the copy on disk cannot be used and is made anew",
                    reason=str(absent),
                    directory=str(directory),
                )
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
            return
        self._files.load(position.next)
        self.offset = position.offset
        self.next = position.next
        self.fence = position.fence
        self.producers = ProducerPositions(self.shape.max_producers, position.producers)
        self._fill_memory()
        if self.shape.key_columns:
            for segment in self._files:
                self.keys.note(segment.read().batch, segment.first)

    def _fill_memory(self) -> None:
        """Take the newest rows back into memory, `pre_cache` of them."""
        first = max(self.next - min(self.shape.pre_cache, self.shape.cache_limit), 0)
        for segment in self._files:
            if segment.next > first:
                self._memory.fill(segment.read().since(first).own())


def offset_gone(row: int, earliest: int) -> BusError:
    """Return the error of a reader whose row is not there any more."""
    return BusError(
        f"row {row} is no longer kept",
        code="E_OFFSET_GONE",
        detail=f"the earliest row is {earliest}",
        hint=(
            "subscribe with offset -3 (the earliest there is), or make the table with a longer"
            " retentionMinutes"
        ),
    )

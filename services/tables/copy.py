"""A node's copy of one stream table: the newest rows in memory, the older ones in files, and what
has to be known about them.

Rows come in log order only and are never changed. The newest `cache_limit` rows are in memory; all
rows within the retention time are in segments or wait for one. Everything here can be read again
from the log, so nothing is synced to disk; the position is written after the rows that it covers.
Owns the keys of a keyed table. Refused: reading a row that retention took (`E_OFFSET_GONE`, naming
the earliest).
"""

from __future__ import annotations

import bisect
import json
import os
import shutil
import threading
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.catalog.model import KeyRule, Table
from penstock.errors import BusError
from penstock.log import get
from penstock.sql.plan import TICKS_PER_SECOND
from services.tables import chunk as files
from services.tables.chunk import Chunk, SegmentFile, join
from services.tables.keys import TableKeys
from services.tables.stamp import Fence, ProducerPositions, WritePart

log = get(__name__)
#: chunks of single writes are joined so that there are never many small ones
_JOIN = 48
_JOINED_ROWS = 16_384
#: small files are merged when this many lie behind each other, into one of at most that many rows …
_MERGE = 8
_MERGED_ROWS = 500_000
#: … that spans at most this part of the retention time, because files are deleted whole
_MERGED_PART = 20
#: segments that readers have open
_OPEN = 4
_MINUTE_MS = 60_000


@dataclass(frozen=True)
class Shape:
    """What a copy has to know of its table."""

    table_id: int
    cache_limit: int
    retention_ms: int
    key_columns: tuple[str, ...]
    pre_cache: int
    flush_rows: int
    max_producers: int
    key_rule: KeyRule = "first"
    time_columns: tuple[str, ...] = ()
    #: column, and ticks: rows older than `keep` leave memory once the oldest is older than `every`
    purge: tuple[str, int, int] | None = None
    compress: bool = True

    @classmethod
    def of(cls, table: Table, flush_rows: int, max_producers: int) -> Shape:
        """As the catalog says."""
        made = table.replicated
        assert made is not None
        ticks = TICKS_PER_SECOND[table.precision]
        purge = made.purge
        return cls(
            table.id,
            made.cache_limit,
            int(made.retention_minutes * _MINUTE_MS),
            made.key_columns,
            made.cache_limit if made.pre_cache is None else made.pre_cache,
            flush_rows,
            max_producers,
            made.key_rule,
            made.time_columns,
            (
                (purge.column, purge.every_ms * ticks // 1000, purge.keep_ms * ticks // 1000)
                if purge is not None
                else None
            ),
            made.compress,
        )


@dataclass(frozen=True)
class Flush:
    """Rows on their way into a file, and the position they reach."""

    chunk: Chunk | None
    position: dict[str, Any]


class Copy:
    """Safe to use from several threads; one thread appends, one flushes."""

    def __init__(self, directory: Path, shape: Shape) -> None:
        self.shape = shape
        self._directory = directory
        self._lock = threading.RLock()
        self._memory: list[Chunk] = []
        self._unsaved: list[Chunk] = []
        self._saving: Chunk | None = None
        self._segments: list[SegmentFile] = []
        #: how far the log has been read: the next record's offset
        self.offset = 0
        self.fence = Fence()
        self.producers = ProducerPositions(shape.max_producers)
        #: index that the next row gets; how many rows the table ever had
        self.next = 0
        #: empty without key columns
        self.keys = TableKeys(shape.key_columns, shape.key_rule, shape.time_columns)
        self._dirty = False
        self._open = lru_cache(maxsize=_OPEN)(SegmentFile.read)
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
            self._tidy(self._memory)
            self._tidy(self._unsaved)
            self._purge(chunk)
            self._forget(self.next - self.shape.cache_limit)

    def skip(self, row: int) -> None:
        """The log says that the next row is *row*: what lies before it is not in the log any
        more.
        """
        with self._lock:
            self._give_up()
            self.next = row

    def reached(self, offset: int) -> None:
        """All records below *offset* are applied."""
        with self._lock:
            self.offset = offset
            self._dirty = True

    def _tidy(self, chunks: list[Chunk]) -> None:
        """Join the small chunks at the end once there are many."""
        if len(chunks) < _JOIN or sum(c.rows for c in chunks[-_JOIN:]) > _JOINED_ROWS:
            return
        chunks[-_JOIN:] = [join(chunks[-_JOIN:])]

    def _purge(self, chunk: Chunk) -> None:
        """Old rows leave memory each time that memory spans too long a time with one more row of
        *chunk*, however rows came together.
        """
        if self.shape.purge is None:
            return
        column, every, keep = self.shape.purge
        times = _ticks(chunk, column)
        at = 0
        while len(due := np.flatnonzero(times[at:] - _ticks(self._memory[0], column)[0] >= every)):
            at += int(due[0])
            self._forget(self._first_since(column, int(times[at]) - keep))
            at += 1

    def _first_since(self, column: str, time: int) -> int:
        """The first row in memory that is not older than *time*; there is one."""
        for chunk in self._memory:
            young = np.flatnonzero(_ticks(chunk, column) >= time)
            if len(young):
                return chunk.first + int(young[0])
        return self.next

    def _forget(self, first: int) -> None:
        """Rows before *first* leave memory."""
        gone = 0
        while gone < len(self._memory) and self._memory[gone].next <= first:
            gone += 1
        del self._memory[:gone]
        if self._memory and self._memory[0].first < first:
            head = self._memory[0]
            rest = head.since(first)
            # what is kept of a large chunk must not keep all of it
            self._memory[0] = (
                rest.own() if rest.batch.nbytes * 2 < rest.batch.get_total_buffer_size() else rest
            )

    def _give_up(self) -> None:
        for segment in self._segments:
            segment.path.unlink(missing_ok=True)
        self._memory = []
        self._unsaved = []
        self._saving = None
        self._segments = []
        self.keys.clear()

    # ---------------------------------------------------------------- reading

    @property
    def earliest(self) -> int:
        """The oldest row that can be read; `next` when there is none."""
        with self._lock:
            firsts = [x[0].first for x in (self._segments, self._unsaved, self._memory) if x]
            if self._saving is not None:
                firsts.append(self._saving.first)
            return min(firsts, default=self.next)

    @property
    def memory_first(self) -> int:
        """The oldest row in memory."""
        with self._lock:
            return self._memory[0].first if self._memory else self.next

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
                    raise gone(row, self.earliest)
                found = _holding(self._memory, row) or _holding(self._unsaved, row)
                if (
                    found is None
                    and self._saving is not None
                    and self._saving.first <= row < self._saving.next
                ):
                    found = self._saving
                segment = None if found is not None else self._segment(row)
            if found is not None:
                return found.since(row).upto(row + limit)
            assert segment is not None
            try:
                return self._open(segment).since(row).upto(row + limit)
            except FileNotFoundError:
                continue  # merged or expired in this moment: look again

    def in_memory(self, row: int) -> bool:
        """Whether reading *row* needs no file."""
        with self._lock:
            return row >= self.memory_first

    def _segment(self, row: int) -> SegmentFile | None:
        at = bisect.bisect_right(self._segments, row, key=lambda s: s.first) - 1
        return self._segments[at] if at >= 0 and row < self._segments[at].next else None

    def resident(self) -> list[Chunk]:
        """The chunks in memory."""
        with self._lock:
            return list(self._memory)

    def meta(self) -> dict[str, Any]:
        """Sizes and positions, with the names of `getPersistenceMeta`."""
        with self._lock:
            on_disk = sum(s.rows for s in self._segments)
            memory = self.next - self.memory_first
            return {
                "totalSize": self.next,
                "sizeInMemory": memory,
                "memoryOffset": self.next - memory,
                "sizeOnDisk": on_disk,
                "diskOffset": self.earliest,
                "retentionMinutes": self.shape.retention_ms / 60_000,
                "cacheLimit": self.shape.cache_limit,
                "lastLogSeqNum": self.offset - 1,
                "persistenceDir": str(self._directory),
                "tableId": self.shape.table_id,
                "bytesInMemory": sum(c.batch.nbytes for c in self._memory),
                "files": len(self._segments),
                "keys": len(self.keys),
            }

    # ---------------------------------------------------------------- to disk

    def due(self) -> bool:
        """Whether enough rows wait for a file."""
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
            return Flush(self._saving, self._position())

    def finish_flush(self, flush: Flush) -> None:
        """Write the file, then the position."""
        made = (
            files.write(self._directory, flush.chunk, self.shape.compress)
            if flush.chunk is not None
            else None
        )
        with self._lock:
            if made is not None and self._saving is flush.chunk:
                self._segments.append(made)
            elif made is not None:
                made.path.unlink(missing_ok=True)  # given up meanwhile
            self._saving = None
        self._write_position(flush.position)
        self._merge()

    def undo_flush(self) -> None:
        """What was set aside waits again."""
        with self._lock:
            if self._saving is not None:
                self._unsaved.insert(0, self._saving)
            self._saving = None
            self._dirty = True

    def _merge(self) -> None:
        """Make one file of the small ones at the end."""
        with self._lock:
            tail: list[SegmentFile] = []
            for segment in reversed(self._segments):
                rows = sum(s.rows for s in tail)
                span = (tail[0].newest - segment.oldest) if tail else 0
                if (
                    rows + segment.rows > _MERGED_ROWS
                    or span * _MERGED_PART > self.shape.retention_ms
                ):
                    break
                tail.append(segment)
            tail.reverse()
        if len(tail) < _MERGE:
            return
        merged = files.write(self._directory, join([s.read() for s in tail]), self.shape.compress)
        with self._lock:
            if self._segments[-len(tail) :] != tail:  # retention came in between
                merged.path.unlink(missing_ok=True)
                return
            self._segments[-len(tail) :] = [merged]
        for segment in tail:
            segment.path.unlink(missing_ok=True)

    def expire(self, now: int) -> int:
        """Drop rows appended before *now* (ms) less the retention time; how many rows went."""
        before = now - self.shape.retention_ms
        with self._lock:
            start = self.earliest
            old = [s for s in self._segments if s.newest < before]
            del self._segments[: len(old)]
            for chunks in (self._memory, self._unsaved):
                while chunks and chunks[0].newest < before:
                    del chunks[0]
            earliest = self.earliest
            self.keys.forget_before(earliest)
        for segment in old:
            segment.path.unlink(missing_ok=True)
        return earliest - start

    def remove(self) -> None:
        """The table is gone: delete its files."""
        with self._lock:
            self._give_up()
        shutil.rmtree(self._directory, ignore_errors=True)

    # ---------------------------------------------------------------- position

    def _position(self) -> dict[str, Any]:
        parts = [[p.producer, p.sequence, p.done, p.total] for p in self.producers.all()]
        fence = [self.fence.epoch, self.fence.number, self.fence.leader]
        return {
            "table": self.shape.table_id,
            "offset": self.offset,
            "next": self.next,
            "fence": fence,
            "producers": parts,
        }

    def _write_position(self, position: dict[str, Any]) -> None:
        path = self._directory / "position.json"
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(position), encoding="utf-8")
        os.replace(fresh, path)

    def _load(self) -> None:
        """Begin where the files end; files of another table of this name, or damaged ones, only
        mean reading more of the log.
        """
        self._directory.mkdir(parents=True, exist_ok=True)
        try:
            position = json.loads((self._directory / "position.json").read_text(encoding="utf-8"))
            if position["table"] != self.shape.table_id:
                raise ValueError("files of another table")
            fence = Fence(*position["fence"])
            producers = [WritePart(*p) for p in position["producers"]]
            offset = int(position["offset"])
            next_ = int(position["next"])
        except (OSError, ValueError, KeyError, TypeError) as absent:
            if not isinstance(absent, FileNotFoundError):
                log.warning(
                    "the copy on disk cannot be used and is made anew",
                    reason=str(absent),
                    directory=str(self._directory),
                )
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory.mkdir(parents=True)
            return
        found = files.segments(self._directory)
        for segment in [s for s in found if s.next > next_]:
            segment.path.unlink()
            found.remove(segment)
        # what lies before a hole is of no use: rows are read one behind the other
        for i in range(len(found) - 1, 0, -1):
            if found[i].first != found[i - 1].next:
                found = found[i:]
                break
        if found and found[-1].next != next_:
            found = []
        self._segments = found
        self.offset = offset
        self.next = next_
        self.fence = fence
        self.producers = ProducerPositions(self.shape.max_producers, producers)
        self._fill_memory()
        if self.shape.key_columns:
            for segment in found:
                self.keys.note(segment.read().batch, segment.first)

    def _fill_memory(self) -> None:
        """The newest rows back into memory, `pre_cache` of them."""
        first = max(self.next - min(self.shape.pre_cache, self.shape.cache_limit), 0)
        for segment in self._segments:
            if segment.next > first:
                self._memory.append(segment.read().since(first).own())
                self._purge(self._memory[-1])


def _ticks(chunk: Chunk, column: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A time column; rows without a time count as the oldest."""
    found: np.ndarray[Any, np.dtype[np.int64]] = (
        chunk.batch.column(column).view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    )
    return found


def gone(row: int, earliest: int) -> BusError:
    """The error of a reader whose row is not there any more."""
    return BusError(
        f"row {row} is no longer kept",
        code="E_OFFSET_GONE",
        detail=f"the earliest row is {earliest}",
        hint=(
            "subscribe with offset -3 (the earliest there is), or make the table with a longer"
            " retentionMinutes"
        ),
    )


def _holding(chunks: list[Chunk], row: int) -> Chunk | None:
    at = bisect.bisect_right(chunks, row, key=lambda c: c.first) - 1
    return chunks[at] if at >= 0 and row < chunks[at].next else None

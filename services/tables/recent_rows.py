"""The newest rows of a copy, in memory."""

from __future__ import annotations

import bisect
from typing import Any

import numpy as np
import pyarrow as pa

from services.tables.chunk import Chunk, join
from services.tables.shape import Shape

#: chunks of single writes are joined so that there are never many small ones
_JOIN = 48
_JOINED_ROWS = 16_384


class RecentRows:
    """Used under the copy's lock."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._chunks: list[Chunk] = []

    def __bool__(self) -> bool:
        return bool(self._chunks)

    @property
    def first(self) -> int | None:
        """The oldest row, if there is any."""
        return self._chunks[0].first if self._chunks else None

    @property
    def bytes(self) -> int:
        return sum(c.batch.nbytes for c in self._chunks)

    def chunks(self) -> list[Chunk]:
        return list(self._chunks)

    def append(self, chunk: Chunk) -> None:
        """Take the newest rows; old ones leave for them."""
        self._chunks.append(chunk)
        join_small(self._chunks)
        self._purge(chunk)
        self.forget(chunk.next - self._shape.cache_limit)

    def fill(self, chunk: Chunk) -> None:
        """Take rows back that were in memory before this process."""
        self._chunks.append(chunk)
        self._purge(chunk)

    def find(self, row: int) -> Chunk | None:
        return holding(self._chunks, row)

    def expire(self, before: int) -> None:
        drop_older(self._chunks, before)

    def clear(self) -> None:
        self._chunks = []

    def _purge(self, chunk: Chunk) -> None:
        """Let old rows leave each time that memory spans too long a time with one more row of
        *chunk*, however rows came together.
        """
        if self._shape.purge is None:
            return
        column, every, keep = self._shape.purge
        times = _ticks(chunk, column)
        at = 0
        while len(due := np.flatnonzero(times[at:] - _ticks(self._chunks[0], column)[0] >= every)):
            at += int(due[0])
            self.forget(self._first_since(column, int(times[at]) - keep))
            at += 1

    def _first_since(self, column: str, time: int) -> int:
        """Return the first row that is not older than *time*; there is one."""
        for chunk in self._chunks:
            young = np.flatnonzero(_ticks(chunk, column) >= time)
            if len(young):
                return chunk.first + int(young[0])
        return self._chunks[-1].next

    def forget(self, first: int) -> None:
        """Let rows before *first* leave."""
        gone = 0
        while gone < len(self._chunks) and self._chunks[gone].next <= first:
            gone += 1
        del self._chunks[:gone]
        if self._chunks and self._chunks[0].first < first:
            head = self._chunks[0]
            rest = head.since(first)
            # what is kept of a large chunk must not keep all of it
            self._chunks[0] = (
                rest.own() if rest.batch.nbytes * 2 < rest.batch.get_total_buffer_size() else rest
            )


def join_small(chunks: list[Chunk]) -> None:
    """Join the small chunks at the end once there are many."""
    if len(chunks) < _JOIN or sum(c.rows for c in chunks[-_JOIN:]) > _JOINED_ROWS:
        return
    chunks[-_JOIN:] = [join(chunks[-_JOIN:])]


def drop_older(chunks: list[Chunk], before: int) -> None:
    """Drop the chunks at the beginning that were appended before *before* (ms)."""
    while chunks and chunks[0].newest < before:
        del chunks[0]


def holding(chunks: list[Chunk], row: int) -> Chunk | None:
    """Return the chunk that has *row*."""
    at = bisect.bisect_right(chunks, row, key=lambda c: c.first) - 1
    return chunks[at] if at >= 0 and row < chunks[at].next else None


def _ticks(chunk: Chunk, column: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return a time column; rows without a time count as the oldest."""
    found: np.ndarray[Any, np.dtype[np.int64]] = (
        chunk.batch.column(column).view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    )
    return found

"""The newest slices of a topic in memory, up to a bound; read and written by several threads."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping
from itertools import takewhile

from penstock.feeds.slices import Slice

#: part of the memory's bound whose slices keep what listeners made of them
_YOUNG = 8
#: bytes that a slice takes beside its records, and what is made of it takes beside theirs: where
#: records come one by one, that is nearly all
SLICE_BYTES = 1 << 10
_MADE_BYTES = 8 << 10
#: slices that are young however small the bound: who listens is now and then a few behind
YOUNG_SLICES = 64


class _Ring:
    """The newest slices of one partition; `floor` is the oldest offset it can still give."""

    def __init__(self, start: int) -> None:
        self.slices: deque[Slice] = deque()
        self._young: deque[Slice] = deque()
        self.floor = self.next = start
        self.size = self._young_size = 0

    def add(self, piece: Slice, bound: int) -> list[Slice]:
        """Take a slice; those that are young no more."""
        self.slices.append(piece)
        self.size += piece.size + SLICE_BYTES
        self.next = piece.next
        while self.size > bound and len(self.slices) > 1:
            gone = self.slices.popleft()
            self.size -= gone.size + SLICE_BYTES
            self.floor = gone.next
        # decoded rows are larger than records: only the newest slices keep them
        self._young.append(piece)
        self._young_size += piece.size
        most = max(bound // _YOUNG // _MADE_BYTES, YOUNG_SLICES)
        aged: list[Slice] = []
        while len(self._young) > 1 and (
            self._young_size > bound // _YOUNG or len(self._young) > most
        ):
            aged.append(self._young.popleft())
            self._young_size -= aged[-1].size
        return aged

    def since(self, offset: int) -> list[Slice] | None:
        if offset < self.floor:
            return None
        # those who listen wait for the newest, and the ring may hold a hundred thousand
        newest_first = takewhile(lambda piece: piece.next > offset, reversed(self.slices))
        return [*newest_first][::-1]


class FeedMemory:
    """The newest slices of all partitions of one topic."""

    def __init__(self, starts: Mapping[int, int], size: int) -> None:
        """
        Args:
            starts: offset of each partition with which it begins.
            size: bytes that it may hold, of records and of what a slice takes beside them.
        """
        self._rings = {p: _Ring(offset) for p, offset in starts.items()}
        self._bound = max(size // max(len(self._rings), 1), 1)
        self._lock = threading.Lock()

    def add(self, pieces: Iterable[Slice]) -> None:
        """Take slices, let old ones go and free what was made of those that are young no more."""
        with self._lock:
            aged = [
                old
                for piece in pieces
                for old in self._rings[piece.partition].add(piece, self._bound)
            ]
        for old in aged:
            old.forget()

    def ends(self) -> dict[int, int]:
        """Return the next offset of each partition."""
        with self._lock:
            return {p: ring.next for p, ring in self._rings.items()}

    def since(self, partition: int, offset: int) -> list[Slice] | None:
        """Return slices with records at or above *offset*; None when that is further back than
        memory goes.
        """
        with self._lock:
            return self._rings[partition].since(offset)

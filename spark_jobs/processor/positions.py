"""How far a partition processor has come: its own offset in the log, and the highest position of
each producer whose records it has taken in.
"""

from __future__ import annotations

from spark_jobs.input import Records
from spark_jobs.replay import NOTHING, Position


class Positions:
    """Positions of one topic-partition, as they go into its state."""

    def __init__(self, next_offset: int, time: int, seen: dict[str, Position]) -> None:
        #: offset of the first record that has not been worked on; -1: there was no state
        self.next = next_offset
        #: append time (ms) of the newest record taken in
        self.time = time
        #: by producer: (offset, ordinal) of the newest record taken in
        self.seen = seen
        #: something was taken in since the last snapshot
        self.dirty = False
        #: the part of `seen` that no snapshot holds yet
        self._fresh: dict[str, Position] = {}

    def advance(self, chunk: Records) -> None:
        """Move behind *chunk*."""
        self.next = int(chunk.offsets[-1]) + 1
        self.time = max(self.time, int(chunk.timestamps[-1]))
        self.dirty = True

    def is_repeat(self, producer: str | None, offset: int, ordinal: int) -> bool:
        """Return True if a producer's record was taken in before; otherwise note it."""
        if producer is None:
            return False
        if (offset, ordinal) <= self.seen.get(producer, NOTHING):
            return True
        self.seen[producer] = self._fresh[producer] = (offset, ordinal)
        return False

    def take_changes(self, *, full: bool) -> dict[str, Position]:
        """Return what a snapshot has to hold of `seen`; from here on all counts as saved."""
        changes = dict(self.seen) if full else self._fresh
        self._fresh = {}
        self.dirty = False
        return changes

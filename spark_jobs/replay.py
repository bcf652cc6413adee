"""What a successor may leave out and where it must cut, after its predecessor died: pure decisions
about positions.

A chunk is a run of source records computed at once. All that it publishes carries (from_offset,
offset, ordinal) of the chunk under one producer id, and goes to several output partitions, each of
which may or may not have got it before the crash. Computing the same chunk again gives the same
outputs, so it is enough to cut the input at the old boundaries and to hold back what is already
there. Refused here: reading logs (`spark_jobs.output`) and any guess about what was not found in
them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

#: where an output goes: producer id, topic, partition
Route = tuple[str, str, int]
Position = tuple[int, int]
NOTHING: Position = (-1, -1)


@dataclass(frozen=True)
class Published:
    """One output record found in a log (or known to be there)."""

    producer: str
    topic: str
    partition: int
    from_offset: int
    offset: int
    ordinal: int

    @property
    def route(self) -> Route:
        return (self.producer, self.topic, self.partition)


class Replay:
    """The published outputs that the own position has not passed yet."""

    def __init__(self, published: Iterable[Published] = (), next_offset: int = 0) -> None:
        self._last: dict[Route, Published] = {}
        ends: set[int] = set()
        for p in published:
            if p.offset < next_offset:
                continue
            ends.update((p.from_offset - 1, p.offset))
            known = self._last.get(p.route)
            if known is None or (p.offset, p.ordinal) > (known.offset, known.ordinal):
                self._last[p.route] = p
        self._ends = sorted(e for e in ends if e >= next_offset)
        self._chunks = {(e.from_offset, e.offset) for e in self._last.values()}

    def __bool__(self) -> bool:
        return bool(self._ends)

    @property
    def until(self) -> int:
        """The last offset of which something is known to be published; -1 when nothing is."""
        return self._ends[-1] if self._ends else -1

    def limit(self, first: int, last: int) -> int:
        """The offset at which a chunk that begins at *first* and could reach *last* has to end."""
        at = bisect_left(self._ends, first)
        return min(last, self._ends[at]) if at < len(self._ends) else last

    def holds_back(self, route: Route, offset: int, ordinal: int) -> bool:
        """Whether the output of this position is in the log already."""
        known = self._last.get(route)
        return known is not None and (offset, ordinal) <= (known.offset, known.ordinal)

    def has_outputs_within(self, first: int, last: int) -> bool:
        """Whether a chunk with an end in first..last has left outputs, so that its boundaries
        bind.
        """
        return any(first <= end <= last for _, end in self._chunks)

    def forget_below(self, next_offset: int) -> None:
        """Forget what lies below *next_offset*."""
        if self._ends and self._ends[0] < next_offset:
            self._ends = self._ends[bisect_left(self._ends, next_offset) :]
            self._last = {route: p for route, p in self._last.items() if p.offset >= next_offset}

    def pending(self) -> list[Published]:
        """What a snapshot has to carry on: the newest per route, and every cut as an entry of its
        own.
        """
        kept = list(self._last.values())
        known = {p.offset for p in kept} | {p.from_offset - 1 for p in kept}
        return kept + [
            Published("", "", -1, end + 1, end, -1) for end in self._ends if end not in known
        ]

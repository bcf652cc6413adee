"""Positions in a stream table's log, and the rule by which every reader drops what a leader wrote
that leads no more.

A record's `offset` is epoch and number in one integer, so that whoever only compares offsets of one
producer (store, operator, notifier) drops a former leader's records as well; `from_offset` is the
index of its first row. Number 0 has no rows: it begins the epoch. The trace says which node wrote
it and how far which producers' writes go. Pure; no Kafka here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, unquote

_NUMBER_BITS = 40
_NUMBERS = (1 << _NUMBER_BITS) - 1


def pack(epoch: int, number: int) -> int:
    """The `offset` of record *number* of *epoch*."""
    return (epoch << _NUMBER_BITS) | number


def unpack(offset: int) -> tuple[int, int]:
    return offset >> _NUMBER_BITS, offset & _NUMBERS


@dataclass(frozen=True)
class WritePart:
    """*done* of the *total* rows of a producer's write *sequence* are in the log with this record
    and those before it.
    """

    producer: str
    sequence: int
    done: int
    total: int


@dataclass(frozen=True)
class Trace:
    """Who wrote a record, and for whom. `leader` is the node's alias and what tells its terms
    apart: `NODE1.1f3a`.
    """

    leader: str
    parts: tuple[WritePart, ...] = ()

    def __str__(self) -> str:
        parts = ",".join(
            f"{quote(p.producer, safe='')}:{p.sequence}:{p.done}:{p.total}" for p in self.parts
        )
        return f"{self.leader}|{parts}"


def parse_trace(text: str | None) -> Trace:
    """What `str(trace)` gave; ValueError for anything else."""
    leader, bar, rest = (text or "").partition("|")
    if not bar:
        raise ValueError("no trace of a leader")
    found = (piece.split(":") for piece in rest.split(",") if piece)
    return Trace(
        leader, tuple(WritePart(unquote(p), int(s), int(d), int(t)) for p, s, d, t in found)
    )


@dataclass
class Fence:
    """How far a log has been read. `epoch` 0: nothing yet."""

    epoch: int = 0
    number: int = -1
    leader: str = ""

    def admits(self, offset: int, leader: str) -> bool:
        """Whether the record counts; moves on when it does.

        The first record 0 of a higher epoch begins it; after that only its leader's next number
        counts. A log whose beginning was deleted is taken up where it is.
        """
        epoch, number = unpack(offset)
        fresh = self.epoch == 0
        starts = epoch > self.epoch and (number == 0 or fresh)
        follows = epoch == self.epoch and number == self.number + 1 and leader == self.leader
        if not starts and not follows:
            return False
        self.epoch = epoch
        self.number = number
        self.leader = leader
        return True


class ProducerPositions:
    """The last write of each producer, newest last; the oldest are forgotten beyond *limit*."""

    def __init__(self, limit: int, known: Iterable[WritePart] = ()) -> None:
        self._limit = limit
        self._last: dict[str, WritePart] = {p.producer: p for p in known}

    def note(self, part: WritePart) -> None:
        """Take over what a record says; a total below zero makes the producer unknown."""
        self._last.pop(part.producer, None)
        if part.total < 0:
            return
        self._last[part.producer] = part
        while len(self._last) > self._limit:
            del self._last[next(iter(self._last))]

    def get(self, producer: str) -> WritePart | None:
        return self._last.get(producer)

    def copy(self) -> ProducerPositions:
        return ProducerPositions(self._limit, self._last.values())

    def all(self) -> list[WritePart]:
        return list(self._last.values())

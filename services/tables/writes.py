"""Writes as they come in, what is to be done with each, and how they go into records. Pure
decisions of a leader.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.errors import PenstockError, SchemaError
from services.tables.stamp import WritePart


class WriteOutcome(Protocol):
    """Takes what becomes of a write, in the event loop; a future is one."""

    def done(self) -> bool: ...
    def set_result(self, rows: int, /) -> None: ...
    def set_exception(self, error: PenstockError, /) -> None: ...


@dataclass(eq=False)
class ProducerWrite:
    """Rows of one producer. `settled`: it has an answer for every write before this sequence
    number.

    `after`: for a producer whose numbers have gaps, and who may cut the same rows into other writes
    when it begins anew. The write counts only if the producer's last one has exactly this number
    (0: there is none).
    """

    producer: str
    sequence: int
    settled: int
    data: pa.Table
    size: int
    done: WriteOutcome
    after: int | None = None
    #: rows that are in the log already, from a leader that died in the middle of it
    skip: int = 0

    @property
    def rows(self) -> int:
        return int(self.data.num_rows)


@dataclass(eq=False)
class Offset:
    """How far a subscription has worked off the table; `row` below zero forgets it.

    `place` is the name that `offset_producer` gives.
    """

    place: str
    row: int
    done: WriteOutcome
    size: int = 64

    @property
    def part(self) -> WritePart:
        return WritePart(self.place, max(self.row, 0), 0, -1 if self.row < 0 else 0)


Entry = ProducerWrite | Offset


#: names that only offsets of subscriptions have among the producers
OFFSET_PREFIXES = ("o:", "u:")


def offset_producer(action: str, owner: int = 0) -> str:
    """Return the name under which a subscription's processed offset is kept among the producers.

    Args:
        action: of the subscription.
        owner: id of the user who subscribed; 0 for the mesh's own user. Each user has offsets of
            their own.
    """
    return f"u:{owner}:{action}" if owner else f"o:{action}"


def judge(last: WritePart | None, write: ProducerWrite) -> Literal["new", "repeat", "rest"]:
    """Tell what a write is: new, all there already, or there in part (then `skip` says how far).

    Raises:
        SchemaError: `E_SEQUENCE`: writes of this producer before it have not arrived, or its last
            one is not the one that this one follows.
    """
    reached = last.sequence if last is not None else 0
    if write.after is not None and reached != write.sequence:
        if reached == write.after:
            return "new"
        raise SchemaError(
            f"write {write.sequence} of a producer does not follow its last one",
            code="E_SEQUENCE",
            detail=f"that is {reached}",
            hint="ask how far the producer is, and send what lies behind that",
        )
    if last is not None and write.sequence <= last.sequence:
        if write.sequence < last.sequence or last.done >= last.total:
            return "repeat"
        write.skip = last.done
        return "rest"
    follows = last is not None and write.sequence == last.sequence + 1
    if follows or write.sequence == write.settled:
        return "new"
    known = "none is known" if last is None else f"the last one is {last.sequence}"
    raise SchemaError(
        f"write {write.sequence} of a producer is out of order",
        code="E_SEQUENCE",
        detail=known,
        hint="send all writes again that have no answer, in order",
    )


@dataclass
class Cut:
    """One record: rows `low`…`high` of the accepted ones, whose parts it carries, and the writes
    that are whole with it.
    """

    low: int
    high: int
    parts: list[WritePart] = field(default_factory=list)
    complete: list[Entry] = field(default_factory=list)
    #: accepted rows of each write in it
    counts: list[int] = field(default_factory=list)


def ends(borders: Sequence[int], step: int, small: Callable[[int, int], bool]) -> list[int]:
    """Where records end that hold about *step* rows. A small write is never cut: it is in the log
    or it is not.

    Args:
        borders: where writes begin, and where the last one ends.
        small: whether the rows between two places fit into one record.
    """
    found: list[int] = []
    low = 0
    total = borders[-1]
    while low < total:
        high = min(low + step, total)
        after = bisect_left(borders, high)
        begin = borders[after - 1]
        end = borders[after]
        if end > high and small(begin, end):
            high = begin if begin > low else end
        found.append(high)
        low = high
    return found or [0]


def cuts(
    writes: Sequence[ProducerWrite], taken: npt.NDArray[np.int64], ends: Sequence[int]
) -> list[Cut]:
    """How the writes lie in records.

    Args:
        writes: in order; their rows without the skipped ones form the input.
        taken: for each accepted row, its place in the input.
        ends: where records end, in accepted rows; the last one takes whatever is left of the input.
    """
    borders = np.concatenate([[0], np.cumsum([w.rows - w.skip for w in writes])])
    total = int(borders[-1])
    found: list[Cut] = []
    low = before = w = 0
    for i, high in enumerate(ends):
        upto = total if i == len(ends) - 1 else int(taken[high - 1]) + 1
        cut = Cut(low, high)
        while w < len(writes):
            start = int(borders[w])
            end = int(borders[w + 1])
            if start >= upto and not (start == end == upto and i == len(ends) - 1):
                break
            write = writes[w]
            reached = min(upto, end) - start
            cut.parts.append(
                WritePart(write.producer, write.sequence, reached + write.skip, write.rows)
            )
            inside = np.searchsorted(taken[low:high], [max(start, before), min(upto, end)])
            if inside[1] > inside[0]:
                cut.counts.append(int(inside[1] - inside[0]))
            if end > upto:
                break
            cut.complete.append(write)
            w += 1
        found.append(cut)
        low = high
        before = upto
    return found


def whole(write: ProducerWrite, rows: int) -> Cut:
    """The record of a write that has one for itself: what `cuts` finds then.

    Args:
        rows: how many of its rows are accepted.
    """
    return Cut(
        0,
        rows,
        [WritePart(write.producer, write.sequence, write.rows, write.rows)],
        [write],
        [rows] if rows else [],
    )

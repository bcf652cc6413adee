"""The newest slices of a topic: bounded, and honest about what is there no more."""

from __future__ import annotations

import pytest

from penstock.feeds.memory import SLICE_BYTES, YOUNG_SLICES, FeedMemory
from penstock.feeds.slices import Slice

from .kit import piece

#: what a slice of ten bytes takes
_TEN = 10 + SLICE_BYTES


def test_the_newest_slices_stay_within_the_bound() -> None:
    memory = FeedMemory({0: 100}, 3 * _TEN + 5)
    memory.add(piece([b"x" * 10], first=first) for first in range(100, 110))

    found = memory.since(0, 108)

    assert found is not None and [s.first for s in found] == [108, 109]
    assert memory.ends() == {0: 110}
    assert memory.since(0, 110) == []
    kept = memory.since(0, 107)
    assert kept is not None and sum(s.size for s in kept) == 30
    assert memory.since(0, 106) is None, "further back than memory goes"


def test_one_slice_larger_than_the_bound_is_kept() -> None:
    memory = FeedMemory({0: 0}, 10)
    memory.add([piece([b"x" * 100])])

    found = memory.since(0, 0)
    assert found is not None and len(found) == 1


def test_partitions_share_the_room() -> None:
    memory = FeedMemory({0: 0, 1: 7}, 4 * _TEN)
    memory.add(piece([b"x" * 10], first=first) for first in range(4))
    memory.add([piece([b"x" * 10], first=7, partition=1)])

    assert memory.ends() == {0: 4, 1: 8}
    assert memory.since(0, 1) is None
    kept = [memory.since(0, 2), memory.since(1, 7)]
    assert [[s.first for s in found or []] for found in kept] == [[2, 3], [7]]


def test_only_young_slices_keep_what_was_made_of_them() -> None:
    memory = FeedMemory({0: 0}, 8 * 20)
    slices = [piece([b"x" * 10], first=i) for i in range(8)]
    made: list[int] = []
    for s in slices:
        memory.add([s])
        s.share("rows", lambda: made.append(1))
    slices[7].share("rows", lambda: made.append(1))
    assert len(made) == 8
    slices[0].share("rows", lambda: made.append(1))
    assert len(made) == 9


def test_who_waits_for_the_newest_looks_at_nothing_older(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = FeedMemory({0: 0}, 1 << 20)
    memory.add(piece([b"x"], first=i) for i in range(1_000))
    looked_at: list[int] = []

    def look(one: Slice) -> int:
        looked_at.append(one.first)
        return one.batch.next_offset

    monkeypatch.setattr(Slice, "next", property(look))
    found = memory.since(0, 998)

    assert found is not None and [s.first for s in found] == [998, 999]
    assert looked_at == [999, 998, 997]


def test_slices_of_one_record_do_not_outgrow_the_bound() -> None:
    """They are small, and what holds them is not."""
    bound = 1 << 20
    memory = FeedMemory({0: 0}, bound)
    slices = [piece([b"x"], first=i) for i in range(4_000)]
    for s in slices:
        memory.add([s])
        s.share("rows", lambda: b"made")

    found = memory.since(0, 3_900)
    assert found is not None and len(found) == 100
    assert memory.since(0, 0) is None
    made: list[int] = []
    for s in slices:
        s.share("rows", lambda: made.append(1))
    assert len(slices) - len(made) == YOUNG_SLICES

"""The ring of newest slices: bounded, and honest about what it has no more."""

from __future__ import annotations

from penstock.feeds.feed import _Ring, slices_of

from .kit import piece


def test_ring_keeps_the_newest_within_its_bound() -> None:
    ring = _Ring(100)
    for first in range(100, 110):
        ring.add(piece([b"x" * 10], first=first), bound=35)
    assert (ring.floor, ring.next, ring.size) == (107, 110, 30)
    found = ring.since(108)
    assert found is not None and [s.first for s in found] == [108, 109]
    assert ring.since(110) == []
    assert ring.since(106) is None, "further back than memory goes"


def test_one_slice_larger_than_the_bound_is_kept() -> None:
    ring = _Ring(0)
    ring.add(piece([b"x" * 100]), bound=10)
    found = ring.since(0)
    assert found is not None and len(found) == 1


def test_only_young_slices_keep_what_was_made_of_them() -> None:
    ring = _Ring(0)
    slices = [piece([b"x" * 10], first=i) for i in range(8)]
    made = []
    for s in slices:
        for old in ring.add(s, bound=160):
            old.forget()
        s.share("rows", lambda: made.append(1))
    slices[7].share("rows", lambda: made.append(1))
    assert len(made) == 8
    slices[0].share("rows", lambda: made.append(1))
    assert len(made) == 9


def test_large_batches_are_cut() -> None:
    whole = piece([b"x" * 300_000] * 5 + [b"x" * 2_000_000, b"y"], first=7)
    cut = slices_of(whole.batch)
    assert [v for s in cut for v in s.batch.values] == whole.batch.values
    assert [s.first for s in cut][1:] == [s.next for s in cut][:-1] and cut[0].first == 7
    assert all(s.size - len(s.batch.values[0] or b"") < 512 << 10 for s in cut) and len(cut) > 3
    assert [len(slices_of(piece([b"x"] * n).batch)) for n in (1, 100)] == [1, 1]

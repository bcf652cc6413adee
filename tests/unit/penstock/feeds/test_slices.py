"""Slices of a topic: what of one lies before the topic's end."""

from __future__ import annotations

import numpy as np

from penstock.bus import Batch
from penstock.feeds.slices import slice_of, slices_of

from .kit import piece as piece_of


def test_what_comes_up_to_an_offset() -> None:
    offsets = np.array([7, 8, 10, 11])
    piece = slice_of(
        Batch("in.d", 3, offsets, offsets * 100, [None] * 4, [b"1", b"22", b"333", b"4444"])
    )
    part = piece.until(10)
    assert part is not None
    assert (part.partition, part.first, part.next, part.size, part.batch.values) == (
        3,
        7,
        11,
        6,
        [b"1", b"22", b"333"],
    )
    assert part.batch.timestamps.tolist() == [700, 800, 1000]
    assert piece.until(11) is piece
    assert piece.until(6) is None


def test_large_batches_are_cut() -> None:
    whole = piece_of([b"x" * 300_000] * 5 + [b"x" * 2_000_000, b"y"], first=7)
    cut = slices_of(whole.batch)
    assert [v for s in cut for v in s.batch.values] == whole.batch.values
    assert [s.first for s in cut][1:] == [s.next for s in cut][:-1] and cut[0].first == 7
    assert all(s.size - len(s.batch.values[0] or b"") < 512 << 10 for s in cut) and len(cut) > 3
    assert [len(slices_of(piece_of([b"x"] * n).batch)) for n in (1, 100)] == [1, 1]

"""Slices of a topic: what of one lies before the topic's end."""

from __future__ import annotations

import numpy as np

from penstock.bus import Batch
from penstock.feeds.feed import slice_of


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

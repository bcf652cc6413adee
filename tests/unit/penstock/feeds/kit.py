"""Slices of one partition, for tests of what keeps them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.bus import Batch
from penstock.feeds.slices import Slice, slice_of


def piece(values: Sequence[bytes], *, first: int = 0, partition: int = 0) -> Slice:
    """Records with *values* from offset *first* on."""
    offsets = np.arange(first, first + len(values))
    keys: list[bytes | None] = [None] * len(values)
    return slice_of(Batch("in.d", partition, offsets, offsets * 100, keys, [*values]))

"""A line of a frame per slot, for what is no machine number."""

from __future__ import annotations

import numpy as np
import polars as pl

from penstock.windows.assign.calls import Array
from penstock.windows.groups.key_index import Numbers


class SlotLines:
    """A line of a frame per slot: new lines go to the end, dead ones go when they are the most.
    Line 0 is all NULL.
    """

    def __init__(self) -> None:
        self.lines: Array = np.empty(0, np.int64)
        self._frame: pl.DataFrame | None = None

    def put(self, slots: Numbers, frame: pl.DataFrame) -> None:
        if self._frame is None:
            self._frame = frame.clear(1)
        base = self._frame.height
        self._frame = self._frame.vstack(frame.select(self._frame.columns))
        self.lines[slots] = np.arange(base, base + len(slots))
        if self._frame.n_chunks() > 64:
            self._frame = self._frame.rechunk()

    def read(self, slots: Numbers) -> pl.DataFrame | None:
        """Lines of *slots*; None before the first `put`."""
        return None if self._frame is None else self._frame[self.lines.take(slots)]

    def compact(self, live: Numbers) -> None:
        if self._frame is None or self._frame.height < 2 * len(live) + 4096:
            return
        held = live[self.lines[live] > 0]
        lines = np.concatenate(([0], self.lines[held]))
        self._frame = self._frame[lines].rechunk()
        self.lines[held] = np.arange(1, len(held) + 1)

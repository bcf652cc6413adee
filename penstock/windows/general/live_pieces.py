"""Live rows in pieces by arrival, so that a correction costs what it touches and not what is held.

Rows mostly come in order of time: a piece spans little time and few arrival numbers. Who looks for
some rows passes over the pieces that cannot hold them, and removing rows writes only their pieces
anew. Small pieces are merged as they age, each row a few times at most. Refuses to order rows
within a piece.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from penstock.windows.clocks.ticks import NEVER

Numbers = npt.NDArray[np.int64]
#: rows of a piece above which it is merged no more
_FULL = 32_768


class LivePieces:
    """Rows by arrival number (`_seq`) and time."""

    def __init__(self, empty: pl.DataFrame, time: str) -> None:
        """*empty* gives the layout, *time* is the time column's name."""
        self._empty = empty
        self.time = time
        self._pieces: list[pl.DataFrame] = []
        # of each piece: earliest and latest time, lowest and highest arrival number
        self._bounds: Numbers = np.empty((0, 4), np.int64)
        self.count = 0

    @property
    def all(self) -> pl.DataFrame:
        """All rows, unordered."""
        return pl.concat(self._pieces) if self._pieces else self._empty

    def add(self, rows: pl.DataFrame) -> None:
        """Take rows over."""
        if not rows.height:
            return
        self.count += rows.height
        size = rows.height
        merged = [rows]
        while (
            self._pieces
            and self._pieces[-1].height < 2 * size
            and self._pieces[-1].height + size <= _FULL
        ):
            merged.append(self._pieces.pop())
            size += merged[-1].height
        piece = pl.concat(merged[::-1], rechunk=True) if len(merged) > 1 else rows
        self._bounds = np.vstack([self._bounds[: len(self._pieces)], self._bounds_of(piece)])
        self._pieces.append(piece)

    def remove(self, numbers: Numbers) -> None:
        """Forget the rows with these arrival numbers."""
        gone = np.sort(numbers)
        first = np.searchsorted(gone, self._bounds[:, 2], "left")
        hit = np.searchsorted(gone, self._bounds[:, 3], "right") > first
        for i in np.flatnonzero(hit)[::-1]:
            piece = self._pieces[i]
            kept = piece.filter(
                pl.Series(~np.isin(piece.get_column("_seq").to_numpy(), gone, assume_unique=True))
            )
            self.count -= piece.height - kept.height
            if kept.height:
                self._pieces[i] = kept
            else:
                del self._pieces[i]
                self._bounds = np.delete(self._bounds, i, axis=0)

    def at(self, times: Numbers) -> list[pl.DataFrame]:
        """The pieces that may hold rows of one of *times*."""
        ordered = np.sort(times)
        hit = np.searchsorted(ordered, self._bounds[:, 1], "right") > np.searchsorted(
            ordered, self._bounds[:, 0], "left"
        )
        return [self._pieces[i] for i in np.flatnonzero(hit)]

    def between(self, low: Numbers, high: Numbers) -> list[pl.DataFrame]:
        """The pieces that may hold rows of one of the stretches *low*[i]..*high*[i]."""
        # of the stretches that begin by a piece's end: does one reach up to its beginning?
        order = np.argsort(low)
        begun = np.searchsorted(low[order], self._bounds[:, 1], "right")
        furthest = np.maximum.accumulate(np.append(high[order], NEVER))
        hit = (begun > 0) & (furthest[begun - 1] >= self._bounds[:, 0])
        return [self._pieces[i] for i in np.flatnonzero(hit)]

    def _bounds_of(self, piece: pl.DataFrame) -> Numbers:
        times = piece.get_column(self.time).to_numpy()
        numbers = piece.get_column("_seq").to_numpy()
        return np.array([[times.min(), times.max(), numbers.min(), numbers.max()]], np.int64)

"""The newest rows of those that came, and how many came: what a live object shows of itself."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from penstock.notebook.markup import MOST_ROWS, Rows

Piece: TypeAlias = "pa.Table | Sequence[dict[str, Any]]"


class NewestRows:
    """Written by one thread, read by any. Rows stay as they came until somebody looks."""

    def __init__(self) -> None:
        #: rows that came so far, and when the last ones came, in seconds of the epoch
        self.count = 0
        self.at = 0.0
        self._pieces: deque[Piece] = deque()
        self._kept = 0

    def add(self, piece: Piece) -> None:
        """Take rows that came together."""
        came = len(piece)
        if not came:
            return
        self.count += came
        self.at = time.time()
        if came > MOST_ROWS:
            piece = _end_of(piece)
        self._pieces.append(piece)
        self._kept += len(piece)
        while self._kept - len(self._pieces[0]) >= MOST_ROWS:
            self._kept -= len(self._pieces.popleft())

    def last(self, most: int) -> tuple[list[str], Rows]:
        """Return names of columns, and the last rows, oldest first."""
        rows = [row for piece in list(self._pieces) for row in _objects(piece)]
        names = list(dict.fromkeys(name for row in rows for name in row))
        shown = rows[-most:] if most > 0 else []
        return names, [[row.get(name) for name in names] for row in shown]


def _end_of(piece: Piece) -> Piece:
    if not isinstance(piece, pa.Table):
        return piece[-MOST_ROWS:]
    # a copy: a slice would keep all of a large message
    return piece.take(list(range(len(piece) - MOST_ROWS, len(piece))))


def _objects(piece: Piece) -> Sequence[dict[str, Any]]:
    found: Sequence[dict[str, Any]] = piece.to_pylist() if isinstance(piece, pa.Table) else piece
    return found

"""What a stream has done in one lane: counters that are part of its state, so that a crash counts nothing twice."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass

import polars as pl

from penstock.windows.kernel import Delta

#: the frame of a delta that holds them
FRAME = "lane.stats"


@dataclass
class Stats:
    """Rows that came in and results that went out, rows dropped as late and rows or results that failed, and the newest complaint."""

    rows_in: int = 0
    rows_out: int = 0
    late: int = 0
    failed: int = 0
    #: bytes of the state as it is saved: when it was last saved in full, and what changed since
    state_bytes: int = 0
    #: the first part of it alone
    full_bytes: int = 0
    error: str = ""

    def into(self, delta: Delta) -> Delta:
        """*delta* with the counters in it."""
        size = sum(int(f.estimated_size()) for f in delta.frames.values())
        self.state_bytes = size if delta.full else self.state_bytes + size
        self.full_bytes = size if delta.full else self.full_bytes
        return Delta({**delta.frames, FRAME: pl.DataFrame([dataclasses.asdict(self)])}, delta.full)

    def take(self, delta: Delta) -> Delta:
        """*delta* without the counters, which become these."""
        frame = delta.frames.get(FRAME)
        if frame is None:
            return delta
        for name, value in frame.row(0, named=True).items():
            setattr(self, name, value)
        return Delta({n: f for n, f in delta.frames.items() if n != FRAME}, delta.full)

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

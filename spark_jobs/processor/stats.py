"""What a stream has done in one processor: counters that are part of its state, so that a crash
counts nothing twice.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from dataclasses import dataclass, field

import polars as pl

from penstock.runtime.health import SECONDS
from penstock.windows.kernel import Delta

#: the frame of a delta that holds them
FRAME = "lane.stats"


@dataclass
class Stats:
    """Rows that came in and results that went out, rows dropped as late and rows or results that
    failed, and the newest complaint.
    """

    rows_in: int = 0
    rows_out: int = 0
    late: int = 0
    failed: int = 0
    #: bytes of the state as it is saved: when it was last saved in full, and what changed since
    state_bytes: int = 0
    #: the first part of it alone
    full_bytes: int = 0
    error: str = ""
    #: records of results by the bound of `SECONDS` within which they followed the rows they were
    #: made of, and behind these what took longer
    followed: list[int] = field(default_factory=lambda: [0] * (len(SECONDS) + 1))
    followed_seconds: float = 0.0

    def follow(self, seconds: float) -> None:
        """A record of results is in the log, so long after the oldest row that it was made of."""
        self.followed[bisect_left(SECONDS, seconds)] += 1
        self.followed_seconds += seconds

    def into(self, delta: Delta) -> Delta:
        """*delta* with the counters in it."""
        size = sum(int(f.estimated_size()) for f in delta.frames.values())
        self.state_bytes = size if delta.full else self.state_bytes + size
        self.full_bytes = size if delta.full else self.full_bytes
        # as text: a list in a frame costs more to make than all the rest
        kept = {**vars(self), "followed": json.dumps(self.followed)}
        return Delta({**delta.frames, FRAME: pl.DataFrame([kept])}, delta.full)

    def take(self, delta: Delta) -> Delta:
        """*delta* without the counters, which become these."""
        frame = delta.frames.get(FRAME)
        if frame is None:
            return delta
        for name, value in frame.row(0, named=True).items():
            setattr(self, name, json.loads(value) if name == "followed" else value)
        return Delta({n: f for n, f in delta.frames.items() if n != FRAME}, delta.full)

    def to_json(self) -> str:
        return json.dumps(vars(self))

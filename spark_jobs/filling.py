"""FILL_HISTORY by stretches of time, each at a control record of its own.

A processor that begins a stream cuts its history into stretches and writes the first to its own
partition, as a control `fill`. Where that comes back, in its order among the rows, the stretch is
computed, its results carry that offset, and the next one is written; behind the last comes
`filled`. So other streams go on between two stretches, memory holds one of them, and after a crash
the log itself says what was to be computed: what was cut once is never cut anew. Refused here:
reading rows, and what a kernel does with them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace

import numpy as np
import numpy.typing as npt

from penstock.records import ControlRecord
from penstock.windows.kernel import EARLIEST, LATEST

#: how finely times are counted at once
_BINS = 1 << 14


@dataclass(frozen=True)
class Filling:
    """What is left to do: `ends` are the last ticks of the stretches, earliest first, the first of
    them begins at `low`.

    `until`: what is history, as a mark of the source's `History`. `pieces`: how many stretches
    there were.
    """

    until: str
    ends: tuple[int, ...]
    pieces: int
    low: int = EARLIEST

    @property
    def percent(self) -> int:
        """How much is done."""
        return 100 * (self.pieces - len(self.ends)) // max(self.pieces, 1)

    @property
    def rest(self) -> Filling:
        """What is left behind the first stretch."""
        return replace(self, ends=self.ends[1:], low=self.ends[0] + 1)

    def control(self, stream_id: int, producer: str, offset: int) -> ControlRecord:
        """The record that has the next step done; *producer*, *offset*: of the processor, and of
        the record at which this is written.
        """
        kind = "fill" if self.ends else "filled"
        return ControlRecord(
            kind, stream=stream_id, body=json.dumps(asdict(self)), producer=producer, offset=offset
        )

    @classmethod
    def read(cls, control: ControlRecord) -> Filling:
        """What `control` wrote."""
        raw = json.loads(control.body)
        return cls(raw["until"], tuple(raw["ends"]), raw["pieces"], raw["low"])


def stretches(times: Callable[[int, int], Iterable[npt.NDArray[np.int64]]], most: int) -> list[int]:
    """Cut all time into stretches of some *most* rows, or of one tick where that holds more; the
    last tick of each, earliest first.

    *times*: those of low..high, in pieces of any size and order.
    """
    spans = [(int(t.min()), int(t.max())) for t in times(EARLIEST, LATEST) if len(t)]
    if not spans:
        return [LATEST]
    ends = _cut(times, min(low for low, _ in spans), max(high for _, high in spans), most)
    return [*ends[:-1], LATEST]


def _cut(
    times: Callable[[int, int], Iterable[npt.NDArray[np.int64]]], low: int, high: int, most: int
) -> list[int]:
    width = max(-(-(high - low + 1) // _BINS), 1)
    counts = np.zeros(_BINS, np.int64)
    for piece in times(low, high):
        counts += np.bincount((piece - low) // width, minlength=_BINS)
    ends: list[int] = []
    held = 0
    for at in np.flatnonzero(counts).tolist():
        first = low + at * width
        last = min(low + (at + 1) * width - 1, high)
        if held and held + counts[at] > most:
            ends.append(first - 1)
            held = 0
        if counts[at] > most and width > 1:
            ends += _cut(times, first, last, most)
        else:
            held += int(counts[at])
    return [*ends, high] if held else ends

"""Cuts records into chunks, runs of data records or a single control record.

A chunk is the grain of positions, of replay and of snapshots. It ends where a predecessor's chunk
ended that has published something, and a record that may have killed the operator stands alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from penstock import names
from spark_jobs.input import Records
from spark_jobs.poison import Poison
from spark_jobs.replay import Replay


class ChunkCutter:
    """The limits of chunks in one topic-partition."""

    def __init__(self, replay: Replay, poison: Poison) -> None:
        self._replay = replay
        self._poison = poison

    def chunks(self, records: Records) -> Iterator[Records]:
        """Yield *records* in chunks. A chunk has to be worked on before the next one is asked for:
        what was passed limits nothing any more.
        """
        at = 0
        for control in np.flatnonzero(records.ids == names.CONTROL_SCHEMA_ID).tolist():
            yield from self._data(records, at, control)
            at = control + 1
            yield records.slice(control, at)
        yield from self._data(records, at, len(records))

    def _data(self, records: Records, start: int, stop: int) -> Iterator[Records]:
        while start < stop:
            end = self._end(records, start, stop)
            yield records.slice(start, end)
            start = end

    def _end(self, records: Records, start: int, stop: int) -> int:
        """Return where the chunk that begins at *start* ends, at *stop* or before."""
        first = int(records.offsets[start])
        last = self._replay.limit(first, int(records.offsets[stop - 1]))
        bound = self._replay.has_outputs_within(first, last)
        if self._poison.alone(first, bound=bound):
            last = first
        else:
            last = self._poison.limit(first, last, bound=bound)
        return max(int(records.offsets.searchsorted(last, side="right")), start + 1)

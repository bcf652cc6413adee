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


def cut(records: Records, replay: Replay, poison: Poison) -> Iterator[Records]:
    """Yield *records* in chunks. A chunk has to be worked on before the next one is asked for: what
    was passed limits nothing any more.

    Args:
        replay: knows where a predecessor's chunks ended.
        poison: knows which records may have killed the operator.
    """
    at = 0
    for control in np.flatnonzero(records.ids == names.CONTROL_SCHEMA_ID).tolist():
        yield from _cut_data(records, at, control, replay, poison)
        at = control + 1
        yield records.slice(control, at)
    yield from _cut_data(records, at, len(records), replay, poison)


def _cut_data(
    records: Records, start: int, stop: int, replay: Replay, poison: Poison
) -> Iterator[Records]:
    while start < stop:
        end = _find_end(records, start, stop, replay, poison)
        yield records.slice(start, end)
        start = end


def _find_end(records: Records, start: int, stop: int, replay: Replay, poison: Poison) -> int:
    """Return where the chunk that begins at *start* ends, at *stop* or before."""
    first = int(records.offsets[start])
    last = replay.limit(first, int(records.offsets[stop - 1]))
    bound = replay.has_outputs_within(first, last)
    if poison.alone(first, bound=bound):
        last = first
    else:
        last = poison.limit(first, last, bound=bound)
    return max(int(records.offsets.searchsorted(last, side="right")), start + 1)

"""How many records of a backlog cross into Python at once.

Each hand-over costs the same whatever it holds, so few large ones are cheap; but Spark can bound
them by a number of records only (one in bytes makes it add up its buffers after every row). So some
of the records that wait are looked at first, all along the backlog. Refused: trusting a look that
saw nothing, or one behind which the query failed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from penstock.bus import Reader

#: records at once when nothing is known of their size
CAUTIOUS = 500
_FEWEST = 16
#: bytes that may cross at once: Spark holds so many in memory for each partition. A tenth less than
#: 16 MiB, because its buffer has a power of two of which it clears all, twice for each hand-over
#: (docs/performance.md)
HAND_OVER_BYTES = (16 << 20) * 9 // 10
#: places of a partition's backlog that are looked at, records in each, and how long all of it may
#: take
_PLACES = 16
_LOOK = 25
_PATIENCE = 2.0


def records_at_once(mean_bytes: float | None, *, most_records: int, most_bytes: int) -> int:
    """How many records of *mean_bytes* each are about *most_bytes*, and *most_records* at most.
    Pure.
    """
    if mean_bytes is None:
        return min(CAUTIOUS, most_records)
    return max(
        min(int(most_bytes / max(mean_bytes, 1.0)), most_records), min(_FEWEST, most_records)
    )


def places(begin: int, end: int) -> list[int]:
    """Offsets at which to look at the records begin..end: in the middle of stretches of equal
    length. Pure.

    Not at its ends: a backlog begins with the results of the one before, which are large and few.
    """
    if begin >= end:
        return []
    middles = begin + (np.arange(_PLACES) + 0.5) * (end - begin) / _PLACES - _LOOK / 2
    return sorted({int(at) for at in middles.clip(begin, max(end - _LOOK, begin))})


def mean_size(
    bootstrap: str, topic: str, begins: Mapping[int, int], ends: Mapping[int, int]
) -> float | None:
    """Bytes of a record in the mean, over places all along the backlog of every partition: a
    stretch of large ones among small counts by its length. None: nothing could be read in time.

    Raises:
        BusError: the topic cannot be read.
    """
    waiting = {
        (topic, p): found for p, begin in begins.items() if (found := places(begin, ends[p]))
    }
    if not waiting:
        return None
    sizes: list[int] = []
    until = time.monotonic() + _PATIENCE
    first = {where: found.pop(0) for where, found in waiting.items()}
    with Reader(
        bootstrap,
        first,
        client_id="penstock-backlog",
        max_wait_ms=20,
        queue_bytes=1 << 20,
        queue_records=_LOOK,
    ) as reader:
        while waiting and (patience := until - time.monotonic()) > 0:
            for batch in reader.read(_LOOK * len(waiting), patience):
                where = (batch.topic, batch.partition)
                if where not in waiting:
                    continue
                sizes += [len(v) for v in batch.values[:_LOOK] if v is not None]
                if waiting[where]:
                    reader.seek(*where, waiting[where].pop(0))
                else:
                    del waiting[where]
    return float(np.mean(sizes)) if sizes else None

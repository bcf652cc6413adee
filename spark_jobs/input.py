"""The way in: Spark's batches of a task, taken as many at a time as there are.

Spark hands over one record at a time and a filler with it; a kernel call costs the same for one
record as for hundreds, so what has arrived while the last chunk ran becomes the next chunk. What
does not fit a chunk stays in the socket; a full one stops Spark. The longer chunks take (with a
hundred streams a tenth of a second), the longer the next one is gathered: more rows then share what
is fixed of its cost.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock import tuning
from penstock.codec import schema_ids
from spark_jobs.task_batches import Columns, TaskBatches

#: a record's place: its partition above so many bits, in which its offset is
OFFSET_BITS = 48
_OFFSET = (1 << OFFSET_BITS) - 1
#: a chunk is gathered for so many seconds at most, however fast records come; or for as long as the
#: last one took, if that was longer
_GATHER = 0.01
#: of that time a lull may take this part: while a long chunk is at work Spark stands still behind a
#: full socket, and has to wake up first
_LULL = 1 / 8

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Records:
    """Records of one topic-partition in offset order; `timestamps` are append times in
    milliseconds, `ids` see `schema_ids`.
    """

    topic: str
    partition: int
    offsets: Numbers
    timestamps: Numbers
    values: list[bytes | None]
    ids: Numbers

    def __len__(self) -> int:
        return len(self.values)

    def slice(self, start: int, stop: int) -> Records:
        part = slice(start, stop)
        return Records(
            self.topic,
            self.partition,
            self.offsets[part],
            self.timestamps[part],
            self.values[part],
            self.ids[part],
        )

    def choose(self, places: Sequence[int]) -> Records:
        at = np.asarray(places, np.int64)
        return Records(
            self.topic,
            self.partition,
            self.offsets[at],
            self.timestamps[at],
            [self.values[i] for i in places],
            self.ids[at],
        )


def concatenate(parts: Sequence[Records]) -> Records:
    """Return *parts*, of one topic-partition, as one."""
    offsets, times, ids = (
        np.concatenate([getattr(p, name) for p in parts])
        for name in ("offsets", "timestamps", "ids")
    )
    return Records(
        parts[0].topic,
        parts[0].partition,
        offsets,
        times,
        [value for p in parts for value in p.values],
        ids,
    )


class Inbox:
    """Everything a task is given, in order."""

    def __init__(
        self, topic: str, batches: TaskBatches, *, max_records: int, max_bytes: int
    ) -> None:
        """*batches*: `place`, `time` (when it was appended, ms), `value` of records of one
        partition of *topic*; a filler has no place.
        """
        self._topic = topic
        self._batches = batches
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._ended = False
        self._left = time.monotonic()

    def take(self, timeout: float | None) -> Records | None:
        """What is there, up to the limits; empty records after *timeout* seconds without any, None
        at the end of the input.

        Raises:
            BaseException: whatever ended the input early; what was there before it is lost to this
                task.
        """
        taken = _Taken(self._topic)
        worked = time.monotonic() - self._left
        behind = worked > _GATHER
        begun = 0.0
        gather = worked if behind else _GATHER
        lull = worked * _LULL if behind else 0.0
        while (
            not self._ended and taken.records < self._max_records and taken.size < self._max_bytes
        ):
            if (
                taken.records
                and time.monotonic() > begun + gather
                or not self._batches.waits(lull if taken.records else timeout)
            ):
                break
            columns = self._batches.take()
            if columns is None:
                self._ended = True
            else:
                taken.add(columns)
                begun = begun or (time.monotonic() if taken.records else 0.0)
        self._left = time.monotonic()
        return None if self._ended and not taken.records else taken.all()


_EMPTY = Records("", -1, np.empty(0, np.int64), np.empty(0, np.int64), [], np.empty(0, np.int64))


class _Taken:
    """Records of one chunk as they come: a few at a time as Python's values, which Arrow would take
    longer for; many as they are.
    """

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self.records = self.size = 0
        self._few: list[tuple[int, int, bytes | None]] = []
        self._parts: list[Records] = []

    def add(self, columns: Columns) -> None:
        if len(columns[0]) <= tuning.BATCH_RECORDS_TAKEN_ONE_BY_ONE:
            found = [
                r for r in zip(*(c.to_pylist() for c in columns), strict=True) if r[0] is not None
            ]
            self._few += found
            self.records += len(found)
            self.size += sum(len(value) for *_, value in found if value is not None)
            return
        self._close()
        if columns[0].null_count:
            columns = [c.filter(columns[0].is_valid()) for c in columns]
        places, times = (c.to_numpy(zero_copy_only=False) for c in columns[:2])
        values = columns[2].to_pylist()
        self._part(places, times, values, schema_ids(values, columns[2]))
        self.records += len(places)
        # what a slice keeps alive, and a fifth of the time that `nbytes` takes
        self.size += sum(c.get_total_buffer_size() for c in columns)

    def all(self) -> Records:
        """All that was added."""
        self._close()
        if not self._parts:
            return _EMPTY
        return self._parts[0] if len(self._parts) == 1 else concatenate(self._parts)

    def _close(self) -> None:
        if self._few:
            places, times, values = (list(column) for column in zip(*self._few, strict=True))
            self._few = []
            self._part(
                np.array(places, np.int64), np.array(times, np.int64), values, schema_ids(values)
            )

    def _part(
        self, places: Numbers, times: Numbers, values: list[bytes | None], ids: Numbers
    ) -> None:
        self._parts.append(
            Records(
                self._topic, int(places[0] >> OFFSET_BITS), places & _OFFSET, times, values, ids
            )
        )

"""The way in: Spark's batches of a task, taken as many at a time as there are.

Spark hands over one record at a time and a filler with it; a kernel call costs the same for one record as for hundreds, so what has
arrived while the last unit ran becomes the next unit. What does not fit a unit stays in the socket; a full one stops Spark.
The longer units take (with a hundred streams a tenth of a second), the longer the next one is gathered: more rows then share what is fixed
of its cost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.codec import schema_ids
from spark_jobs import pipe

#: a record's place: its partition above so many bits, in which its offset is
OFFSET_BITS = 48
_OFFSET = (1 << OFFSET_BITS) - 1
#: a unit is gathered for so many seconds at most, however fast records come; or for as long as the last one took, if that was longer
_GATHER = 0.01
#: of that time a lull may take this part: while a long unit is at work Spark stands still behind a full socket, and has to wake up first
_LULL = 1 / 8
#: records of a batch, from which on it is of a backlog
_LARGE = 16


@dataclass(frozen=True)
class Records:
    """Records of one topic-partition in offset order; `timestamps` are append times in milliseconds, `ids` see `schema_ids`."""

    topic: str
    partition: int
    offsets: npt.NDArray[np.int64]
    timestamps: npt.NDArray[np.int64]
    values: list[bytes | None]
    ids: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.values)

    def slice(self, start: int, stop: int) -> Records:
        part = slice(start, stop)
        return Records(self.topic, self.partition, self.offsets[part], self.timestamps[part], self.values[part], self.ids[part])

    def chosen(self, places: Sequence[int]) -> Records:
        at = np.asarray(places, np.int64)
        return Records(self.topic, self.partition, self.offsets[at], self.timestamps[at], [self.values[i] for i in places], self.ids[at])


def joined(parts: Sequence[Records]) -> Records:
    """*parts*, of one topic-partition, as one."""
    offsets, times, ids = (np.concatenate([getattr(p, name) for p in parts]) for name in ("offsets", "timestamps", "ids"))
    return Records(parts[0].topic, parts[0].partition, offsets, times, [value for p in parts for value in p.values], ids)


class Inbox:
    """Everything a task is given, in order."""

    def __init__(
        self, topic: str, batches: Iterator[pa.RecordBatch], *, max_records: int, max_bytes: int,
        waits: Callable[[float | None], bool] = pipe.waits,
    ) -> None:  # fmt: skip
        """
        Arguments that need a word:
            batches: `place`, `time` (when it was appended, ms), `value` of records of one partition of *topic*; a filler has no place.
            waits: whether there is one, or their end, within so many seconds.
        """
        self._topic, self._batches, self._waits = topic, batches, waits
        self._max_records, self._max_bytes = max_records, max_bytes
        self._ended = False
        self._left = time.monotonic()

    def take(self, timeout: float | None) -> Records | None:
        """What is there, up to the limits; empty records after *timeout* seconds without any, None at the end of the input.

        Raises:
            BaseException: whatever ended the input early; what was there before it is lost to this task.
        """
        taken: list[pa.RecordBatch] = []
        records = size = 0
        worked = time.monotonic() - self._left
        behind = worked > _GATHER
        begun, gather, lull = 0.0, worked if behind else _GATHER, worked * _LULL if behind else 0.0
        while not self._ended and records < self._max_records and size < self._max_bytes:
            if taken and time.monotonic() > begun + gather or not self._waits(lull if taken else timeout):
                break
            batch = next(self._batches, None)
            if batch is None:
                self._ended = True
            elif len(batch := _without_fillers(batch)):
                begun = begun or time.monotonic()
                # of a slice what it keeps alive, and a fifth of the time that `nbytes` takes
                records, size = records + batch.num_rows, size + batch.get_total_buffer_size()
                taken.append(batch)
        self._left = time.monotonic()
        return None if self._ended and not taken else _records(self._topic, taken)


_EMPTY = Records("", -1, np.empty(0, np.int64), np.empty(0, np.int64), [], np.empty(0, np.int64))


def _without_fillers(batch: pa.RecordBatch) -> pa.RecordBatch:
    place = batch.column(0)
    if not place.null_count:
        return batch
    if batch.num_rows == 2 and place.null_count == 1:  # one of each: what comes a record at a time
        return batch.slice(0, 1) if place[0].is_valid else batch.slice(1)
    return batch.filter(place.is_valid())


def _records(topic: str, batches: list[pa.RecordBatch]) -> Records:
    if not batches:
        return _EMPTY
    # those of a record each are cheaper together; large ones would only be copied
    parts = batches if len(batches) == 1 or batches[0].num_rows >= _LARGE else [pa.concat_batches(batches)]
    found = [_part(topic, part) for part in parts]
    return found[0] if len(found) == 1 else joined(found)


def _part(topic: str, batch: pa.RecordBatch) -> Records:
    places, times = (batch.column(i).to_numpy(zero_copy_only=False) for i in range(2))
    column = batch.column(2)
    values = column.to_pylist()
    return Records(topic, int(places[0] >> OFFSET_BITS), places & _OFFSET, times, values, schema_ids(values, column))

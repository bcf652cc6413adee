"""The way in: Spark's batches of a task, drained by a thread into a bounded queue, taken out as many as there are.

Spark hands over one record at a time and a filler with it; a kernel call costs the same for one record as for hundreds, so what has
arrived while the last unit ran becomes the next unit. The queue is bounded in records and bytes: a full one stops the thread, and so Spark.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

#: a record's place: its partition above so many bits, in which its offset is
OFFSET_BITS = 48
_OFFSET = (1 << OFFSET_BITS) - 1


@dataclass(frozen=True)
class Records:
    """Records of one topic-partition in offset order; `timestamps` are append times in milliseconds."""

    topic: str
    partition: int
    offsets: npt.NDArray[np.int64]
    timestamps: npt.NDArray[np.int64]
    values: list[bytes | None]

    def __len__(self) -> int:
        return len(self.values)

    def slice(self, start: int, stop: int) -> Records:
        return Records(self.topic, self.partition, self.offsets[start:stop], self.timestamps[start:stop], self.values[start:stop])

    def chosen(self, places: Sequence[int]) -> Records:
        at = np.asarray(places, np.int64)
        return Records(self.topic, self.partition, self.offsets[at], self.timestamps[at], [self.values[i] for i in places])


def joined(parts: Sequence[Records]) -> Records:
    """*parts*, of one topic-partition, as one."""
    offsets, times = (np.concatenate([getattr(p, name) for p in parts]) for name in ("offsets", "timestamps"))
    return Records(parts[0].topic, parts[0].partition, offsets, times, [value for p in parts for value in p.values])


class Inbox:
    """Everything a task is given, in order."""

    def __init__(self, topic: str, batches: Iterator[pa.RecordBatch], *, max_records: int, max_bytes: int) -> None:
        """*batches*: `place`, `time` (when it was appended, ms), `value` of records of one partition of *topic*; a filler has no place."""
        self._topic, self._source = topic, batches
        self._max_records, self._max_bytes = max_records, max_bytes
        self._queue: deque[pa.RecordBatch] = deque()
        self._records = self._bytes = 0
        self._ended = False
        self._failure: BaseException | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._drain, name="inbox", daemon=True)
        self._thread.start()

    def take(self, timeout: float | None) -> Records | None:
        """What is there, up to the limits; empty records after *timeout* seconds without any, None at the end of the input.

        Raises:
            BaseException: whatever ended the input early.
        """
        taken: list[pa.RecordBatch] = []
        with self._changed:
            if not self._queue and not self._ended:
                self._changed.wait_for(lambda: bool(self._queue) or self._ended, timeout)
            records = size = 0
            while self._queue and (not taken or (records < self._max_records and size < self._max_bytes)):
                batch = self._queue.popleft()
                records, size = records + batch.num_rows, size + batch.nbytes
                taken.append(batch)
            self._records, self._bytes = self._records - records, self._bytes - size
            self._changed.notify_all()
            if not taken and self._failure is not None:
                raise self._failure
            if not taken and self._ended:
                return None
        return _records(self._topic, taken)

    def _drain(self) -> None:
        try:
            for batch in self._source:
                if fillers := batch.column(0).null_count:
                    if fillers == batch.num_rows:
                        continue
                    batch = _without_fillers(batch)
                with self._changed:
                    self._changed.wait_for(lambda: self._records < self._max_records and self._bytes < self._max_bytes)
                    self._queue.append(batch)
                    self._records, self._bytes = self._records + batch.num_rows, self._bytes + batch.nbytes
                    self._changed.notify_all()
        except BaseException as failure:  # noqa: B036  the main loop has to hear of everything
            self._failure = failure
        with self._changed:
            self._ended = True
            self._changed.notify_all()


_EMPTY = Records("", -1, np.empty(0, np.int64), np.empty(0, np.int64), [])


def _without_fillers(batch: pa.RecordBatch) -> pa.RecordBatch:
    place = batch.column(0)
    if batch.num_rows == 2:  # one of each: what comes a record at a time
        return batch.slice(0, 1) if place[0].is_valid else batch.slice(1)
    return batch.filter(place.is_valid())


def _records(topic: str, batches: list[pa.RecordBatch]) -> Records:
    if not batches:
        return _EMPTY
    if len(batches) == 1:
        columns = batches[0].columns
    else:
        table = pa.Table.from_batches(batches)
        columns = [table.column(i).combine_chunks() for i in range(3)]
    places, times = (column.to_numpy(zero_copy_only=False) for column in columns[:2])
    return Records(topic, int(places[0] >> OFFSET_BITS), places & _OFFSET, times, columns[2].to_pylist())

"""The way in: Spark's batches of a task, drained by a thread into a bounded queue, taken out as many as there are.

Spark hands over one record at a time and a filler with it; a kernel call costs the same for one record as for hundreds, so what has
arrived while the last unit ran becomes the next unit. The queue is bounded in records and bytes: a full one stops the thread, and so Spark.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.codec import schema_ids

#: a record's place: its partition above so many bits, in which its offset is
OFFSET_BITS = 48
_OFFSET = (1 << OFFSET_BITS) - 1


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

    def __init__(self, topic: str, batches: Iterator[pa.RecordBatch], *, max_records: int, max_bytes: int) -> None:
        """*batches*: `place`, `time` (when it was appended, ms), `value` of records of one partition of *topic*; a filler has no place."""
        self._topic, self._source = topic, batches
        self._max_records, self._max_bytes = max_records, max_bytes
        #: None: there will be no more. A queue in C: a condition would cost a record on its own, and wake its reader, several times over
        self._queue: SimpleQueue[tuple[pa.RecordBatch, int] | None] = SimpleQueue()
        #: records and bytes that were put in and taken out: each pair has one writer
        self._given, self._taken = (0, 0), (0, 0)
        self._room = threading.Event()
        self._ended = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._drain, name="inbox", daemon=True)
        self._thread.start()

    def take(self, timeout: float | None) -> Records | None:
        """What is there, up to the limits; empty records after *timeout* seconds without any, None at the end of the input.

        Raises:
            BaseException: whatever ended the input early.
        """
        taken: list[pa.RecordBatch] = []
        records = size = 0
        with contextlib.suppress(Empty):
            while not self._ended and records < self._max_records and size < self._max_bytes:
                found = self._queue.get_nowait() if taken else self._queue.get(timeout=None if timeout is None else max(timeout, 0.0))
                if found is None:
                    self._ended = True
                    break
                batch, held = found
                records, size = records + batch.num_rows, size + held
                taken.append(batch)
        self._taken = (self._taken[0] + records, self._taken[1] + size)
        self._room.set()
        if self._ended and not taken:
            if self._failure is not None:
                raise self._failure
            return None
        return _records(self._topic, taken)

    def _drain(self) -> None:
        try:
            for batch in self._source:
                if fillers := batch.column(0).null_count:
                    if fillers == batch.num_rows:
                        continue
                    batch = _without_fillers(batch)
                while self._full():
                    self._room.clear()
                    if self._full():
                        self._room.wait()
                held = batch.get_total_buffer_size()  # of a slice what it keeps alive, and a fifth of the time that `nbytes` takes
                self._given = (self._given[0] + batch.num_rows, self._given[1] + held)
                self._queue.put((batch, held))
        except BaseException as failure:  # noqa: B036  the main loop has to hear of everything
            self._failure = failure
        self._queue.put(None)

    def _full(self) -> bool:
        (given, given_bytes), (taken, taken_bytes) = self._given, self._taken
        return given - taken >= self._max_records or given_bytes - taken_bytes >= self._max_bytes


_EMPTY = Records("", -1, np.empty(0, np.int64), np.empty(0, np.int64), [], np.empty(0, np.int64))


def _without_fillers(batch: pa.RecordBatch) -> pa.RecordBatch:
    place = batch.column(0)
    if batch.num_rows == 2:  # one of each: what comes a record at a time
        return batch.slice(0, 1) if place[0].is_valid else batch.slice(1)
    return batch.filter(place.is_valid())


def _records(topic: str, batches: list[pa.RecordBatch]) -> Records:
    if not batches:
        return _EMPTY
    batch = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
    places, times = (batch.column(i).to_numpy(zero_copy_only=False) for i in range(2))
    column = batch.column(2)
    values = column.to_pylist()
    return Records(topic, int(places[0] >> OFFSET_BITS), places & _OFFSET, times, values, schema_ids(values, column))

"""Kafka in memory, as far as services and the gateway ask anything of it."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

import numpy as np

from penstock.bus import Batch, Delivery
from penstock.errors import BusError
from penstock.runtime.clock import Clock, ManualClock, milliseconds

Place = tuple[str, int]
NOW = 1_800_000_000_000_000_000


class MemoryLog:
    """Topics in memory: a publisher, an admin and the source of readers at once.

    What is sent is there at once. `refusal` is what Kafka answers instead, while it is set.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or ManualClock(NOW)
        self.records: defaultdict[Place, list[tuple[int, bytes | None, bytes | None]]]
        self.records = defaultdict(list)
        self.partitions: dict[str, int] = {}
        self.starts: dict[Place, int] = {}
        self.flushes: dict[str, int | None] = {}
        self.refusal: BusError | None = None
        self.appended = threading.Condition()

    def append(
        self, topic: str, value: bytes | None, key: bytes | None = None, partition: int = 0
    ) -> int:
        """Add a record; return its offset."""
        with self.appended:
            self.records[topic, partition].append((milliseconds(self.clock), key, value))
            self.appended.notify_all()
            return len(self.records[topic, partition]) - 1

    def values(self, topic: str, partition: int = 0) -> list[bytes | None]:
        return [value for _, _, value in self.records[topic, partition]]

    def batch(self, topic: str, partition: int = 0, start: int = 0, most: int = 1_000) -> Batch:
        """The records from *start* on, as a reader hands them over."""
        part = self.records[topic, partition][start : start + most]
        return Batch(
            topic,
            partition,
            np.arange(start, start + len(part), dtype=np.int64),
            np.array([time for time, _, _ in part], np.int64),
            [key for _, key, _ in part],
            [value for _, _, value in part],
        )

    # ---------------------------------------------------------------- as a publisher

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int = -1,
        on_delivery: Callable[[Delivery | BusError], None] | None = None,
    ) -> None:
        if self.refusal is not None:
            if on_delivery is None:
                raise self.refusal
            on_delivery(self.refusal)
            return
        at = max(partition, 0)
        offset = self.append(topic, value, key, at)
        if on_delivery is not None:
            on_delivery(Delivery(topic, at, offset, milliseconds(self.clock)))

    def publish(
        self, topic: str, value: bytes | None, *, key: bytes | None = None, partition: int = -1
    ) -> Future[Delivery]:
        future: Future[Delivery] = Future()

        def report(result: Delivery | BusError) -> None:
            if isinstance(result, BusError):
                future.set_exception(result)
            else:
                future.set_result(result)

        self.send(topic, value, key=key, partition=partition, on_delivery=report)
        return future

    def flush(self, timeout: float = 30.0) -> None:
        """Everything is there already."""

    def close(self, timeout: float = 10.0) -> None:
        if self.refusal is not None:
            raise self.refusal

    # ---------------------------------------------------------------- as an admin

    def topics(self) -> dict[str, int]:
        self._check()
        return dict(self.partitions)

    def ensure_topics(self, topics: Mapping[str, int], replication: int = -1) -> None:
        self._check()
        for topic, partitions in topics.items():
            if self.partitions.setdefault(topic, partitions) != partitions:
                raise BusError(
                    f"topic {topic} has {self.partitions[topic]} partitions",
                    code="E_TOPIC_PARTITIONS",
                )

    def delete_topics(self, topics: Iterable[str]) -> None:
        self._check()
        for topic in topics:
            self.partitions.pop(topic, None)

    def delete_records(self, before: Mapping[Place, int]) -> None:
        self._check()
        self.starts |= before

    def set_flush(self, topic: str, records: int | None) -> None:
        self._check()
        self.flushes[topic] = records

    def start_offsets(self, places: Iterable[Place]) -> dict[Place, int]:
        self._check()
        return {place: self.starts.get(place, 0) for place in places}

    def end_offsets(self, places: Iterable[Place], *, committed: bool = False) -> dict[Place, int]:
        self._check()
        return {place: len(self.records[place]) for place in places}

    def offsets_at(self, places: Iterable[Place], timestamp: int) -> dict[Place, int]:
        self._check()
        later = {p: [i for i, r in enumerate(self.records[p]) if r[0] >= timestamp] for p in places}
        return {place: found[0] if found else -1 for place, found in later.items()}

    def brokers(self) -> int:
        return 1

    def leader_of(self, topic: str) -> str:
        self._check()
        return "127.0.0.1:1"

    def _check(self) -> None:
        if self.refusal is not None:
            raise self.refusal

    # ---------------------------------------------------------------- as a source of readers

    def reader(self, bootstrap: str, offsets: Mapping[Place, int], **_: Any) -> MemoryReader:
        """Stands where `penstock.bus.Reader` does."""
        return MemoryReader(self, offsets)


class MemoryReader:
    """Reads partitions of a `MemoryLog`, and waits for records as the real one does."""

    def __init__(self, log: MemoryLog, offsets: Mapping[Place, int]) -> None:
        self.offsets = dict(offsets)
        self.closed = False
        self._log = log

    def __enter__(self) -> MemoryReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, offsets: Mapping[Place, int]) -> None:
        self.offsets |= offsets

    def remove(self, places: Iterable[Place]) -> None:
        for place in places:
            del self.offsets[place]

    def read(self, max_records: int = 10_000, timeout: float = 1.0) -> list[Batch]:
        with self._log.appended:
            self._log.appended.wait_for(self._behind, timeout)
            found = [self._log.batch(t, p, o, max_records) for t, p, o in self._behind()]
        self.offsets |= {(b.topic, b.partition): b.next_offset for b in found}
        return found

    def _behind(self) -> list[tuple[str, int, int]]:
        """The partitions that have more, and from where on."""
        log = self._log
        return [(t, p, o) for (t, p), o in self.offsets.items() if o < len(log.records[t, p])]

    def close(self) -> None:
        self.closed = True

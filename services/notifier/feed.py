"""What has lately come in on one topic, read once and shared by all who listen.

A `Feed` keeps the newest slices of every partition in memory, up to a bound. Listeners pull from their own position, so nothing queues
up for a slow one: when it has fallen behind the bound it reads from Kafka itself (`History`) until it is near the end again.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from penstock.bus import Admin, Batch, Reader
from penstock.log import get

log = get(__name__)
_HISTORY_BYTES = 4 << 20


@dataclass(frozen=True)
class Slice:
    """Consecutive records of one partition."""

    batch: Batch
    size: int

    @property
    def partition(self) -> int:
        return self.batch.partition

    @property
    def first(self) -> int:
        return int(self.batch.offsets[0])

    @property
    def next(self) -> int:
        return self.batch.next_offset


def slice_of(batch: Batch) -> Slice:
    return Slice(batch, sum(len(v) for v in batch.values if v is not None))


class _Ring:
    """The newest slices of one partition; `floor` is the oldest offset it can still give."""

    def __init__(self, start: int) -> None:
        self.slices: deque[Slice] = deque()
        self.floor = self.next = start
        self.size = 0

    def add(self, piece: Slice, bound: int) -> None:
        self.slices.append(piece)
        self.size += piece.size
        self.next = piece.next
        while self.size > bound and len(self.slices) > 1:
            gone = self.slices.popleft()
            self.size -= gone.size
            self.floor = gone.next

    def since(self, offset: int) -> list[Slice] | None:
        if offset < self.floor:
            return None
        return [s for s in self.slices if s.next > offset]


class Feed(threading.Thread):
    """Reads one topic from its end on, in a thread, for the listeners of one event loop."""

    def __init__(self, bootstrap: str, topic: str, loop: asyncio.AbstractEventLoop, *, memory: int) -> None:
        super().__init__(name=f"feed-{topic}", daemon=True)
        self.topic = topic
        self._servers, self._loop, self._memory = bootstrap, loop, memory
        self._halt = threading.Event()
        self._lock = threading.Lock()
        self._arrived = asyncio.Event()
        admin = Admin(bootstrap, client_id="notifier-admin")
        self.partitions = [(topic, p) for p in range(admin.topics()[topic])]
        self._starts = admin.start_offsets(self.partitions)
        ends = admin.end_offsets(self.partitions)
        self._rings = {p: _Ring(offset) for (_, p), offset in ends.items()}
        self._bound = max(memory // max(len(self._rings), 1), 1)
        self.error: str | None = None

    def run(self) -> None:
        start = {(self.topic, p): ring.next for p, ring in self._rings.items()}
        try:
            with Reader(self._servers, start, client_id="notifier", max_wait_ms=20) as reader:
                while not self._halt.is_set():
                    batches = reader.read(5_000, 0.2)
                    if batches:
                        with self._lock:
                            for batch in batches:
                                self._rings[batch.partition].add(slice_of(batch), self._bound)
                        self._loop.call_soon_threadsafe(self._wake)
        except Exception as error:
            log.exception("feed ended", topic=self.topic)
            self.error = str(error)
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._arrived.set()
        self._arrived = asyncio.Event()

    def stop(self) -> None:
        self._halt.set()

    def arrival(self) -> asyncio.Event:
        """Set when something comes after this call."""
        return self._arrived

    def ends(self) -> dict[int, int]:
        """Next offset of each partition: where `latest` begins."""
        with self._lock:
            return {p: ring.next for p, ring in self._rings.items()}

    def beginnings(self) -> dict[int, int]:
        """Oldest offset of each partition: where `earliest` begins."""
        return {p: offset for (_, p), offset in self._starts.items()}

    def since(self, partition: int, offset: int) -> list[Slice] | None:
        """Slices with records at or above *offset*; None when that is further back than memory goes."""
        with self._lock:
            return self._rings[partition].since(offset)


class History:
    """A listener's own reader while it is too far behind for the feed. Reads in a thread of a small pool of their own."""

    _threads = ThreadPoolExecutor(16, "history")

    def __init__(self, bootstrap: str, topic: str, partition: int, offset: int) -> None:
        self._reader = Reader(bootstrap, {(topic, partition): offset}, client_id="notifier-history", queue_bytes=_HISTORY_BYTES)
        self._lock = threading.Lock()
        self._closed = False

    async def read(self) -> list[Slice]:
        """The next slices, waiting at most a second. When it is cancelled the reader is of no use any more.

        Raises:
            BusError: `E_OFFSET_GONE` when the records were deleted.
        """
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._read)

    def _read(self) -> list[Slice]:
        with self._lock:
            return [] if self._closed else [slice_of(b) for b in self._reader.read(2_000, 1.0)]

    def close(self) -> None:
        """Ends behind a read that still runs, without waiting for it."""
        self._threads.submit(self._end)

    def _end(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                self._reader.close()

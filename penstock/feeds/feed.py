"""What has lately come in on one topic, read once and shared by all who listen.

A `Feed` keeps the newest slices of every partition in memory, up to a bound. Listeners pull from
their own position, so nothing queues up for a slow one: when it has fallen behind the bound it
reads from Kafka itself (`FeedHistory`) until it is near the end again.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from penstock import tuning
from penstock.bus import Admin, Batch, Reader
from penstock.catalog.reader import CatalogReader
from penstock.codec import schema_ids
from penstock.errors import BusError
from penstock.runtime import vital
from penstock.runtime.log import get

log = get(__name__)
T = TypeVar("T")
_HISTORY_BYTES = 4 << 20
_SLICE_BYTES = 512 << 10
#: part of the memory's bound whose slices keep what listeners made of them
_YOUNG = 8


@dataclass(frozen=True, eq=False)
class Slice:
    """Consecutive records of one partition, and what listeners have made of them (`shared`)."""

    batch: Batch
    size: int
    _made: dict[Hashable, Any] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def share(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what *make* gives, made once for all listeners while the slice is young."""
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            made: T = self._made[key]
            return made

    def forget(self) -> None:
        """Free what was made; it can be made again."""
        with self._lock:
            self._made.clear()

    def until(self, last: int) -> Slice | None:
        """Return the part up to offset *last*; None when that is nothing."""
        count = int(np.searchsorted(self.batch.offsets, last, side="right"))
        if count == len(self.batch):
            return self
        return slice_of(_part(self.batch, 0, count)) if count else None

    @property
    def partition(self) -> int:
        return self.batch.partition

    @property
    def first(self) -> int:
        return int(self.batch.offsets[0])

    @property
    def next(self) -> int:
        return self.batch.next_offset

    @cached_property
    def ids(self) -> npt.NDArray[np.int64]:
        """See `schema_ids`."""
        return schema_ids(self.batch.values)


def slice_of(batch: Batch) -> Slice:
    return Slice(batch, sum(len(v) for v in batch.values if v is not None))


def slices_of(batch: Batch) -> list[Slice]:
    """The batch in slices of a size that one message and one piece of work may have."""
    sizes = np.cumsum([len(v) if v is not None else 0 for v in batch.values])
    cuts = [0, *(np.flatnonzero(np.diff(sizes // _SLICE_BYTES)) + 1).tolist(), len(batch)]
    return [slice_of(_part(batch, a, b)) for a, b in itertools.pairwise(cuts)]


def _part(batch: Batch, a: int, b: int) -> Batch:
    return Batch(
        batch.topic,
        batch.partition,
        batch.offsets[a:b],
        batch.timestamps[a:b],
        batch.keys[a:b],
        batch.values[a:b],
    )


def _understood(catalog: CatalogReader, batches: list[Batch]) -> list[Slice]:
    """The batches in slices, and the catalog at least as new as they are: who listens skips what is
    of no table that it knows.
    """
    pieces = [piece for batch in batches for piece in slices_of(batch)]
    catalog.know({schema_id for piece in pieces for schema_id in np.unique(piece.ids).tolist()})
    return pieces


class _Ring:
    """The newest slices of one partition; `floor` is the oldest offset it can still give."""

    def __init__(self, start: int) -> None:
        self.slices: deque[Slice] = deque()
        self._young: deque[Slice] = deque()
        self.floor = self.next = start
        self.size = self._young_size = 0

    def add(self, piece: Slice, bound: int) -> list[Slice]:
        """Take a slice; those that are young no more."""
        self.slices.append(piece)
        self.size += piece.size
        self.next = piece.next
        while self.size > bound and len(self.slices) > 1:
            gone = self.slices.popleft()
            self.size -= gone.size
            self.floor = gone.next
        # decoded rows are larger than records: only the newest slices keep them
        self._young.append(piece)
        self._young_size += piece.size
        aged: list[Slice] = []
        while self._young_size > bound // _YOUNG and len(self._young) > 1:
            aged.append(self._young.popleft())
            self._young_size -= aged[-1].size
        return aged

    def since(self, offset: int) -> list[Slice] | None:
        if offset < self.floor:
            return None
        return [s for s in self.slices if s.next > offset]


class Feed(threading.Thread):
    """Reads one topic from its end on, in a thread, for the listeners of one event loop."""

    def __init__(
        self,
        bootstrap: str,
        catalog: CatalogReader,
        topic: str,
        loop: asyncio.AbstractEventLoop,
        *,
        memory: int,
    ) -> None:
        super().__init__(name=f"feed-{topic}", daemon=True)
        self.catalog = catalog
        self.topic = topic
        self._servers = bootstrap
        self._loop = loop
        self._memory = memory
        self._halt = threading.Event()
        self._lock = threading.Lock()
        self._arrived = asyncio.Event()
        self._admin = Admin(bootstrap, client_id="feed-admin")
        self.partitions = [(topic, p) for p in range(self._admin.topics()[topic])]
        self._starts = self._admin.start_offsets(self.partitions)
        self._rings = {p: _Ring(offset) for p, offset in self.log_ends().items()}
        self._bound = max(memory // max(len(self._rings), 1), 1)
        self.error: str | None = None
        #: subscriptions that read it; without any it is stopped
        self.listeners = 0

    @vital.run
    def run(self) -> None:
        start = {(self.topic, p): ring.next for p, ring in self._rings.items()}
        try:
            with Reader(
                self._servers, start, client_id="feed", queue_bytes=_HISTORY_BYTES
            ) as reader:
                while not self._halt.is_set():
                    batches = reader.read(5_000)
                    if batches:
                        pieces = _understood(self.catalog, batches)
                        with self._lock:
                            aged = [
                                old
                                for piece in pieces
                                for old in self._rings[piece.partition].add(piece, self._bound)
                            ]
                        for old in aged:
                            old.forget()
                        self.wake()
        except vital.FAULTS as error:
            log.exception("feed ended", topic=self.topic)
            self.error = str(error)
            self.wake()

    def _wake(self) -> None:
        self._arrived.set()
        self._arrived = asyncio.Event()

    def wake(self) -> None:
        """Have listeners look again, though nothing came. From any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens
            self._loop.call_soon_threadsafe(self._wake)

    def stop(self) -> None:
        self._halt.set()

    @property
    def stopped(self) -> bool:
        return self._halt.is_set()

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

    def log_ends(self) -> dict[int, int]:
        """Next offset of each partition as Kafka says it now; blocks."""
        return {p: offset for (_, p), offset in self._admin.end_offsets(self.partitions).items()}

    def since(self, partition: int, offset: int) -> list[Slice] | None:
        """Slices with records at or above *offset*; None when that is further back than memory
        goes.
        """
        with self._lock:
            return self._rings[partition].since(offset)


class FeedHistory:
    """A listener's own reader while it is too far behind for the feed. Reads in a thread of a small
    pool of their own.
    """

    _threads = ThreadPoolExecutor(16, "history")

    def __init__(
        self, bootstrap: str, catalog: CatalogReader, topic: str, partition: int, offset: int
    ) -> None:
        self._catalog = catalog
        self._reader = Reader(
            bootstrap,
            {(topic, partition): offset},
            client_id="feed-history",
            queue_bytes=_HISTORY_BYTES,
        )
        self._lock = threading.Lock()
        self._closed = False

    async def read(self) -> list[Slice]:
        """The next slices, waiting at most a second. When it is cancelled the reader is of no use
        any more.

        Raises:
            BusError: `E_OFFSET_GONE` when the records were deleted.
        """
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._read)

    def _read(self) -> list[Slice]:
        with self._lock:
            return [] if self._closed else _understood(self._catalog, self._reader.read(2_000, 1.0))

    def close(self) -> None:
        """Ends behind a read that still runs, without waiting for it."""
        self._threads.submit(self._end)

    def _end(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                self._reader.close()


class Listening:
    """One listener's way through a feed: from memory where that goes back far enough, else from
    Kafka until it is near the end again.
    """

    def __init__(self, bootstrap: str, feed: Feed) -> None:
        self.feed = feed
        self._bootstrap = bootstrap
        self._histories: dict[int, FeedHistory] = {}
        feed.listeners += 1

    def arrival(self) -> asyncio.Event:
        """See `Feed.arrival`.

        Raises:
            BusError: the feed has ended.
        """
        arrived = self.feed.arrival()
        if self.feed.error is not None:
            raise BusError("the topic can't be read any more", detail=self.feed.error)
        return arrived

    async def since(
        self, partition: int, offset: int, last: int | None = None
    ) -> tuple[list[Slice], bool]:
        """Slices with records at or above *offset*, and whether those are all there are. *last*:
        where the partition has ended; what comes behind that counts for nobody.
        """
        pieces = self.feed.since(partition, offset)
        near = pieces is not None
        if pieces is None:
            if partition not in self._histories:
                self._histories[partition] = FeedHistory(
                    self._bootstrap, self.feed.catalog, self.feed.topic, partition, offset
                )
            pieces = await self._histories[partition].read()
        elif partition in self._histories:
            self._histories.pop(partition).close()
        if last is not None:
            pieces = [counting for piece in pieces if (counting := piece.until(last)) is not None]
        return pieces, near

    def close(self) -> None:
        """Leave the feed; the last one stops it."""
        for history in self._histories.values():
            history.close()
        self.feed.listeners -= 1
        if not self.feed.listeners:
            self.feed.stop()


class Feeds:
    """The feeds of one event loop, one a topic."""

    def __init__(self, bootstrap: str, catalog: CatalogReader, *, memory: int) -> None:
        self._bootstrap = bootstrap
        self._catalog = catalog
        self._memory = memory
        self._feeds: dict[str, Feed] = {}
        self._lock = asyncio.Lock()

    async def of(self, topic: str) -> Feed:
        """The topic's feed, made anew when it has ended or was stopped."""
        async with self._lock:
            feed = self._feeds.get(topic)
            if feed is None or feed.error is not None or feed.stopped:
                loop = asyncio.get_running_loop()
                feed = await loop.run_in_executor(
                    None,
                    lambda: Feed(self._bootstrap, self._catalog, topic, loop, memory=self._memory),
                )
                feed.start()
                self._feeds[topic] = feed
            return feed

    async def listen(self, feed: Feed) -> Listening:
        """Listen to *feed*, or to its successor when its last listener left just now."""
        while feed.stopped:
            feed = await self.of(feed.topic)
        return Listening(self._bootstrap, feed)

    def wake(self) -> None:
        """Have all listeners look again. From any thread."""
        for feed in list(self._feeds.values()):
            if not feed.stopped:
                feed.wake()

    def stop(self) -> None:
        """Stop all of them."""
        for feed in self._feeds.values():
            feed.stop()


async def work_on(take: Callable[[Slice], T], piece: Slice) -> T:
    """Call *take* with a slice; with a large one in a thread, so that nobody else of the event loop
    waits for it.
    """
    if piece.size < tuning.SLICE_BYTES_HANDLED_IN_LOOP:
        return take(piece)
    return await asyncio.get_running_loop().run_in_executor(None, take, piece)

"""What has lately come in on one topic, read once and shared by all who listen.

A `Feed` keeps the newest slices of every partition in memory (`FeedMemory`). Listeners pull from
their own position, so nothing queues up for a slow one: when it has fallen behind the bound it
reads from Kafka itself (`FeedHistory`) until it is near the end again.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from penstock import tuning
from penstock.bus import Admin, Batch, Reader
from penstock.catalog.reader import CatalogReader
from penstock.errors import BusError
from penstock.feeds.memory import FeedMemory
from penstock.feeds.slices import Slice, slices_of
from penstock.runtime import vital
from penstock.runtime.log import get

log = get(__name__)
T = TypeVar("T")
_HISTORY_BYTES = 4 << 20


def _understood(catalog: CatalogReader, batches: list[Batch]) -> list[Slice]:
    """The batches in slices, and the catalog at least as new as they are: who listens skips what is
    of no table that it knows.
    """
    pieces = [piece for batch in batches for piece in slices_of(batch)]
    catalog.know({schema_id for piece in pieces for schema_id in piece.ids.tolist()})
    return pieces


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
        self._halt = threading.Event()
        self._arrived = asyncio.Event()
        self._admin = Admin(bootstrap, client_id="feed-admin")
        self.partitions = [(topic, p) for p in range(self._admin.topics()[topic])]
        self._starts = self._admin.start_offsets(self.partitions)
        self._memory = FeedMemory(self.log_ends(), memory)
        self.error: str | None = None
        #: subscriptions that read it; without any it is stopped
        self.listeners = 0

    @vital.run
    def run(self) -> None:
        start = {(self.topic, p): offset for p, offset in self._memory.ends().items()}
        try:
            with Reader(
                self._servers, start, client_id="feed", queue_bytes=_HISTORY_BYTES
            ) as reader:
                while not self._halt.is_set():
                    batches = reader.read(5_000)
                    if batches:
                        self._memory.add(_understood(self.catalog, batches))
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
        return self._memory.ends()

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
        return self._memory.since(partition, offset)


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

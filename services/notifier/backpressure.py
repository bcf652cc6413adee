"""Stops a stream's computing while its NOTIFY target, ON_FAILURE PAUSE, is too far behind; and only
that stream's.

A field of the stream's Redis status says that it is stopped and why (SHOW STREAMS shows it), so a
restarted notifier lets go what its predecessor held. Refused here: deciding what is too far.
"""

from __future__ import annotations

from collections.abc import Iterable

import redis.asyncio
from redis.exceptions import RedisError

from penstock import names
from penstock.bus import Publisher
from penstock.catalog.model import StreamEntry
from penstock.catalog.reader import CatalogReader
from penstock.errors import BusError
from penstock.records import ControlRecord, encode
from penstock.runtime.log import get

log = get(__name__)


class Backpressure:
    """Held streams by id."""

    def __init__(
        self, catalog: CatalogReader, client: redis.asyncio.Redis, publisher: Publisher
    ) -> None:
        self._catalog = catalog
        self._redis = client
        self._publisher = publisher
        self.held: set[int] = set()

    async def recall(self, streams: Iterable[StreamEntry]) -> None:
        """Learn what was held before this process."""
        for stream in streams:
            if await self._redis.hexists(names.stream_status(stream.id), names.HELD):
                self.held.add(stream.id)

    async def hold(self, stream_id: int, reason: str) -> None:
        """Pause the stream; nothing when it is held already."""
        if stream_id not in self.held and await self._control(stream_id, "pause", reason):
            self.held.add(stream_id)

    async def release(self, stream_id: int) -> None:
        """Let it go on, unless somebody paused it by a statement."""
        if stream_id in self.held and await self._control(stream_id, "resume", ""):
            self.held.discard(stream_id)

    async def _control(self, stream_id: int, kind: str, reason: str) -> bool:
        catalog = self._catalog.catalog
        entry = catalog.stream_by_id(stream_id)
        if entry is None:
            return True
        log.warning(
            "stream held" if reason else "stream released",
            stream=f"{entry.database}.{entry.name}",
            reason=reason,
        )
        try:
            status = names.stream_status(stream_id)
            await (
                self._redis.hset(status, names.HELD, reason)
                if reason
                else self._redis.hdel(status, names.HELD)
            )
            if entry.status == "running":
                for topic, partitions in catalog.source_topics(entry.plan).items():
                    for partition in range(partitions):
                        self._publisher.send(
                            topic,
                            encode(ControlRecord(kind, stream=stream_id)),
                            partition=partition,
                        )
        except (BusError, RedisError) as error:
            log.warning("a stream could not be told", kind=kind, error=str(error))
            return False
        return True

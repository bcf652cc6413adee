"""What SHOW STREAMS says of streams whose NOTIFY targets cannot be reached or are behind: a field
of each stream's Redis status.

The field is renewed while it is so, and one that is not renewed says nothing: its notifier is gone.
Each notifier has a field of its own, for the partitions that it delivers. Decides nothing about
delivery.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import redis.asyncio

from penstock import names
from penstock.catalog.reader import CatalogReader
from penstock.outbound.targets import label_of
from services.notifier.delivery import TargetDelivery
from services.notifier.message import NotifyTarget, targets_of


class TargetStanding:
    """Of the streams of one notifier."""

    def __init__(self, catalog: CatalogReader, client: redis.asyncio.Redis, instance: str) -> None:
        self._catalog = catalog
        self._redis = client
        self._field = names.targets_field(instance)
        self._told: set[int] = set()

    async def tell(self, deliveries: Mapping[NotifyTarget, TargetDelivery]) -> None:
        """Write what is so now. Raises RedisError."""
        found = {}
        for entry in self._catalog.catalog.streams():
            mine = [deliveries[t] for t in targets_of(entry) if t in deliveries]
            said = _describe(mine, entry.id)
            if said is not None:
                found[entry.id] = said
        for stream_id, said in found.items():
            await self._redis.hset(names.stream_status(stream_id), self._field, json.dumps(said))
        for stream_id in self._told - found.keys():
            await self._redis.hdel(names.stream_status(stream_id), self._field)
        self._told = set(found)


def _describe(deliveries: Sequence[TargetDelivery], stream_id: int) -> dict[str, Any] | None:
    """Describe what is wrong with the targets of a stream, if anything is."""
    down = [
        f"NOTIFY target {label_of(d.target.url)} is down: {d.down}" for d in deliveries if d.down
    ]
    waiting = sum(d.events_waiting(stream_id) for d in deliveries)
    if not down and not waiting:
        return None
    return {"down": down, "waiting": waiting, "at": time.time()}

"""What SHOW STREAMS says of streams whose NOTIFY targets cannot be reached or are behind: a field
of each stream's Redis status.

The field is renewed while it is so, and one that is not renewed says nothing: its notifier is gone.
Each notifier has a field of its own, for the partitions that it delivers. Decides nothing about
delivery.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

import redis.asyncio

from penstock import names
from penstock.catalog.reader import CatalogReader
from penstock.targets import label_of
from services.notifier.courier import Courier
from services.notifier.parcel import Target, targets_of


class Standing:
    """Of the streams of one notifier."""

    def __init__(self, catalog: CatalogReader, client: redis.asyncio.Redis, instance: str) -> None:
        self._catalog = catalog
        self._redis = client
        self._field = names.targets_field(instance)
        self._told: set[int] = set()

    async def tell(self, couriers: Mapping[Target, Courier]) -> None:
        """Write what is so now. Raises RedisError."""
        found = {}
        for entry in self._catalog.catalog.streams():
            mine = [couriers[t] for t in targets_of(entry) if t in couriers]
            down = [
                f"NOTIFY target {label_of(c.target.url)} is down: {c.down}" for c in mine if c.down
            ]
            waiting = sum(c.events_waiting(entry.id) for c in mine)
            if down or waiting:
                found[entry.id] = {"down": down, "waiting": waiting, "at": time.time()}
        for stream_id, said in found.items():
            await self._redis.hset(names.stream_status(stream_id), self._field, json.dumps(said))
        for stream_id in self._told - found.keys():
            await self._redis.hdel(names.stream_status(stream_id), self._field)
        self._told = set(found)

"""Safe mode: the driver runs and reads no topic, so that a stream that kills it can be dropped."""

from __future__ import annotations

from collections.abc import Iterable

import redis

from penstock import names
from penstock.catalog.apply import Changed
from penstock.catalog.model import StreamEntry

_SECONDS = 15


class SafeMode:
    """What others learn of it in Redis."""

    def __init__(self, client: redis.Redis, *, on: bool) -> None:
        self._redis = client
        self.on = on

    def begin(self) -> None:
        """Say that the driver is not in safe mode any more, if it is not."""
        if not self.on:
            self._redis.delete(names.safe_mode())

    def beat(self) -> None:
        """Say that the driver is in safe mode."""
        self._redis.set(names.safe_mode(), "", ex=_SECONDS)

    def note_changes(self, changes: Iterable[Changed]) -> None:
        """Note streams that were dropped, whose end no processor confirms meanwhile."""
        if not self.on:
            return
        gone = [c.old.id for c in changes if c.new is None and isinstance(c.old, StreamEntry)]
        if gone:
            self._redis.sadd(names.safe_mode_drops(), *gone)

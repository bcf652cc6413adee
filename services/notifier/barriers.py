"""Barriers in the log of events: reported to Redis once the targets concerned have all that came
before.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

import redis.asyncio
from redis.exceptions import RedisError

from penstock import names
from penstock.catalog.reader import CatalogReader
from penstock.errors import SchemaError
from penstock.records import ControlRecord, decode
from penstock.runtime.log import get
from services.notifier.delivery import TargetDelivery
from services.notifier.jobs import Jobs
from services.notifier.message import NotifyTarget, targets_of

_KEY_SECONDS = 3600
log = get(__name__)


@dataclass(frozen=True)
class _Barrier:
    """Reported when these targets have all that came before it; without targets, when all have."""

    id: str
    partition: int
    offset: int
    targets: frozenset[NotifyTarget] | None


class Barriers:
    """Event loop only."""

    def __init__(
        self,
        catalog: CatalogReader,
        client: redis.asyncio.Redis,
        deliveries: Mapping[NotifyTarget, TargetDelivery],
        jobs: Jobs,
    ) -> None:
        self._catalog = catalog
        self._redis = client
        self._deliveries = deliveries
        self._jobs = jobs
        self._waiting: list[_Barrier] = []

    def take(self, partition: int, offset: int, value: bytes | None) -> None:
        """Note the barrier that a record may be."""
        with contextlib.suppress(SchemaError, ValueError):
            control = decode(ControlRecord, value)
            if control.kind == "barrier":
                targets = self._targets(control)
                self._waiting.append(_Barrier(control.id, partition, offset, targets))
                self.check()

    def _targets(self, control: ControlRecord) -> frozenset[NotifyTarget] | None:
        """Return the targets of the streams that a barrier names."""
        if not control.body:
            return None
        catalog = self._catalog.catalog
        entries = [catalog.stream_by_id(i) for i in json.loads(control.body)["streams"]]
        return frozenset(t for entry in entries if entry is not None for t in targets_of(entry))

    def check(self) -> None:
        """Report the barriers that have been passed."""
        passed = [b for b in self._waiting if self._has_passed(b)]
        if passed:
            self._waiting = [b for b in self._waiting if b not in passed]
            for barrier in passed:
                self._jobs.start(self._report(barrier))

    def _has_passed(self, barrier: _Barrier) -> bool:
        if barrier.targets is None:
            concerned = list(self._deliveries.values())
        else:
            concerned = [self._deliveries[t] for t in barrier.targets if t in self._deliveries]
        return all(d.has_settled(barrier.partition, barrier.offset) for d in concerned)

    async def _report(self, barrier: _Barrier) -> None:
        key = names.barrier(barrier.id)
        try:
            await self._redis.hset(
                key, f"notifier:{names.EVENTS}:{barrier.partition}", str(barrier.offset)
            )
            await self._redis.expire(key, _KEY_SECONDS)
        except RedisError as error:
            log.warning("a barrier waits for Redis", error=str(error))
            # somebody waits for it: the next check tries again
            self._waiting.append(barrier)

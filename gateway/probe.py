"""Asks Kafka and Redis once a second whether they are there."""

from __future__ import annotations

import asyncio

import redis

from gateway.idempotency import Ledger
from gateway.publisher import RowPublisher
from penstock.bus import Admin
from penstock.errors import BusError
from penstock.runtime.health import Health

_PROBE_S = 1.0


class Probe:
    """Reports `kafka` and `redis` to health, and to the publisher that Kafka is down: it then
    refuses rows at once.
    """

    def __init__(
        self, ledger: Ledger, admin: Admin, publisher: RowPublisher, health: Health
    ) -> None:
        self._ledger = ledger
        self._admin = admin
        self._publisher = publisher
        self._health = health

    async def run(self) -> None:
        """Look every second, until cancelled."""
        while True:
            await asyncio.to_thread(self.look)
            await asyncio.sleep(_PROBE_S)

    def look(self) -> None:
        """Ask both; the question to Redis also says that this gateway is there."""
        try:
            self._ledger.heartbeat()
            self._health.ready("redis")
        except redis.RedisError as down:
            self._health.ready("redis", False, str(down))
        try:
            self._admin.topics()
            self._publisher.down = None
            self._health.ready("kafka")
        except BusError as down:
            self._publisher.down = down.detail or down.message
            self._health.ready("kafka", False, self._publisher.down)

"""Connections to Kafka and Redis, and the catalog that is read over them.

Either may be down at any time, at the start too: then the catalog answers that it is not read yet.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading

from gateway.settings import GatewaySettings
from penstock.bus import Admin
from penstock.bus import Publisher as Bus
from penstock.catalog.reader import CatalogReader
from penstock.catalog.view import Catalog
from penstock.catalog.writer import CatalogWriter
from penstock.coordination import redis_link
from penstock.errors import BusError, PenstockError
from penstock.runtime import vital
from penstock.runtime.clock import Clock
from penstock.runtime.health import Health

PATIENCE_S = 3.0
_FOR_EVER_S = 1e7


class Backends:
    """One per process."""

    def __init__(self, settings: GatewaySettings, health: Health, clock: Clock) -> None:
        self._health = health
        #: tells this process from other gateways
        self.name = secrets.token_hex(6)
        self.bootstrap = settings.kafka_bootstrap
        self.redis = redis_link.connect(
            settings,
            socket_timeout=PATIENCE_S,
            socket_connect_timeout=PATIENCE_S,
            health_check_interval=10,
        )
        self.reader = CatalogReader(
            self.bootstrap, client_id=self.client_id(), registry=health.registry
        )
        self.admin = Admin(self.bootstrap, client_id=self.client_id("admin"), timeout=PATIENCE_S)
        timeout = settings.ack_timeout
        self.rows = Bus(self.bootstrap, client_id=self.client_id(), timeout=timeout)
        self.controls = Bus(self.bootstrap, client_id=self.client_id("controls"), timeout=timeout)
        self.writer = CatalogWriter(
            self.bootstrap, self.redis, self.reader, address=settings.reached_at, clock=clock
        )

    def client_id(self, purpose: str = "") -> str:
        """Return the name of a client of Kafka."""
        return f"gateway-{self.name}-{purpose}" if purpose else f"gateway-{self.name}"

    def catalog(self) -> Catalog:
        """Return the catalog as it is now. Raises BusError before it was read."""
        if not self._health.conditions()["catalog"].ready:
            raise BusError(
                "the catalog is not read yet",
                code="E_KAFKA_DOWN",
                hint="try again in a second",
                retryable=True,
            )
        return self.reader.catalog

    async def follow_catalog(self) -> None:
        """Read the catalog once Kafka has it; then try to lead it, so that the first DDL need not
        wait.
        """
        read = asyncio.Event()
        loop = asyncio.get_running_loop()

        def start() -> None:
            self.reader.start(timeout=_FOR_EVER_S)
            loop.call_soon_threadsafe(read.set)

        # a thread that may wait for Kafka as long as it likes, and holds up nobody's end
        threading.Thread(target=vital.run(start), name="catalog-start", daemon=True).start()
        await read.wait()
        self._health.ready("catalog")
        with contextlib.suppress(PenstockError):
            await asyncio.to_thread(self.writer.lead)

    def close_buses(self) -> None:
        """Send what was published, and no more."""
        self.rows.close()
        self.controls.close()

    def close(self) -> None:
        """Give up the catalog's lease, and the connection to Redis."""
        self.writer.close()
        self.reader.close()
        self.redis.close()

"""Wiring of the notifier: catalog, hub, WebSocket server, health."""

from __future__ import annotations

import asyncio
import signal

from websockets.asyncio.server import serve

from penstock.catalog.reader import CatalogReader
from penstock.health import Health
from penstock.log import configure
from services.notifier.server import Hub
from services.notifier.settings import NotifierSettings


def run(settings: NotifierSettings) -> int:
    """Serve until told to stop."""
    configure("notifier", settings.log_level)
    health = Health("notifier", settings.health_port, host=settings.host, wait_for=("catalog", "socket"))
    with CatalogReader(settings.kafka_bootstrap, client_id="notifier-catalog", children=True) as catalog:
        health.ready("catalog")
        asyncio.run(_serve(settings, catalog, health))
    health.close()
    return 0


async def _serve(settings: NotifierSettings, catalog: CatalogReader, health: Health) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    hub = Hub(settings, catalog, health)
    server = serve(
        hub.serve, settings.host, settings.port, process_request=hub.admit, max_size=1 << 20, ping_interval=settings.ping_seconds,
        max_queue=16, server_header=None,
    )  # fmt: skip
    async with server:
        health.ready("socket")
        await stop.wait()
    hub.close()

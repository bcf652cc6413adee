"""Wiring of the notifier: the hub's WebSocket server and the Faust app in one event loop.

The two don't depend on each other: while Kafka's group protocol is in trouble subscribers are
served, and the Faust app is made anew.
"""

from __future__ import annotations

import asyncio
import contextlib

from websockets.asyncio.server import serve

from penstock.bus import Publisher
from penstock.catalog.reader import CatalogReader
from penstock.coordination import redis_link
from penstock.runtime import tls, vital
from penstock.runtime.clock import SystemClock
from penstock.runtime.connections import Connections, counting_connection
from penstock.runtime.health import Health
from penstock.runtime.log import get
from penstock.service import Service
from services.notifier.admission import choose_protocol
from services.notifier.metrics import PushMetrics
from services.notifier.push import Push
from services.notifier.server import Hub
from services.notifier.settings import NotifierSettings

log = get(__name__)


def run(settings: NotifierSettings) -> int:
    """Serve until told to stop."""
    with Service(settings, waits_for=("catalog", "socket", "push")) as service:
        catalog = service.read_catalog()
        service.announce()
        service.run_async(lambda stop: _serve(settings, catalog, service.health, stop))
    return 0


async def _serve(
    settings: NotifierSettings, catalog: CatalogReader, health: Health, stop: asyncio.Event
) -> None:
    client = redis_link.connect(settings, socket_timeout=3, socket_connect_timeout=3)
    hub = Hub(settings, catalog, health, client)
    catalog.listen(hub.hear)
    connections = Connections(settings)
    server = serve(
        hub.serve,
        settings.host,
        settings.port,
        process_request=hub.admit,
        select_subprotocol=choose_protocol,
        max_size=1 << 20,
        ping_interval=settings.ping_seconds,
        ping_timeout=settings.ack_seconds,
        max_queue=16,
        server_header=None,
        close_timeout=1.0,
        open_timeout=settings.header_seconds,
        create_connection=counting_connection(connections),
        ssl=tls.server(settings),
    )
    async with server:
        health.ready("socket")
        pushing = vital.task(_push(settings, catalog, health), "push")
        await stop.wait()
        pushing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await pushing
    hub.close()
    client.close()


async def _push(settings: NotifierSettings, catalog: CatalogReader, health: Health) -> None:
    """Keep a Faust app running."""
    metrics = PushMetrics(health.registry)
    clock = SystemClock()
    client = redis_link.connect_async(settings, socket_timeout=3, socket_connect_timeout=3)
    with Publisher(settings.kafka_bootstrap, client_id="notifier") as publisher:
        while True:
            try:
                await Push(settings, catalog, health, metrics, clock, client, publisher).run()
            except vital.FAULTS as error:
                log.exception("delivery of NOTIFY messages broke; starting it again")
                health.ready("push", False, str(error))
            await asyncio.sleep(settings.retry_max)

"""Wiring of the notifier: catalog, the hub's WebSocket server and the Faust app in one event loop,
health.

The two don't depend on each other: while Kafka's group protocol is in trouble subscribers are
served, and the Faust app is made anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal

from websockets.asyncio.server import serve

from penstock import bus
from penstock.bus import Publisher
from penstock.catalog.reader import CatalogReader
from penstock.coordination import redis_link
from penstock.coordination.nodes import Presence
from penstock.runtime import audit, tls, vital
from penstock.runtime.clock import SystemClock
from penstock.runtime.connections import Connections, counting_connection
from penstock.runtime.health import Health
from penstock.runtime.log import configure, get
from penstock.runtime.pulse import Pulse
from services.notifier.metrics import PushMetrics
from services.notifier.push import Push
from services.notifier.server import Hub
from services.notifier.settings import NotifierSettings

log = get(__name__)


def run(settings: NotifierSettings) -> int:
    """Serve until told to stop."""
    configure("notifier", settings.log_level)
    audit.open_trail(
        settings.audit_log, "notifier", settings.audit_log_bytes, settings.audit_log_files
    )
    bus.secure(settings.kafka_options)
    health = Health(
        "notifier",
        settings.health_port,
        host=settings.host,
        metrics_key=settings.metrics_secret,
        wait_for=("catalog", "socket", "push"),
    )
    with CatalogReader(
        settings.kafka_bootstrap,
        client_id="notifier-catalog",
        children=True,
        registry=health.registry,
    ) as catalog:
        health.ready("catalog")
        presence = Presence(settings)
        presence.start()
        asyncio.run(_serve(settings, catalog, health))
        presence.close()
    health.close()
    return 0


async def _serve(settings: NotifierSettings, catalog: CatalogReader, health: Health) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    health.watch("event loop", Pulse(loop).late)
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    hub = Hub(settings, catalog, health)
    catalog.listen(hub.hear)
    connections = Connections(settings)
    server = serve(
        hub.serve,
        settings.host,
        settings.port,
        process_request=hub.admit,
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

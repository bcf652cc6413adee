"""Wiring of the federation service: the link's server, views and mirrors."""

from __future__ import annotations

import asyncio
import ssl

from websockets.asyncio.server import serve

from penstock import names
from penstock.bus import Admin, Publisher
from penstock.catalog.reader import CatalogReader
from penstock.coordination import redis_link
from penstock.link.frames import CREDIT, MAX_FRAME
from penstock.repartition.write_gate import Gate, Halts
from penstock.runtime import tls
from penstock.runtime.connections import Connections, counting_connection
from penstock.runtime.health import Health
from penstock.service import Service
from services.federation.appenders import Appenders
from services.federation.information import information
from services.federation.leaders import Leaders
from services.federation.reading import StoreReader
from services.federation.server import LinkServer
from services.federation.settings import FederationSettings
from services.federation.views import Views


def run(settings: FederationSettings) -> int:
    """Serve until told to stop."""
    with Service(settings, waits_for=("catalog", "socket")) as service:
        catalog = service.read_catalog()
        service.announce()
        service.run_async(lambda stop: _serve(settings, catalog, service.health, stop))
    return 0


async def _serve(
    settings: FederationSettings, catalog: CatalogReader, health: Health, stop: asyncio.Event
) -> None:
    admin = Admin(settings.kafka_bootstrap, client_id="federation-admin")
    store = StoreReader(
        settings.store_url, settings.user, settings.root_password, catalog, admin, settings.tls_ca
    )
    client = redis_link.connect(settings, socket_timeout=3, socket_connect_timeout=3)
    with Publisher(settings.kafka_bootstrap, client_id="federation", linger_ms=1.0) as bus:
        leaders = Leaders(
            settings.raft_groups,
            client,
            lambda: catalog.catalog,
            settings.user,
            settings.root_password,
            settings.ack_seconds,
            tls.client(settings.tls_ca),
        )
        gate = Gate(lambda topic: catalog.catalog.is_halted(topic))
        halts = Halts(catalog, gate, client, f"federation:{settings.node}")
        halts.start()
        appenders = Appenders(
            settings.kafka_bootstrap, settings.segments_dir, bus, admin, leaders, gate
        )
        views = Views(settings, catalog, client, appenders, bus, health.registry)
        endpoint = LinkServer(
            settings,
            catalog,
            health,
            store,
            appenders,
            lambda catalog: information(catalog, views.deployment),
            lambda table, child: bool(
                redis_link.ask(lambda: client.hexists(names.children(table), child))
            ),
        )
        port, context = _listener(settings)
        connections = Connections(settings)
        server = serve(
            endpoint.serve,
            settings.host,
            port,
            ssl=context,
            process_request=endpoint.admit,
            compression=None,
            max_size=MAX_FRAME,
            ping_interval=settings.ping_seconds,
            ping_timeout=settings.ack_seconds,
            max_queue=CREDIT,
            server_header=None,
            close_timeout=1.0,
            open_timeout=settings.header_seconds,
            create_connection=counting_connection(connections),
        )
        async with server:
            health.ready("socket")
            views.start()
            await stop.wait()
            await asyncio.to_thread(views.stop)
        endpoint.close()
        leaders.close()
        halts.stop()
    store.close()
    client.close()


def _listener(settings: FederationSettings) -> tuple[int, ssl.SSLContext | None]:
    """The port, and what secures it. Raises ConfigError."""
    context = tls.server(settings)
    return (settings.port, None) if context is None else (settings.tls_port, context)

"""Wiring of the snode: catalog, vault, keeper, health."""

from __future__ import annotations

import signal
import threading

from penstock import bus
from penstock.catalog.reader import CatalogReader
from penstock.coordination import redis_link
from penstock.coordination.nodes import Presence
from penstock.runtime.clock import SystemClock
from penstock.runtime.health import Health
from penstock.runtime.log import configure
from penstock.storage.vault import Vault
from services.snode.keeper import BackupKeeper
from services.snode.settings import SnodeSettings


def run(settings: SnodeSettings) -> int:
    """Keep backups until told to stop; returns the exit status."""
    configure("snode", settings.log_level)
    bus.secure(settings.kafka_options)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    presence = Presence(settings)
    presence.start()
    client = redis_link.connect(settings, socket_timeout=3, socket_connect_timeout=3)
    with (
        Health(
            "snode",
            settings.health_port,
            host=settings.host,
            metrics_key=settings.metrics_secret,
            wait_for=("catalog", "epochs"),
        ) as health,
        CatalogReader(
            settings.kafka_bootstrap,
            client_id="snode-catalog",
            children=False,
            registry=health.registry,
        ) as catalog,
    ):
        health.ready("catalog")
        endpoint = settings.address or f"{settings.host}:{health.port}"
        vault = Vault(settings.checkpoint_backup_dir, settings.backup_signing_key)
        keeper = BackupKeeper(settings, catalog, client, vault, health, SystemClock(), endpoint)
        keeper.run(stop, lambda: health.ready("epochs"))
    presence.close()
    return 0

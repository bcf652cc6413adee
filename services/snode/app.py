"""Wiring of the snode: vault and keeper."""

from __future__ import annotations

from penstock.coordination import redis_link
from penstock.runtime.clock import SystemClock
from penstock.service import Service
from penstock.storage.vault import Vault
from services.snode.keeper import BackupKeeper
from services.snode.settings import SnodeSettings


def run(settings: SnodeSettings) -> int:
    """Keep backups until told to stop; returns the exit status."""
    with Service(settings, waits_for=("catalog", "epochs")) as service:
        catalog = service.read_catalog(children=False)
        service.announce()
        health = service.health
        client = redis_link.connect(settings, socket_timeout=3, socket_connect_timeout=3)
        endpoint = settings.address or f"{settings.host}:{health.port}"
        vault = Vault(settings.checkpoint_backup_dir, settings.backup_signing_key)
        keeper = BackupKeeper(settings, catalog, client, vault, health, SystemClock(), endpoint)
        keeper.run(service.stop, lambda: health.ready("epochs"))
    return 0

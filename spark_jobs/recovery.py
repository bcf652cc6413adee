"""Before the jobs start: state that is missing here, or behind, comes from the newest backup
without a fault.

So a node that has lost its disk, and a standby that never had the state, go on from there and
replay the rest from Kafka. What a node has itself is kept when it is as far as the backup. Refused:
touching state that lies in an object store, which outlives its node; a backup that the mesh's key
did not sign, unless the operator allows it.
"""

from __future__ import annotations

from penstock.errors import StateError
from penstock.runtime import log
from penstock.storage.checkpoints import (
    CheckpointPlace,
    local_path,
    local_positions,
    newest_verified,
    positions_of,
    restore,
)
from penstock.storage.vault import Vault
from spark_jobs.queries import Wanted
from spark_jobs.settings import SparkSettings

_log = log.get(__name__)


def behind(local: dict[str, int], backed_up: dict[str, int]) -> set[str]:
    """Partitions whose backup is further than what is here. Pure."""
    return {
        partition
        for partition, position in backed_up.items()
        if position > local.get(partition, -1)
    }


def recover(settings: SparkSettings, wanted: list[Wanted]) -> list[str]:
    """Restore what is behind; the queries of which something was restored.

    Raises:
        StateError: a backup cannot be read.
    """
    try:
        local_path(settings.state_dir)
        local_path(settings.checkpoint_dir)
    except StateError:
        return []
    key = settings.backup_signing_key
    if key is None and not settings.backup_unsigned:
        _log.error("no backup is restored: PENSTOCK_BACKUP_KEY is not set, so none can be checked")
        return []
    vault = Vault(settings.checkpoint_backup_dir, key, unsigned=settings.backup_unsigned)
    known = set(vault.subjects())
    restored = []
    for item in wanted:
        place = CheckpointPlace(item.topic, item.id, settings.state_dir, settings.checkpoint_dir)
        if place.subject not in known:
            continue
        here = local_positions(place)
        # the digests of a backup that nothing is needed of are not read
        if not any(behind(here, positions_of(b)) for b in vault.backups(place.subject)):
            continue
        backup = newest_verified(vault, place.subject)
        if backup is None or not (old := behind(here, positions_of(backup))):
            continue
        # the checkpoint of a lost disk; one that is there may be ahead of the state, which the
        # processors then read from the log
        checkpoint = not here
        restore(vault, backup, place, partitions=old, checkpoint=checkpoint)
        _log.warning(
            "state restored from a backup",
            query=item.topic,
            backup=backup.name,
            partitions=sorted(old),
            checkpoint=checkpoint,
        )
        restored.append(item.topic)
    return restored

"""What SHOW SNODES shows of a snode, kept in Redis while it lives."""

from __future__ import annotations

import json

import redis

from penstock import names
from penstock.runtime import log
from penstock.runtime.clock import Clock
from penstock.storage.vault import Vault, mask_login
from services.snode.settings import SnodeSettings

_REPORT_SECONDS = 60
_log = log.get(__name__)


class SnodeReport:
    """Which backups there are, and what has failed. One thread."""

    def __init__(
        self,
        settings: SnodeSettings,
        client: redis.Redis,
        vault: Vault,
        clock: Clock,
        endpoint: str,
    ) -> None:
        self._settings = settings
        self._redis = client
        self._vault = vault
        self._clock = clock
        self._endpoint = endpoint
        #: why the newest backup of a query failed
        self._faults: dict[str, str] = {}
        #: subject → (backups, time of the newest)
        self._held: dict[str, tuple[int, int]] = {}
        self._due_at = 0.0

    def note_failure(self, query: str, error: Exception) -> None:
        self._faults[query] = f"{query}: {error}"
        self._due_at = 0.0

    def note_backup(self, query: str, subject: str) -> None:
        self._faults.pop(query, None)
        self._count(subject)

    def tell(self) -> None:
        """Tell Redis; only when something has changed or the last report is about to run out."""
        now = self._clock.monotonic()
        if self._due_at > now:
            return
        if not self._held:
            for subject in self._vault.subjects():
                self._count(subject)
        about = {
            "endpoint": self._endpoint,
            "target": mask_login(self._settings.checkpoint_backup_dir),
            "note": "; ".join(self._faults.values()),
            "backups": sum(count for count, _ in self._held.values()),
            "newest": max((t for _, t in self._held.values()), default=None),
        }
        self._due_at = now + _REPORT_SECONDS / 3
        try:
            self._redis.set(
                names.snode_report(self._settings.node), json.dumps(about), ex=_REPORT_SECONDS
            )
        except redis.RedisError as down:
            _log.info("cannot report to Redis", reason=str(down))

    def _count(self, subject: str) -> None:
        found = self._vault.backups(subject)
        self._due_at = 0.0
        if found:
            self._held[subject] = (len(found), found[0].time)

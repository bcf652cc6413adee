"""Metrics of backups, by query."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from penstock.runtime.health import SECONDS
from penstock.storage.backup_list import Backup


class BackupMetrics:
    """Counts backups that were published, and those that failed."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._made = Counter(
            "penstock_snode_backups", "Backups published", ["query"], registry=registry
        )
        self._failed = Counter(
            "penstock_snode_failures", "Backups that failed", ["query"], registry=registry
        )
        self._newest = Gauge(
            "penstock_snode_newest_seconds",
            "When the newest backup was taken",
            ["query"],
            registry=registry,
        )
        self._bytes = Gauge(
            "penstock_snode_backup_bytes", "Size of the newest backup", ["query"], registry=registry
        )
        self._took = Histogram(
            "penstock_snode_backup_seconds",
            "Time that a backup took",
            ["query"],
            buckets=SECONDS,
            registry=registry,
        )

    def count_backup(self, query: str, backup: Backup, seconds: float) -> None:
        self._made.labels(query).inc()
        self._took.labels(query).observe(seconds)
        self._newest.labels(query).set(backup.time / 1000)
        self._bytes.labels(query).set(backup.size)

    def count_failure(self, query: str) -> None:
        self._failed.labels(query).inc()

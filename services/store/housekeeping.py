"""Chores between two reads of the log: latest rows and sizes of tables go to Redis, old rows and
records go away, databases get more partitions.
"""

from __future__ import annotations

import time
from concurrent.futures import Future

import redis

from penstock.bus import Admin
from penstock.catalog.reader import CatalogReader
from penstock.runtime.log import get
from services.store.latest import LatestRows
from services.store.moving import Moving
from services.store.partitions import Partitions
from services.store.redis_reports import RedisReports
from services.store.retention import Retention
from services.store.settings import StoreSettings
from services.store.table_sizes import TableSizes
from services.store.tail_flusher import TailFlusher

log = get(__name__)
#: how often latest rows go to Redis
_LATEST_SECONDS = 0.5
#: how often sizes of tables are looked at
_SIZES_SECONDS = 5.0


class Housekeeping:
    """Used by the thread that reads the log."""

    def __init__(
        self,
        settings: StoreSettings,
        catalog: CatalogReader,
        partitions: Partitions,
        admin: Admin,
        client: redis.Redis,
        latest: LatestRows,
        reports: RedisReports,
        flusher: TailFlusher,
    ) -> None:
        self._settings = settings
        self._catalog = catalog
        self._latest = latest
        self._reports = reports
        self._flusher = flusher
        self._moving = Moving(catalog, partitions, client, flusher.worker)
        self._retention = Retention(settings, catalog, partitions, admin)
        self._sizes = TableSizes(catalog, partitions, client)
        self._latest_at = 0.0
        self._sized_at = float("-inf")
        self._sizing: Future[None] | None = None
        self._swept_at = time.monotonic()
        self._sweeping: Future[None] | None = None

    def step(self) -> None:
        """Do what is due."""
        now = time.monotonic()
        if now - self._latest_at >= _LATEST_SECONDS:
            self._latest_at = now
            self._forget_dropped()
            self._reports.make()
            self._write_latest("latest rows wait for redis")
        if _is_over(self._sizing) and now - self._sized_at >= _SIZES_SECONDS:
            self._sized_at = now
            self._sizing = self._flusher.worker.submit(self._sizes.tell)
        if _is_over(self._sweeping) and now - self._swept_at >= self._settings.sweep_seconds:
            self._swept_at = now
            self._sweeping = self._flusher.worker.submit(self._sweep)
        self._moving.step(self._flusher.cut)

    def finish(self) -> None:
        """Write the latest rows a last time."""
        self._write_latest("latest rows were not written")

    def _sweep(self) -> None:
        """Runs on the flushing thread."""
        self._retention.sweep()
        self._sizes.forget()

    def _forget_dropped(self) -> None:
        for table_id in self._latest.tables():
            if self._catalog.catalog.table_by_id(table_id) is None:
                self._latest.forget(table_id)

    def _write_latest(self, trouble: str) -> None:
        try:
            self._latest.write()
        except redis.RedisError as error:
            log.warning(trouble, error=str(error))


def _is_over(chore: Future[None] | None) -> bool:
    """Tell whether the flushing thread has done a chore, or was never given it."""
    return chore is None or chore.done()

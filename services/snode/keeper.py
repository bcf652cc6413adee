"""The work of a snode: follows `penstock.epochs` and takes a backup of each query at its newest
manifest.

It reads files and Kafka and asks nothing of the jobs, so it is never in the path of rows: a snode
that is slow takes the newest manifest next and leaves out those between. It works while the catalog
has a snode on its node. What fails is said in SHOW SNODES and tried again with the next manifest.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import redis

from penstock import names
from penstock.bus import BEGINNING, Reader
from penstock.catalog.reader import CatalogReader
from penstock.errors import BusError, PenstockError, SchemaError
from penstock.records import Manifest, decode
from penstock.runtime import log
from penstock.runtime.clock import Clock, milliseconds
from penstock.runtime.failpoints import Failpoints
from penstock.runtime.health import Health
from penstock.storage.checkpoints import CheckpointPlace, take
from penstock.storage.vault import Vault
from services.snode.metrics import BackupMetrics
from services.snode.report import SnodeReport
from services.snode.retention import superfluous
from services.snode.settings import SnodeSettings

_PARTITION = (names.EPOCHS, 0)
_RETRY_SECONDS = 2.0
_log = log.get(__name__)


class BackupKeeper:
    """One per snode; `run` is its thread."""

    def __init__(
        self,
        settings: SnodeSettings,
        catalog: CatalogReader,
        client: redis.Redis,
        vault: Vault,
        health: Health,
        clock: Clock,
        endpoint: str,
    ) -> None:
        self._settings = settings
        self._catalog = catalog
        self._vault = vault
        self._clock = clock
        self._failpoints = Failpoints(settings.failpoints, f"{settings.data_dir}/failpoints")
        #: the newest manifest of each query that has no backup yet
        self._waiting: dict[str, Manifest] = {}
        #: when a backup of a query was begun last
        self._taken: dict[str, float] = {}
        self._report = SnodeReport(settings, client, vault, clock, endpoint)
        self._metrics = BackupMetrics(health.registry)

    @property
    def active(self) -> bool:
        """Whether the catalog has a snode on this node."""
        return self._catalog.catalog.snode(self._settings.node) is not None

    def run(self, stop: threading.Event, ready: Callable[[], None]) -> None:
        """Follow manifests until *stop*; *ready* is called once they can be read."""
        position = BEGINNING
        while not stop.is_set():
            try:
                with Reader(
                    self._settings.kafka_bootstrap, {_PARTITION: position}, client_id="snode"
                ) as reader:
                    while not stop.is_set():
                        for batch in reader.read():
                            position = batch.next_offset
                            self._note(batch.values)
                        ready()
                        self._work()
            except BusError as error:
                _log.warning("epochs cannot be read for now", error=str(error))
                position = BEGINNING if error.code == "E_OFFSET_GONE" else position
                stop.wait(_RETRY_SECONDS)

    def _note(self, values: list[bytes | None]) -> None:
        for value in values:
            try:
                manifest = decode(Manifest, value)
            except SchemaError as error:
                _log.error("a manifest cannot be used", error=str(error))
                continue
            self._waiting[manifest.query] = manifest

    def _work(self) -> None:
        if not self.active:
            return
        now = self._clock.monotonic()
        for query, manifest in list(self._waiting.items()):
            if now - self._taken.get(query, float("-inf")) < self._settings.min_seconds:
                continue
            del self._waiting[query]
            self._taken[query] = now
            if self._current(manifest):
                self._take(manifest)
        self._report.tell()

    def _current(self, manifest: Manifest) -> bool:
        """Whether the query is still there: manifests of dropped topics stay in the log."""
        catalog = self._catalog.catalog
        owner = _id_of(manifest)
        return manifest.query == names.EXCHANGE or catalog.topic_owner(manifest.query) == owner

    def _take(self, manifest: Manifest) -> None:
        query = manifest.query
        try:
            place = place_of(manifest, self._settings.state_dir)
            begun = self._clock.monotonic()
            backup = take(
                self._vault,
                place,
                time=milliseconds(self._clock),
                number=manifest.batch,
                offsets=dict(manifest.offsets),
                before_publish=lambda: self._failpoints.reach("before_publish"),
            )
            if backup is None:
                return
            self._metrics.count_backup(query, backup, self._clock.monotonic() - begun)
            self._prune(place.subject)
            self._report.note_backup(query, place.subject)
        except (PenstockError, OSError) as error:
            self._metrics.count_failure(query)
            self._report.note_failure(query, error)
            _log.error("backup failed", query=query, batch=manifest.batch, error=str(error))

    def _prune(self, subject: str) -> None:
        kept = self._settings
        gone = superfluous(
            self._vault.backups(subject),
            newest=kept.keep_newest,
            hours=kept.keep_hours,
            days=kept.keep_days,
        )
        for backup in gone:
            self._vault.remove(backup)
        if gone:
            self._vault.sweep(subject, self._clock.now() / 1e9)


def _id_of(manifest: Manifest) -> int:
    number = manifest.checkpoint.rstrip("/").split("/")[-2]
    return int(number) if number.isdigit() else -1


def place_of(manifest: Manifest, state_dir: str) -> CheckpointPlace:
    """Where the files that a manifest names are: its checkpoint ends with …/<id>/<query>."""
    checkpoint_dir = manifest.checkpoint.rstrip("/").rsplit("/", 2)[0]
    return CheckpointPlace(manifest.query, _id_of(manifest), state_dir, checkpoint_dir)

"""Keeps this node's copies: opens those of the tables in the catalog, and drops others.

A thread reads the logs of all tables (`log_follower.py`), another one writes files
(`copy_files.py`). Knows nothing of leading.
"""

from __future__ import annotations

import asyncio
import threading

from penstock.bus import Admin, Reader
from penstock.catalog.reader import CatalogReader
from penstock.config.raft import Group
from penstock.errors import BusError
from penstock.runtime.clock import Clock
from penstock.runtime.log import get
from services.tables.copy_directory import CopyDirectory
from services.tables.copy_files import CopyFiles
from services.tables.log_follower import LogFollower
from services.tables.replica import Replica
from services.tables.settings import TablesSettings

log = get(__name__)
_QUEUE_BYTES = 16 << 20
_RETRY_SECONDS = 0.3
_JOIN_SECONDS = 15
#: after a read of fewer bytes than this the log is left alone for so many seconds, so that records
#: gather: one by one, each of them would cost a fetch and a call on every node, and nobody waits
#: for a copy
_LITTLE = 64 << 10
_REST = 0.02
#: the same where this node leads and knew all it has read
_KNOWN_REST = 0.1


class ReplicaKeeper:
    """One per node."""

    def __init__(
        self,
        settings: TablesSettings,
        groups: tuple[Group, ...],
        catalog: CatalogReader,
        admin: Admin,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._settings = settings
        self._groups = {g.id for g in groups}
        self._catalog = catalog
        self._admin = admin
        self._directory = CopyDirectory(settings, loop)
        self._replicas: dict[int, Replica] = {}
        self._halt = threading.Event()
        #: a session waits for what is in the log
        self._awaited = threading.Event()
        self._files = CopyFiles(settings, clock, self.all, self._halt)
        self._thread = threading.Thread(target=self._read, name="log", daemon=True)
        #: all that was there at the start has been applied
        self.caught_up = threading.Event()
        self.failed: BaseException | None = None

    def start(self) -> None:
        self._thread.start()
        self._files.start()

    def stop(self) -> None:
        """Write what is in memory only, then end."""
        self._halt.set()
        self._thread.join(timeout=_JOIN_SECONDS)
        self._files.join()
        self._directory.release()

    def all(self) -> list[Replica]:
        return list(self._replicas.copy().values())

    def of_group(self, group: int) -> list[Replica]:
        return [r for r in self.all() if r.replicated.group == group]

    def find(self, database: str, name: str) -> Replica | None:
        """The replica of a table by its name."""
        wanted = (database.lower(), name.lower())
        return next(
            (r for r in self.all() if (r.table.database.lower(), r.table.name.lower()) == wanted),
            None,
        )

    # ---------------------------------------------------------------- the log

    def _read(self) -> None:
        try:
            while not self._halt.is_set():
                try:
                    self._read_on()
                except BusError as error:
                    log.warning("the logs cannot be read for now", error=str(error))
                    self._halt.wait(_RETRY_SECONDS)
        except BaseException as error:  # noqa: B036  the node must see it and end
            log.exception("the log thread ended")
            self.failed = error

    def _read_on(self) -> None:
        # with records waiting it fetches no more: else the broker would answer for every single one
        # while this rests
        with Reader(
            self._settings.kafka_bootstrap,
            {},
            client_id=f"tables-{self._settings.alias}",
            max_wait_ms=50,
            queue_bytes=_QUEUE_BYTES,
            queue_records=1,
        ) as reader:
            logs = LogFollower(reader, self._admin, self._files.wait_for_room)
            while not self._halt.is_set():
                self._follow(logs)
                found = logs.read()
                if not self.caught_up.is_set() and logs.caught_up:
                    self.caught_up.set()
                if found is not None and (found.known or found.size < _LITTLE):
                    self._awaited.wait(_KNOWN_REST if found.known else _REST)
                    self._awaited.clear()

    def _follow(self, logs: LogFollower) -> None:
        """Begin with tables that are new in the catalog, leave those that are gone."""
        catalog = self._catalog.catalog
        revision = catalog.revision
        if revision == logs.revision:
            return
        wanted = {
            t.id: t
            for t in catalog.tables()
            if t.replicated is not None and t.replicated.group in self._groups
        }
        for table_id in [i for i in self._replicas if i not in wanted]:
            self._drop(table_id, logs)
        new = [t for t in wanted.values() if not logs.reads(t.topic)]
        topics = self._admin.topics() if new else {}
        for table in new:
            if table.topic in topics:
                replica = self._replicas.get(table.id) or self._directory.open(
                    table, catalog.database(table.database), self._awaited.set
                )
                self._replicas[table.id] = replica
                logs.begin(replica)
        if all(t.topic in topics for t in new):
            logs.revision = revision
            self._directory.remove_leftovers(wanted, catalog.next_id)

    def _drop(self, table_id: int, logs: LogFollower) -> None:
        replica = self._replicas.pop(table_id)
        replica.drop()
        logs.leave(replica.table.topic)
        replica.copy.remove()
        log.info("table dropped", table=replica.name)

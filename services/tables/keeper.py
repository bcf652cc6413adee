"""Keeps this node's copies: which tables the catalog says, each read from its log, written to disk
and shortened in time.

Two threads: one reads the logs of all tables, one writes files. Refused: anything about leading.
"""

from __future__ import annotations

import asyncio
import fcntl
import shutil
import threading
import time

from penstock.bus import Admin, Batch, Reader
from penstock.catalog.model import Table
from penstock.catalog.reader import CatalogReader
from penstock.config.raft import Group
from penstock.errors import BusError, ConfigError
from penstock.runtime import vital
from penstock.runtime.clock import Clock, milliseconds
from penstock.runtime.log import get
from services.tables.copy import Copy
from services.tables.replica import Replica
from services.tables.rows import TableRows
from services.tables.settings import TablesSettings
from services.tables.shape import Shape

log = get(__name__)
_QUEUE_BYTES = 16 << 20
#: the log is not read further while a table has this many times `flush_rows` waiting for a file
_BEHIND = 4
_RETRY_SECONDS = 0.3
#: after a read of fewer bytes than this the log is left alone for so many seconds, that records
#: gather: one by one each of them would cost a fetch and the whole of what is paid per call, on
#: every node, and nobody waits for a copy
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
        self._clock = clock
        self._loop = loop
        self._directory = settings.directory
        self._directory.mkdir(parents=True, exist_ok=True)
        # held as long as the node lives
        self._claim = open(self._directory / "lock", "w", encoding="utf-8")  # noqa: SIM115
        try:
            fcntl.flock(self._claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigError(
                f"{self._directory} holds the copies of another node that runs",
                hint="PENSTOCK_TABLES_PERSISTENCE_DIR: one for each node",
            ) from None
        self._replicas: dict[int, Replica] = {}
        self._followed = -1
        #: topic → where its log ended when this node began to read it
        self._ends: dict[str, int] = {}
        #: topic → the offset behind what was read of it last
        self._positions: dict[str, int] = {}
        self._halt = threading.Event()
        #: a session waits for what is in the log
        self._awaited = threading.Event()
        self._saved = threading.Condition()
        self._threads = [
            threading.Thread(target=t, name=n, daemon=True)
            for t, n in ((self._read, "log"), (self._save, "files"))
        ]
        #: all that was there at the start has been applied
        self.caught_up = threading.Event()
        self.failed: BaseException | None = None

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Write what is in memory only, then end."""
        self._halt.set()
        for thread in self._threads:
            thread.join(timeout=15)
        self._claim.close()

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
                    self._followed = -1
                    self._halt.wait(_RETRY_SECONDS)
        except BaseException as error:  # noqa: B036  the node must see it and end
            log.exception("the log thread ended")
            self.failed = error

    def _read_on(self) -> None:
        reading: dict[str, Replica] = {}
        self._positions.clear()
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
            while not self._halt.is_set():
                self._follow(reader, reading)
                batches = reader.read(1_000, 0.05)
                known = [self._take(batch, reading) for batch in batches]
                self._pass_over(reader, reading)
                # not the end of now: under load that is always a little ahead
                if not self.caught_up.is_set() and all(
                    r.copy.offset >= self._ends[t] for t, r in reading.items()
                ):
                    self.caught_up.set()
                if batches and (
                    all(known) or sum(len(v or b"") for b in batches for v in b.values) < _LITTLE
                ):
                    self._awaited.wait(_KNOWN_REST if all(known) else _REST)
                    self._awaited.clear()

    def _take(self, batch: Batch, reading: dict[str, Replica]) -> bool:
        """Apply what was read; whether all of it was known: records of this node that it has taken
        as it sent them.
        """
        replica = reading.get(batch.topic)
        if replica is None:
            return True
        self._positions[batch.topic] = batch.next_offset
        if batch.next_offset <= replica.copy.offset:
            return True
        replica.apply(batch)
        with self._saved:
            while (
                replica.copy.waiting > _BEHIND * self._settings.flush_rows
                and not self._halt.is_set()
            ):
                self._saved.wait(0.5)
        return False

    def _pass_over(self, reader: Reader, reading: dict[str, Replica]) -> None:
        """Do not fetch what this node has sent and taken itself."""
        for topic, replica in reading.items():
            position = self._positions.get(topic)
            reached = replica.copy.offset
            if position is not None and position < reached:
                reader.seek(topic, 0, reached)
                self._positions[topic] = reached

    def _follow(self, reader: Reader, reading: dict[str, Replica]) -> None:
        """Begin with tables that are new in the catalog, leave those that are gone."""
        catalog = self._catalog.catalog
        revision = catalog.revision
        if revision == self._followed:
            return
        wanted = {
            t.id: t
            for t in catalog.tables()
            if t.replicated is not None and t.replicated.group in self._groups
        }
        for table_id in [i for i in self._replicas if i not in wanted]:
            self._drop(table_id, reader, reading)
        new = [t for t in wanted.values() if t.topic not in reading]
        topics = self._admin.topics() if new else {}
        for table in new:
            if table.topic in topics:
                self._begin(table, reader, reading)
        if all(t.topic in topics for t in new):
            self._followed = revision
            self._remove_leftovers({str(i) for i in wanted})

    def _drop(self, table_id: int, reader: Reader, reading: dict[str, Replica]) -> None:
        replica = self._replicas.pop(table_id)
        replica.drop()
        self._positions.pop(replica.table.topic, None)
        if reading.pop(replica.table.topic, None) is not None:
            reader.remove([(replica.table.topic, 0)])
        replica.copy.remove()
        log.info("table dropped", table=replica.name)

    def _begin(self, table: Table, reader: Reader, reading: dict[str, Replica]) -> None:
        """Read a table's log from where its copy ends."""
        replica = self._replicas.get(table.id) or self._open(table)
        self._replicas[table.id] = replica
        partition = (table.topic, 0)
        start = max(replica.copy.offset, self._admin.start_offsets([partition])[partition])
        end = self._admin.end_offsets([partition])[partition]
        self._ends[table.topic] = end if start < end else 0
        reader.add({partition: start})
        reading[table.topic] = replica

    def _open(self, table: Table) -> Replica:
        assert table.replicated is not None
        home = self._catalog.catalog.database(table.database)
        ahead = home.max_ahead.ticks(table.precision) if home is not None else 0
        copy = Copy(
            self._directory / str(table.id),
            Shape.of(table, self._settings.flush_rows, self._settings.max_producers),
        )
        log.info(
            "table opened",
            table=f"{table.database}.{table.name}",
            group=table.replicated.group,
            rows=copy.next,
            earliest=copy.earliest,
        )
        return Replica(table, TableRows(table, ahead), copy, self._loop, hurry=self._awaited.set)

    def _remove_leftovers(self, known: set[str]) -> None:
        """Files of tables that were dropped while this node was away."""
        for path in self._directory.iterdir():
            if (
                path.name.isdigit()
                and path.name not in known
                and int(path.name) < self._catalog.catalog.next_id
            ):
                shutil.rmtree(path, ignore_errors=True)

    # ---------------------------------------------------------------- files

    @vital.run
    def _save(self) -> None:
        flushed: dict[int, float] = {}
        swept = 0.0
        while True:
            ending = self._halt.is_set()
            now = time.monotonic()
            for replica in self.all():
                table_id = replica.table.id
                late = now - flushed.setdefault(table_id, now) >= self._settings.flush_seconds
                if ending or late or replica.copy.due():
                    self._flush(replica)
                    flushed[table_id] = now
            if now - swept >= self._settings.sweep_seconds:
                swept = now
                for replica in self.all():
                    replica.copy.expire(milliseconds(self._clock))
            if ending:
                return
            self._halt.wait(0.05)

    def _flush(self, replica: Replica) -> None:
        try:
            with replica.lock:  # the position and the rows belong together
                pending = replica.copy.begin_flush()
            if pending is not None:
                replica.copy.finish_flush(pending)
        except OSError as full:
            log.error(
                "a copy cannot be written to disk; it is tried again",
                table=replica.name,
                error=str(full),
            )
            replica.copy.undo_flush()
        with self._saved:
            self._saved.notify_all()

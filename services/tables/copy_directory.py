"""The directory of a node's copies, which no other node may use while this one runs."""

from __future__ import annotations

import asyncio
import fcntl
import shutil
from collections.abc import Callable, Collection

from penstock.catalog.model import Database, Table
from penstock.errors import ConfigError
from penstock.runtime.log import get
from services.tables.copy import Copy
from services.tables.replica import Replica
from services.tables.rows import TableRows
from services.tables.settings import TablesSettings
from services.tables.shape import Shape

log = get(__name__)


class CopyDirectory:
    """One per node; claimed from the start."""

    def __init__(self, settings: TablesSettings, loop: asyncio.AbstractEventLoop) -> None:
        """
        Args:
            loop: of those who wait for rows.

        Raises:
            ConfigError: another node uses it.
        """
        self._settings = settings
        self._loop = loop
        self._path = settings.directory
        self._path.mkdir(parents=True, exist_ok=True)
        self._claim = open(self._path / "lock", "w", encoding="utf-8")  # noqa: SIM115
        try:
            fcntl.flock(self._claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._claim.close()
            raise ConfigError(
                f"{self._path} holds the copies of another node that runs",
                hint="PENSTOCK_TABLES_PERSISTENCE_DIR: one for each node",
            ) from None

    def release(self) -> None:
        """Let another node use it."""
        self._claim.close()

    def open(self, table: Table, home: Database | None, hurry: Callable[[], None]) -> Replica:
        """Open the copy of a table, as far as it has come.

        Args:
            home: database of the table.
            hurry: called when somebody waits for what is in the log.
        """
        assert table.replicated is not None
        ahead = home.max_ahead.ticks(table.precision) if home is not None else 0
        shape = Shape.of(table, self._settings.flush_rows, self._settings.max_producers)
        copy = Copy(self._path / str(table.id), shape)
        log.info(
            "table opened",
            table=f"{table.database}.{table.name}",
            group=table.replicated.group,
            rows=copy.next,
            earliest=copy.earliest,
        )
        return Replica(table, TableRows(table, ahead), copy, self._loop, hurry=hurry)

    def remove_leftovers(self, known: Collection[int], below: int) -> None:
        """Remove files of tables that were dropped while this node was away.

        Args:
            known: ids of tables whose files stay.
            below: no table with this id or a higher one was ever heard of here.
        """
        for path in self._path.iterdir():
            number = int(path.name) if path.name.isdigit() else below
            if number < below and number not in known:
                shutil.rmtree(path, ignore_errors=True)

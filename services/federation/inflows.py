"""External streams that are topics of another Kafka: each is read into its table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from penstock import foreign
from penstock.bus import Publisher
from penstock.catalog.reader import CatalogReader
from penstock.outbound.reach import Outbound
from services.federation.appenders import Appenders
from services.federation.inflow import Inflow
from services.federation.persistent import Report
from services.federation.settings import FederationSettings


class Inflows:
    """Starts and stops inflows as the catalog changes. One thread."""

    def __init__(
        self,
        settings: FederationSettings,
        catalog: CatalogReader,
        appenders: Appenders,
        dead: Publisher,
        outbound: Outbound,
        home: foreign.Home,
    ) -> None:
        """
        Args:
            dead: takes dead letters.
        """
        self._settings = settings
        self._catalog = catalog
        self._appenders = appenders
        self._dead = dead
        self._outbound = outbound
        self._home = home
        self._running: dict[int, Inflow] = {}

    def __bool__(self) -> bool:
        return bool(self._running)

    def all(self) -> list[Inflow]:
        return list(self._running.values())

    def reports(self) -> dict[int, list[Report]]:
        """Return the reports by the ids of tables."""
        return {table_id: [inflow.report] for table_id, inflow in self._running.items()}

    def follow(self, forget: Callable[[int], None]) -> None:
        """Begin with tables that are new in the catalog, leave those that are gone.

        Args:
            forget: called with the id of each table that is gone.
        """
        catalog = self._catalog.catalog
        wanted = {t.id: t for t in catalog.tables() if t.foreign}
        for table_id in self._running.keys() - wanted.keys():
            self._running.pop(table_id).stop()
            forget(table_id)
        for table_id in wanted.keys() - self._running.keys():
            inflow = self._running[table_id] = Inflow(
                wanted[table_id],
                partial(catalog.table_by_id, table_id),
                self._settings,
                self._appenders,
                self._dead,
                self._outbound,
                self._home,
            )
            inflow.start()

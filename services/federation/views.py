"""The materialized views and mirrors of the catalog, each shard of their sources pumped, and
external streams that are topics of another Kafka, each read; what they say of themselves goes to
Redis.

Owns starting and stopping pumps and inflows as the catalog changes. A view that is paused or gone
is not pumped; its note of how far it has come stays until it is dropped.
"""

from __future__ import annotations

import secrets
import threading
from pathlib import Path

import redis
from prometheus_client import CollectorRegistry

from penstock import foreign
from penstock.auth.access import Access
from penstock.bus import Admin, Publisher
from penstock.catalog.model import External, Table, View
from penstock.catalog.reader import CatalogReader
from penstock.errors import PenstockError
from penstock.link import external
from penstock.link.address import Address
from penstock.link.selection import point_at, source_of
from penstock.outbound.reach import Outbound
from penstock.runtime import vital
from penstock.runtime.log import get
from services.federation.appenders import Appenders
from services.federation.inflows import Inflows
from services.federation.persistent import Persistent, Report
from services.federation.pump import Job, Pump, PumpSource
from services.federation.settings import FederationSettings
from services.federation.targets import TablePlace
from services.federation.view_reports import ViewReports

log = get(__name__)
_EVERY = 0.25
#: while nothing runs: the catalog says when that changes
_REST = 1.0


class Views(threading.Thread):
    """Runs until `stop`."""

    def __init__(
        self,
        settings: FederationSettings,
        catalog: CatalogReader,
        client: redis.Redis,
        appenders: Appenders,
        bus: Publisher,
        registry: CollectorRegistry,
    ) -> None:
        super().__init__(name="views", daemon=True)
        self._bus = bus
        self._settings = settings
        self._catalog = catalog
        self._directory = settings.data_dir / "federation"
        self._outbound = Outbound(settings, Access(lambda: catalog.catalog, settings.user))
        home = foreign.Home(
            Admin(
                settings.kafka_bootstrap,
                client_id="federation-home",
                timeout=settings.connect_seconds,
            ).cluster
        )
        self._inflows = Inflows(settings, catalog, appenders, bus, self._outbound, home)
        self.deployment = deployment_id(self._directory)
        self._pumps: dict[tuple[int, int], Pump] = {}
        #: pumps that were told to stop
        self._ending: dict[tuple[int, int], Pump] = {}
        self._halt = threading.Event()
        self._reports = ViewReports(client, registry)

    def stop(self) -> None:
        self._halt.set()
        self.join(5.0)
        running: list[Persistent] = [
            *self._pumps.values(),
            *self._ending.values(),
            *self._inflows.all(),
        ]
        for pump in running:
            pump.stop()
        for pump in running:
            pump.join(5.0)

    @vital.run
    def run(self) -> None:
        changed = threading.Event()
        self._catalog.listen(lambda _: changed.set())
        while not self._halt.is_set():
            self.step()
            changed.wait(_EVERY if self._pumps or self._ending or self._inflows else _REST)
            changed.clear()

    def step(self) -> None:
        """Follow the catalog, and say how things are; called by the thread."""
        try:
            self._follow()
            self._inflows.follow(self._reports.forget)
            self._tell()
        except redis.RedisError as down:
            log.warning("views cannot be reported", reason=str(down))
        except vital.FAULTS:
            log.exception("following the views of the catalog failed")

    def _follow(self) -> None:
        views = {v.id: v for v in self._catalog.catalog.views()}
        wanted = {
            (v.id, shard)
            for v in views.values()
            if v.status == "running"
            for shard in range(len(v.begin))
        }
        for key in self._pumps.keys() - wanted:
            self._end(key)
            self._ending[key].stop()
        self._forget_ended(views)
        for key, pump in list(self._pumps.items()):
            if pump.report.state == "stopped" and pump.job.resumed != views[key[0]].resumed:
                self._end(key)
        self._say_paused(views)
        for key in wanted - self._pumps.keys() - self._ending.keys():
            self._begin(key, views[key[0]])

    def _begin(self, key: tuple[int, int], view: View) -> None:
        job = self._job(view, key[1])
        if job is not None:
            self._pumps[key] = Pump(job, self._settings, self._directory, self._bus)
            self._pumps[key].start()

    def _end(self, key: tuple[int, int]) -> None:
        self._ending[key] = self._pumps.pop(key)

    def _forget_ended(self, views: dict[int, View]) -> None:
        """Let go pumps that have ended, and what is noted of views that are gone."""
        for key in [k for k, pump in self._ending.items() if not pump.is_alive()]:
            pump = self._ending.pop(key)
            if key[0] not in views:
                pump.forget()
                self._reports.forget(key[0])

    def _say_paused(self, views: dict[int, View]) -> None:
        busy = {view_id for view_id, _ in (*self._pumps, *self._ending)}
        for view in views.values():
            if view.status == "paused" and view.id not in busy:
                self._reports.say(view.id, {"state": "paused"})

    def _job(self, view: View, shard: int) -> Job | None:
        source = self._catalog.catalog.by_id(view.source_id)
        target = self._catalog.catalog.by_id(view.target_id)
        if not isinstance(source, Table | External) or not isinstance(target, Table | External):
            return None
        try:
            origin = self._place(source)
            place = self._place(target)
            _, select, node = source_of(view.sql)
        except PenstockError as error:
            log.error("a view cannot be pumped", view=view.name, reason=str(error))
            return None
        return Job(
            f"{view.database}.{view.name}",
            view.id,
            view.created,
            shard,
            PumpSource(
                origin.shards[shard],
                point_at(select, origin.database, origin.name),
                origin.database,
                view.timezone,
                view.begin[shard],
                len(view.begin) == 1,
                _origin(source, shard),
            ),
            place,
            self.deployment,
            view.on_error,
            view.resumed,
        )

    def _place(self, entry: Table | External) -> TablePlace:
        if isinstance(entry, Table):
            host = "127.0.0.1" if self._settings.host in ("0.0.0.0", "::") else self._settings.host
            here = Address(
                host, self._settings.port, self._settings.user, self._settings.root_password
            )
            return TablePlace(((here,),), entry.database, entry.name)
        places = external.addresses(
            entry, self._settings.data_dir, self._outbound.reach(entry.maker, link=True)
        )
        return TablePlace(tuple(places), entry.remote_database, entry.remote_name)

    def _tell(self) -> None:
        reports: dict[int, list[Report]] = {}
        for (view_id, _), pump in self._pumps.items():
            reports.setdefault(view_id, []).append(pump.report)
        self._reports.tell(reports | self._inflows.reports(), self._find_name)

    def _find_name(self, view_id: int) -> str | None:
        entry = self._catalog.catalog.by_id(view_id)
        return f"{entry.database}.{entry.name}" if isinstance(entry, View | Table) else None


def _origin(source: Table | External, shard: int) -> str:
    """Return what the places of a source's rows are of, for people."""
    if isinstance(source, Table):
        return source.topic
    return f"{source.database}.{source.name}" + (
        f", shard {shard}" if len(source.shards) > 1 else ""
    )


def deployment_id(directory: Path) -> str:
    """Return the id that tells this deployment from others, for ever; made at the first start."""
    path = directory / "deployment"
    if not path.exists():
        directory.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_text(secrets.token_hex(6), encoding="utf-8")
        fresh.rename(path)
    return path.read_text(encoding="utf-8").strip()

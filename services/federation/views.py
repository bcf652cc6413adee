"""The materialized views and mirrors of the catalog, each shard of their sources pumped, and
external streams that are topics of another Kafka, each read; what they say of themselves goes to
Redis.

Owns starting and stopping pumps and inflows as the catalog changes. A view that is paused or gone
is not pumped; its note of how far it has come stays until it is dropped.
"""

from __future__ import annotations

import secrets
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import redis
from prometheus_client import CollectorRegistry, Gauge

from penstock import foreign, names
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
from services.federation.inflow import Inflow
from services.federation.persistent import Persistent, Report
from services.federation.pump import Job, Pump
from services.federation.settings import FederationSettings
from services.federation.targets import TablePlace

log = get(__name__)
_EVERY = 0.25
#: while nothing runs: the catalog says when that changes
_REST = 1.0
#: of a pump, the worst first
_STATES = ("stopped", "error", "retrying", "starting")


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
        self._appenders = appenders
        self._bus = bus
        self._inflows: dict[int, Inflow] = {}
        self._settings = settings
        self._catalog = catalog
        self._redis = client
        self._directory = settings.data_dir / "federation"
        self._outbound = Outbound(settings, Access(lambda: catalog.catalog, settings.user))
        self._home = foreign.Home(
            Admin(
                settings.kafka_bootstrap,
                client_id="federation-home",
                timeout=settings.connect_seconds,
            ).cluster
        )
        self.deployment = deployment_id(self._directory)
        self._pumps: dict[tuple[int, int], Pump] = {}
        #: pumps that were told to stop
        self._ending: dict[tuple[int, int], Pump] = {}
        self._halt = threading.Event()
        self._said: dict[int, dict[str, str]] = {}
        self._behind = Gauge(
            "penstock_federation_behind_seconds",
            "Since a view or mirror had all there was",
            ["view"],
            registry=registry,
        )
        self._shown: set[str] = set()

    def stop(self) -> None:
        self._halt.set()
        self.join(5.0)
        running: list[Persistent] = [
            *self._pumps.values(),
            *self._ending.values(),
            *self._inflows.values(),
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
            self._follow_topics()
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
                self._said.pop(key[0], None)
                self._redis.delete(names.view_status(key[0]))

    def _say_paused(self, views: dict[int, View]) -> None:
        busy = {view_id for view_id, _ in (*self._pumps, *self._ending)}
        for view in views.values():
            if view.status == "paused" and view.id not in busy:
                self._say(view.id, {"state": "paused"})

    def _follow_topics(self) -> None:
        catalog = self._catalog.catalog
        wanted = {t.id: t for t in catalog.tables() if t.foreign}
        for table_id in self._inflows.keys() - wanted.keys():
            self._inflows.pop(table_id).stop()
            self._said.pop(table_id, None)
            self._redis.delete(names.view_status(table_id))
        for table_id in wanted.keys() - self._inflows.keys():
            present = partial(catalog.table_by_id, table_id)
            self._inflows[table_id] = Inflow(
                wanted[table_id],
                present,
                self._settings,
                self._appenders,
                self._bus,
                self._outbound,
                self._home,
            )
            self._inflows[table_id].start()

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
            origin.shards[shard],
            point_at(select, origin.database, origin.name),
            origin.database,
            view.timezone,
            place,
            view.begin[shard],
            self.deployment,
            len(view.begin) == 1,
            view.on_error,
            _origin(source, shard),
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
        """Tell Redis what SHOW VIEWS shows, and the metrics how far each is behind."""
        now = time.time()
        reports: dict[int, list[Report]] = {}
        for (view_id, _), pump in self._pumps.items():
            reports.setdefault(view_id, []).append(pump.report)
        reports |= {table_id: [inflow.report] for table_id, inflow in self._inflows.items()}
        shown: set[str] = set()
        for view_id, mine in reports.items():
            said = _status(mine, now)
            self._say(view_id, said)
            entry = self._catalog.catalog.by_id(view_id)
            if isinstance(entry, View | Table):
                name = f"{entry.database}.{entry.name}"
                shown.add(name)
                self._behind.labels(name).set(float(said["behind"]))
        for gone in self._shown - shown:
            self._behind.remove(gone)
        self._shown = shown

    def _say(self, view_id: int, said: dict[str, str]) -> None:
        if said != self._said.get(view_id):
            fields: Any = said  # the client wants a wider type of mapping
            self._redis.hset(names.view_status(view_id), mapping=fields)
            self._said[view_id] = said


def _status(reports: list[Report], now: float) -> dict[str, str]:
    """Return what SHOW VIEWS shows of a view whose shards report this."""
    states = {r.state for r in reports}
    worst = next((s for s in _STATES if s in states), "running")
    status = {
        "state": worst,
        "rows": str(sum(r.rows for r in reports)),
        "error": _worst(reports),
        "dropped": str(sum(r.dropped for r in reports)),
    }
    lags = [r.lag for r in reports if r.lag is not None]
    if lags:
        status["lag"] = str(sum(lags))
    behind = max((now - r.level_at for r in reports), default=0.0)
    status["behind"] = f"{behind:.1f}" if behind >= 1 else "0.0"
    return status


def _worst(reports: list[Report]) -> str:
    """Return the error that somebody has to see to, before one after which it is tried again."""
    said = [r for r in reports if r.error]
    return next((r.error for r in said if r.state == "stopped"), said[0].error if said else "")


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

"""Which pumps and inflows run for the views of a catalog, and what Redis hears of them."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from prometheus_client.registry import CollectorRegistry

from penstock import foreign, names
from penstock.catalog.model import FOREIGN, Table
from penstock.link import external
from penstock.link.address import Address
from services.federation import inflows
from services.federation import views as subject
from services.federation.persistent import Report
from services.federation.pump import Job
from services.federation.targets import TablePlace
from services.federation.views import Views, deployment_id
from tests.unit.services.federation.kit import (
    DATABASE,
    FAR,
    PLAIN,
    STABLE,
    VIEW,
    Deployment,
)
from tests.unit.services.memory_redis import MemoryRedis

MIRROR = dataclasses.replace(
    VIEW,
    id=43,
    name="mirror",
    sql="SELECT * FROM d.far",
    source_id=FAR.id,
    begin=("a", "b"),
    on_error="drop",
    resumed=2,
)


class Task:
    """Stands where pumps and inflows do."""

    def __init__(self, about: Any) -> None:
        self.job: Job = about
        self.report = Report()
        self.started = self.stopped = self.forgotten = False
        self.alive = True

    def start(self) -> None:
        self.started = True

    def stop(self) -> None:
        self.stopped = True

    def join(self, timeout: float) -> None:
        """It has ended."""

    def is_alive(self) -> bool:
        return self.alive

    def forget(self) -> None:
        self.forgotten = True


class Here(Deployment):
    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch, *entries: Any) -> None:
        super().__init__(directory, *(entries or (DATABASE, PLAIN, STABLE, FAR, VIEW)))
        self.pumps: list[Task] = []
        self.inflows: list[Task] = []
        monkeypatch.setattr(subject, "Pump", self._pump)
        monkeypatch.setattr(inflows, "Inflow", self._inflow)
        monkeypatch.setattr(subject, "Admin", lambda *_, **__: self.log)
        self.log.cluster = lambda: None
        self.redis = MemoryRedis()
        self.registry = CollectorRegistry()
        client: Any = self.redis
        appenders: Any = None
        self.views = Views(self.settings, self.reader, client, appenders, self.log, self.registry)

    def _pump(self, job: Job, *_: Any) -> Task:
        self.pumps.append(Task(job))
        return self.pumps[-1]

    def _inflow(self, table: Table, *_: Any) -> Task:
        self.inflows.append(Task(table))
        return self.inflows[-1]

    def status(self, view_id: int = VIEW.id) -> dict[str, str]:
        return self.redis.hashes[names.view_status(view_id)]

    def change(self, **more: Any) -> None:
        found = self.catalog.by_id(VIEW.id)
        self.catalog.put(dataclasses.replace(found, **more))  # type: ignore[arg-type]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    return Here(tmp_path, monkeypatch)


def test_a_running_view_is_pumped_once(here: Here) -> None:
    here.views.step()
    here.views.step()
    (pump,) = here.pumps
    assert pump.started
    job = pump.job
    assert (job.view, job.view_id, job.shard, job.source.begin, job.source.alone) == (
        "d.up",
        VIEW.id,
        0,
        "x",
        True,
    )
    assert job.source.origin == STABLE.topic
    assert "meters" in job.source.sql
    own = Address(
        here.settings.host, here.settings.port, here.settings.user, here.settings.root_password
    )
    assert job.source.addresses == (own,)
    assert job.target == TablePlace(((own,),), "d", "plain")
    assert job.deployment == here.views.deployment


def test_each_shard_of_an_external_stream_is_pumped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    external.keep_secret(tmp_path, FAR.id, "secret")
    here = Here(tmp_path, monkeypatch, DATABASE, PLAIN, FAR, MIRROR)
    here.views.step()
    jobs = sorted((t.job for t in here.pumps), key=lambda j: j.shard)
    assert [(j.shard, j.source.begin, j.source.addresses[0].host) for j in jobs] == [
        (0, "a", "h1"),
        (1, "b", "h2"),
    ]
    assert {j.source.addresses[0].password for j in jobs} == {"secret"}
    assert not any(j.source.alone for j in jobs)
    assert (jobs[1].source.origin, jobs[1].on_error, jobs[1].resumed) == (
        "d.far, shard 1",
        "drop",
        2,
    )
    assert (jobs[0].source.database, jobs[0].target.name) == ("rd", "plain")
    assert "rt" in jobs[0].source.sql


def test_a_paused_view_stops_and_says_so_once_it_has(here: Here) -> None:
    here.views.step()
    here.change(status="paused")
    here.views.step()
    (pump,) = here.pumps
    assert pump.stopped
    assert here.status().get("state") != "paused", "it is not over yet"
    pump.alive = False
    here.views.step()
    assert here.status()["state"] == "paused" and not pump.forgotten
    here.change(status="running")
    here.views.step()
    assert len(here.pumps) == 2


def test_a_view_does_not_begin_anew_before_its_pump_has_ended(here: Here) -> None:
    here.views.step()
    here.change(status="paused")
    here.views.step()
    here.change(status="running")
    here.views.step()
    assert len(here.pumps) == 1
    here.pumps[0].alive = False
    here.views.step()
    assert len(here.pumps) == 2


def test_a_dropped_view_is_forgotten(here: Here) -> None:
    here.views.step()
    here.catalog.remove(VIEW.id)
    here.pumps[0].alive = False
    here.views.step()
    assert here.pumps[0].forgotten
    assert not here.status()
    assert (
        here.registry.get_sample_value("penstock_federation_behind_seconds", {"view": "d.up"})
        is None
    )


def test_resume_lets_a_view_that_stopped_at_a_row_go_on(here: Here) -> None:
    here.views.step()
    here.pumps[0].report.state = "stopped"
    here.pumps[0].alive = False
    here.views.step()
    assert len(here.pumps) == 1, "it waits for somebody to say so"
    here.change(resumed=1)
    here.views.step()
    here.views.step()
    assert len(here.pumps) == 2
    assert here.pumps[1].job.resumed == 1


def test_what_is_said_of_a_view(here: Here) -> None:
    here.views.step()
    report = here.pumps[0].report
    report.state = "running"
    report.rows = 7
    report.lag = 3
    report.level_at = time.time() - 60
    here.views.step()
    said = here.status()
    assert (said["state"], said["rows"], said["lag"], said["error"]) == ("running", "7", "3", "")
    assert float(said["behind"]) >= 60
    behind = here.registry.get_sample_value("penstock_federation_behind_seconds", {"view": "d.up"})
    assert behind is not None and behind >= 60


def test_of_several_shards_the_worst_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Here(tmp_path, monkeypatch, DATABASE, PLAIN, FAR, MIRROR)
    here.views.step()
    first, second = (t.report for t in here.pumps)
    first.state = "retrying"
    first.error = "E_LINK_LOST: gone"
    first.rows = 1
    second.state = "stopped"
    second.error = "E_ROW: no"
    second.rows = 2
    second.dropped = 4
    here.views.step()
    said = here.status(MIRROR.id)
    assert (said["state"], said["error"], said["rows"], said["dropped"]) == (
        "stopped",
        "E_ROW: no",
        "3",
        "4",
    )
    assert "lag" not in said


def test_redis_that_is_away_ends_nothing(here: Here) -> None:
    here.redis.down = True
    here.views.step()
    assert len(here.pumps) == 1
    here.redis.down = False
    here.views.step()
    assert here.status()["state"] == "starting"


def test_a_view_whose_ends_are_gone_is_left_alone(here: Here) -> None:
    here.catalog.remove(PLAIN.id)
    here.views.step()
    assert here.pumps == []


def test_topics_of_another_kafka_are_read_while_their_tables_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = foreign.Topic("k:9092", "t", "json")
    table = Table(
        60,
        "d",
        "inflow",
        "plain",
        "in.d",
        1,
        "ms",
        PLAIN.versions,
        options={FOREIGN: topic.option()},
    )
    here = Here(tmp_path, monkeypatch, DATABASE, table)
    here.views.step()
    here.views.step()
    (inflow,) = here.inflows
    assert inflow.started
    assert here.status(60)["state"] == "starting"
    here.catalog.remove(60)
    here.views.step()
    assert inflow.stopped and not here.status(60)


def test_stopping_stops_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Here(tmp_path, monkeypatch)
    here.views.step()
    here.views.start()
    here.views.stop()
    assert here.pumps[0].stopped and not here.views.is_alive()


def test_without_views_the_thread_sleeps_until_the_catalog_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "_EVERY", 0.01)
    monkeypatch.setattr(subject, "_REST", 30.0)
    here = Here(tmp_path, monkeypatch, DATABASE, PLAIN, STABLE)
    looks: SimpleQueue[None] = SimpleQueue()
    monkeypatch.setattr(here.views, "step", lambda: looks.put(None))
    here.views.start()
    try:
        looks.get(timeout=5)
        time.sleep(0.2)
        assert looks.empty()
        here.listeners[0]([])
        looks.get(timeout=5)
    finally:
        here.views._halt.set()
        here.listeners[0]([])
        here.views.stop()
    assert not here.views.is_alive()


def test_a_deployment_has_one_id_for_ever(tmp_path: Path) -> None:
    made = deployment_id(tmp_path / "a")
    assert len(made) == 12 and deployment_id(tmp_path / "a") == made
    assert deployment_id(tmp_path / "b") != made

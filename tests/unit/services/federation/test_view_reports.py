from __future__ import annotations

from typing import Any

from prometheus_client.registry import CollectorRegistry

from penstock import names
from services.federation.persistent import Report
from services.federation.view_reports import ViewReports
from tests.unit.services.memory_redis import MemoryRedis

BEHIND = "penstock_federation_behind_seconds"


class Told:
    def __init__(self) -> None:
        self.redis = MemoryRedis()
        self.registry = CollectorRegistry()
        client: Any = self.redis
        self.reports = ViewReports(client, self.registry)

    def status(self, view_id: int) -> dict[str, str] | None:
        return self.redis.hashes.get(names.view_status(view_id))


def test_redis_is_told_only_what_is_new():
    told = Told()
    told.reports.say(1, {"state": "paused"})
    told.redis.hashes.clear()
    told.reports.say(1, {"state": "paused"})
    assert told.status(1) is None
    told.reports.say(1, {"state": "running"})
    assert told.status(1) == {"state": "running"}


def test_a_view_that_was_forgotten_is_told_anew():
    told = Told()
    told.reports.say(1, {"state": "paused"})
    told.reports.forget(1)
    assert told.status(1) is None
    told.reports.say(1, {"state": "paused"})
    assert told.status(1) == {"state": "paused"}


def test_the_metric_loses_a_view_that_has_no_report_or_no_name():
    told = Told()
    names_of = {1: "d.a", 2: "d.b"}
    told.reports.tell({1: [Report()], 2: [Report()], 3: [Report()]}, names_of.get)
    assert told.status(3) is not None
    for name in ("d.a", "d.b"):
        assert told.registry.get_sample_value(BEHIND, {"view": name}) == 0.0
    told.reports.tell({2: [Report()]}, names_of.get)
    assert told.registry.get_sample_value(BEHIND, {"view": "d.a"}) is None
    assert told.registry.get_sample_value(BEHIND, {"view": "d.b"}) == 0.0

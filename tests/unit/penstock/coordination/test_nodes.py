"""The nodes of a mesh as Redis knows them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from penstock import names
from penstock.coordination import redis_link
from penstock.coordination.nodes import (
    OFFLINE_SECONDS,
    Node,
    Presence,
    ServiceReport,
    read,
    services,
)
from penstock.runtime.health import Health
from penstock.runtime.newest_entries import NewestEntries
from tests.unit.penstock.service.kit import AtticSettings
from tests.unit.services.memory_redis import MemoryRedis

NOW = 1_000_000.0
WEEK = 7 * 86_400.0


class Told:
    """What services have told Redis."""

    def __init__(self, services: dict[Any, dict[str, Any]]) -> None:
        self._services = {field: json.dumps(about) for field, about in services.items()}

    def hgetall(self, key: str) -> dict[Any, str]:
        assert key == names.nodes()
        return self._services


def nodes(services: dict[Any, dict[str, Any]]) -> list[Node]:
    return read(Told(services), NOW)  # type: ignore[arg-type]


def about(seen: float = 0.0, started: float = 100.0, host: str = "h") -> dict[str, Any]:
    """Told *seen* seconds ago."""
    return {"host": host, "started": NOW - started, "seen": NOW - seen}


def test_a_node_has_the_services_that_are_online() -> None:
    found = nodes(
        {
            b"2:store": about(seen=1, started=50),
            b"2:gateway": about(seen=3, started=70, host="old"),
            b"2:notifier": about(seen=OFFLINE_SECONDS + 1, started=90),
        }
    )
    assert found == [Node(2, "h", ("gateway", "store"), NOW - 90, NOW - 1, True)]


def test_a_node_whose_services_are_all_silent_is_offline() -> None:
    (found,) = nodes({"1:store": about(seen=OFFLINE_SECONDS)})
    assert (found.online, found.services, found.seen) == (False, (), NOW - OFFLINE_SECONDS)


def test_nodes_come_by_number() -> None:
    found = nodes({f"{n}:store": about() for n in (10, 2, 1)})
    assert [n.id for n in found] == [1, 2, 10]


def test_what_was_not_heard_of_for_a_week_is_forgotten() -> None:
    assert nodes({"1:store": about(seen=WEEK)}) == []
    assert len(nodes({"1:store": about(seen=WEEK - 1)})) == 1
    kept = nodes({"1:store": about(seen=WEEK + 1, started=9_000_000), "1:gateway": about()})
    assert (kept[0].services, kept[0].started) == (("gateway",), NOW - 100)


def test_a_field_that_is_no_node_is_skipped() -> None:
    assert nodes({"x:store": about(), ":store": about(), "": about()}) == []


def test_each_service_says_how_it_is() -> None:
    told: Any = Told(
        {
            "2:store": about(seen=1, started=50),
            "1:store": {**about(seen=OFFLINE_SECONDS), "waiting": {"kafka": "away"}},
            "1:gateway": {**about(), "waiting": {}, "version": "0.9", "memory": 7},
            "1:old": about(seen=WEEK),
        }
    )
    assert services(told, NOW) == [
        ServiceReport("gateway", 1, "h", NOW - 100, NOW, True, {}, "0.9", 7),
        ServiceReport("store", 1, "h", NOW - 100, NOW - OFFLINE_SECONDS, False, {"kafka": "away"}),
        ServiceReport("store", 2, "h", NOW - 50, NOW - 1, True),
    ]


def test_a_service_tells_redis_how_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    redis = MemoryRedis()
    monkeypatch.setattr(redis_link, "connect", lambda *_, **__: redis)
    with Health("attic", wait_for=("catalog",)) as health:
        logged = NewestEntries()
        logged.keep('{"event": "begun"}')
        presence = Presence(AtticSettings(data_dir=tmp_path), health, logged)
        presence.start()
        deadline = time.monotonic() + 20
        while not redis.hgetall(names.nodes()) and time.monotonic() < deadline:
            time.sleep(0.01)
        client: Any = redis
        (report,) = services(client, time.time())
        assert (report.name, report.online) == ("attic", True)
        assert report.waiting == {"catalog": "not started yet"}
        assert report.memory is not None and report.memory > 1 << 20
        logged.keep('{"event": "ends"}')
        presence.close()
    assert services(client, time.time()) == []
    told = [fields["entry"] for fields in redis.streams[names.log(1, "attic")]]
    assert told == ['{"event": "begun"}', '{"event": "ends"}']

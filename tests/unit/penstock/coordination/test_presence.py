"""What nodes of stream tables say of themselves."""

from __future__ import annotations

from typing import Any

from penstock.config.raft import Group, RaftGroups
from penstock.coordination.presence import Presence, Registry
from penstock.runtime.clock import ManualClock
from tests.unit.services.memory_redis import MemoryRedis


def test_what_is_said_is_understood_also_of_a_node_of_an_earlier_version() -> None:
    said = Presence(
        "NODE1", "http://tables-1:7720", "a1", (200, 201), {11: 7}, "http://127.0.0.1:7721"
    )
    assert Presence.from_json(said.to_json()) == said
    earlier = '{"node": "NODE1", "url": "http://h:1", "run": "a1", "tables": [], "leads": {}}'
    assert Presence.from_json(earlier) == Presence("NODE1", "http://h:1", "a1")


def test_the_leader_of_a_group_is_the_one_of_the_newest_epoch() -> None:
    groups = RaftGroups((Group(11, ("N1", "N2", "N3")), Group(12, ("N2", "N3", "N4"))))
    given: Any = MemoryRedis(ManualClock())
    registry = Registry(given, ttl=5)
    registry.beat(Presence("N1", "http://h:1", "a", leads={11: 3}))
    registry.beat(Presence("N2", "http://h:2", "b", leads={11: 4}))

    told = registry.describe(groups, {}, registry.client_urls)

    assert [(g["id"], g["leader"]) for g in told["groups"]] == [(11, "N2"), (12, None)]

from __future__ import annotations

from typing import Any

from penstock.coordination.presence import Presence, Registry
from services.tables.living_nodes import LivingNodes
from services.tables.settings import TablesSettings
from tests.unit.services.memory_redis import MemoryRedis


class Mesh:
    def __init__(self) -> None:
        self.redis: Any = MemoryRedis()
        settings = TablesSettings(alias="N1", advertised_url="http://me")
        self.living = LivingNodes(Registry(self.redis, 10.0), settings, ("N1", "N2", "N3"))

    def meet(self, node: str, run: str) -> None:
        Registry(self.redis, 10.0).beat(Presence(node, f"http://{node}", run))


def test_a_node_says_what_it_keeps_and_leads_until_it_leaves():
    mesh = Mesh()
    mesh.living.beat((7,), {11: 3})
    said = Registry(mesh.redis, 10.0).alive(["N1"])["N1"]
    assert (said.url, said.tables, said.leads) == ("http://me", (7,), {11: 3})
    mesh.living.leave()
    assert mesh.living.find() == set()


def test_a_process_that_is_dead_does_not_count_and_its_successor_does():
    mesh = Mesh()
    mesh.meet("N2", "first")
    mesh.meet("N3", "other")
    assert mesh.living.find() == {"N2", "N3"}
    mesh.living.note_death("N2")
    assert mesh.living.find() == {"N3"}
    mesh.meet("N2", "second")
    assert mesh.living.find() == {"N2", "N3"}


def test_the_death_of_a_node_that_was_never_seen_changes_nothing():
    mesh = Mesh()
    mesh.living.note_death("N2")
    mesh.meet("N2", "first")
    assert mesh.living.find() == {"N2"}

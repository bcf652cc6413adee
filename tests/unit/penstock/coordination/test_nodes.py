"""The nodes of a mesh as Redis knows them."""

from __future__ import annotations

import json
from typing import Any

from penstock import names
from penstock.coordination.nodes import OFFLINE_SECONDS, Node, read

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

"""What nodes of stream tables say of themselves."""

from __future__ import annotations

from penstock.coordination.presence import Presence


def test_what_is_said_is_understood_also_of_a_node_of_an_earlier_version() -> None:
    said = Presence(
        "NODE1", "http://tables-1:7720", "a1", (200, 201), {11: 7}, "http://127.0.0.1:7721"
    )
    assert Presence.from_json(said.to_json()) == said
    earlier = '{"node": "NODE1", "url": "http://h:1", "run": "a1", "tables": [], "leads": {}}'
    assert Presence.from_json(earlier) == Presence("NODE1", "http://h:1", "a1")

"""When a room that died is started again."""

from __future__ import annotations

from penstock.mesh.supervisor import pause


def test_who_dies_young_waits_longer_each_time() -> None:
    pauses = [0.0]
    for _ in range(8):
        pauses.append(pause(pauses[-1], healthy=2.0))
    assert pauses[1:] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


def test_who_was_healthy_for_a_while_is_back_at_once_and_begins_anew() -> None:
    assert pause(30.0, healthy=10.0) == 0.0
    assert pause(pause(30.0, healthy=3600.0), healthy=0.0) == 0.5

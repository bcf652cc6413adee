"""What the embedded broker is told at its start depends on how it ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.mesh import kafka
from penstock.mesh.layout import Layout


def _session_ms(arguments: list[str]) -> int:
    assert arguments[::2] == ["--override"] * (len(arguments) // 2)
    given = dict(argument.split("=") for argument in arguments[1::2])
    assert int(given["broker.heartbeat.interval.ms"]) * 3 < int(given["broker.session.timeout.ms"])
    return int(given["broker.session.timeout.ms"])


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path)
    (made.kafka / "log" / "__cluster_metadata-0").mkdir(parents=True)
    return made


def test_a_new_broker_and_one_that_was_stopped_have_a_long_session(layout: Layout) -> None:
    assert kafka.start_arguments(layout) == []
    (layout.kafka / "log" / "__cluster_metadata-0" / "quorum-state").touch()
    (layout.kafka / "log" / ".kafka_cleanshutdown").touch()
    assert kafka.start_arguments(layout) == []


def test_the_successor_of_a_killed_broker_waits_for_a_short_session_only(layout: Layout) -> None:
    (layout.kafka / "log" / "__cluster_metadata-0" / "quorum-state").touch()
    assert _session_ms(kafka.start_arguments(layout)) <= 2000

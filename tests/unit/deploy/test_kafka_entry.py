"""What the broker's container is started with, by what its volume holds; bash alone runs it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.documents import ROOT

_ENTRY = (ROOT / "deploy/compose/kafka.sh").read_text(encoding="utf-8")
_SESSION = "KAFKA_BROKER_SESSION_TIMEOUT_MS"


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """The volume of a broker that was killed."""
    (tmp_path / "data" / "__cluster_metadata-0").mkdir(parents=True)
    (tmp_path / "data" / "__cluster_metadata-0" / "quorum-state").touch()
    return tmp_path / "data"


def started_with(volume: Path, voters: str = "1@kafka:9093") -> dict[str, str]:
    """The environment in which Kafka's own start script runs."""
    secret = volume.parent / "password"
    secret.write_text("secret", encoding="utf-8")
    assert "exec /etc/kafka/docker/run\n" in _ENTRY
    here = _ENTRY.replace("exec /etc/kafka/docker/run", "exec env").replace("/tmp/", f"{volume}/")
    done = subprocess.run(
        ["bash", "-c", here],
        env={
            "PATH": os.environ["PATH"],
            "PENSTOCK_KAFKA_PASSWORD_FILE": str(secret),
            "KAFKA_LOG_DIRS": str(volume),
            "KAFKA_CONTROLLER_QUORUM_VOTERS": voters,
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert "secret" not in done.stdout.replace(str(secret), "")
    return dict(line.split("=", 1) for line in done.stdout.splitlines())


def test_the_successor_of_a_killed_broker_has_a_short_session(volume: Path) -> None:
    found = started_with(volume)
    assert int(found[_SESSION]) <= 2000
    assert int(found["KAFKA_BROKER_HEARTBEAT_INTERVAL_MS"]) * 3 < int(found[_SESSION])


def test_others_keep_the_long_one(volume: Path) -> None:
    assert _SESSION not in started_with(volume, "1@kafka:9093,2@kafka-2:9093,3@kafka-3:9093")
    (volume / ".kafka_cleanshutdown").touch()
    assert _SESSION not in started_with(volume), "it was stopped"
    (volume / ".kafka_cleanshutdown").unlink()
    (volume / "__cluster_metadata-0" / "quorum-state").unlink()
    assert _SESSION not in started_with(volume), "it is new"

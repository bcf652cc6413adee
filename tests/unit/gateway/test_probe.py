"""What the gateway says of Kafka and Redis, once a second."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
import redis

from gateway.probe import Probe
from penstock.errors import BusError
from penstock.runtime.health import Health


class _Backends:
    """Stands for ledger, admin and publisher; the two faults are raised while they are set."""

    def __init__(self) -> None:
        self.redis_fault: Exception | None = None
        self.kafka_fault: Exception | None = None
        self.down: str | None = "not asked yet"

    def heartbeat(self) -> None:
        if self.redis_fault is not None:
            raise self.redis_fault

    def topics(self) -> dict[str, int]:
        if self.kafka_fault is not None:
            raise self.kafka_fault
        return {}


@pytest.fixture
def health() -> Iterator[Health]:
    with Health("gateway", wait_for=("kafka", "redis")) as made:
        yield made


def waiting(health: Health) -> dict[str, str]:
    return {name: c.why for name, c in health.conditions().items() if not c.ready}


def test_each_is_reported_on_its_own(health: Health) -> None:
    backends = _Backends()
    probe = Probe(*cast(Any, (backends, backends, backends)), health)
    probe.look()
    assert (waiting(health), backends.down) == ({}, None)
    backends.redis_fault = redis.ConnectionError("refused")
    probe.look()
    assert (waiting(health), backends.down) == ({"redis": "refused"}, None)
    backends.redis_fault = None
    backends.kafka_fault = BusError("Kafka does not answer", detail="no broker")
    probe.look()
    assert (waiting(health), backends.down) == ({"kafka": "no broker"}, "no broker")
    backends.kafka_fault = BusError("Kafka does not answer")
    probe.look()
    assert backends.down == "Kafka does not answer"
    backends.kafka_fault = None
    probe.look()
    assert (waiting(health), backends.down) == ({}, None)

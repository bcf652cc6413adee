"""Streams that are held because a target is behind, and let go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock import names
from penstock.catalog.model import StreamEntry
from penstock.errors import BusError
from services.notifier.backpressure import Backpressure
from tests.unit.services.kit import MemoryLog
from tests.unit.services.memory_redis import AsyncRedis, MemoryRedis
from tests.unit.services.notifier.kit import (
    NOTIFY,
    entry,
    streams,
)


def backpressure(log: MemoryLog, client: MemoryRedis, *entries: StreamEntry) -> Backpressure:
    connection: Any = AsyncRedis(client)
    publisher: Any = log
    return Backpressure(streams(*entries), connection, publisher)


async def test_what_a_predecessor_held_is_known() -> None:
    client = MemoryRedis()
    client.hset(names.stream_status(12), names.HELD, "too far behind")
    subject = backpressure(MemoryLog(), client, entry(NOTIFY))
    await subject.recall([entry(NOTIFY), entry(NOTIFY, stream=13)])
    assert subject.held == {12}


async def test_a_stream_that_somebody_paused_is_not_resumed() -> None:
    client = MemoryRedis()
    log = MemoryLog()
    paused = replace(entry(NOTIFY), status="paused")
    subject = backpressure(log, client, paused)
    subject.held.add(12)
    await subject.release(12)
    assert not subject.held and not log.records


async def test_a_stream_that_was_dropped_is_held_by_nobody() -> None:
    subject = backpressure(MemoryLog(), MemoryRedis())
    await subject.hold(12, "behind")
    await subject.release(12)
    assert not subject.held


async def test_holding_is_tried_again_while_kafka_or_redis_is_away() -> None:
    client = MemoryRedis()
    log = MemoryLog()
    subject = backpressure(log, client, entry(NOTIFY))
    client.down = True
    await subject.hold(12, "behind")
    assert not subject.held
    client.down = False
    log.refusal = BusError("Kafka is away")
    await subject.hold(12, "behind")
    assert not subject.held
    log.refusal = None
    await subject.hold(12, "behind")
    assert subject.held == {12}
    log.refusal = BusError("Kafka is away")
    await subject.release(12)
    assert subject.held == {12}

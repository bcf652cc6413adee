"""Barriers in the log of events: when they are reported, and when not."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from penstock import names
from penstock.catalog.model import StreamEntry
from penstock.records import ControlRecord, encode
from services.notifier.barriers import Barriers
from services.notifier.jobs import Jobs
from services.notifier.message import NotifyTarget
from tests.unit.services.memory_redis import AsyncRedis, MemoryRedis
from tests.unit.services.notifier.kit import (
    TARGET,
    event,
    others,
    record,
    streams,
)


def events() -> bytes:
    return encode(record([event()]))


class Settled:
    def __init__(self, offset: int) -> None:
        self.offset = offset

    def has_settled(self, partition: int, offset: int) -> bool:
        return self.offset >= offset


def barriers(deliveries: Any, client: MemoryRedis, *entries: StreamEntry) -> Barriers:
    connection: Any = AsyncRedis(client)
    return Barriers(streams(*entries), connection, deliveries, Jobs())


async def test_a_barrier_without_streams_waits_for_all_targets() -> None:
    client = MemoryRedis()
    slow = Settled(3)
    subject = barriers({TARGET: Settled(9), NotifyTarget("ws://x:1/", "drop"): slow}, client)
    subject.take(2, 5, encode(ControlRecord("barrier", id="b1")))
    await others()
    assert not client.hashes[names.barrier("b1")]
    slow.offset = 5
    subject.check()
    await others()
    assert client.hashes[names.barrier("b1")] == {f"notifier:{names.EVENTS}:2": "5"}


async def test_a_barrier_of_streams_that_nobody_notifies_is_reported_at_once() -> None:
    client = MemoryRedis()
    subject = barriers({TARGET: Settled(0)}, client)
    for number, streams_ in enumerate(([99], [])):
        body = json.dumps({"streams": streams_})
        subject.take(0, 5, encode(ControlRecord("barrier", id=f"b{number}", body=body)))
    await others()
    assert client.hashes[names.barrier("b0")] and client.hashes[names.barrier("b1")]


async def test_other_records_are_no_barriers() -> None:
    client = MemoryRedis()
    subject = barriers({}, client)
    for value in (b"junk", None, events(), encode(ControlRecord("tick"))):
        subject.take(0, 5, value)
    subject.take(0, 5, encode(ControlRecord("barrier", id="b", body="{no json")))
    await others()
    assert not any(client.hashes.values())


async def test_a_barrier_waits_for_redis() -> None:
    client = MemoryRedis()
    client.down = True
    subject = barriers({}, client)
    subject.take(0, 5, encode(ControlRecord("barrier", id="b1")))
    await others()
    client.down = False
    subject.check()
    await others()
    assert client.hashes[names.barrier("b1")]


async def test_jobs_are_kept_until_they_are_done() -> None:
    done: list[int] = []

    async def work() -> None:
        await asyncio.sleep(0)
        done.append(1)

    Jobs().start(work())
    await others()
    assert done == [1]

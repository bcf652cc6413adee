"""Partitions of events that come and go, records on their way to targets, and what follows from
it; without Faust, Kafka or sockets.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.registry import CollectorRegistry

from penstock import names
from penstock.catalog.model import StreamEntry
from penstock.errors import BusError
from penstock.feeds.slices import slice_of
from penstock.records import ControlRecord, decode, encode
from penstock.runtime.clock import ManualClock
from penstock.runtime.health import Condition
from services.notifier import push
from services.notifier.cursor import Mark
from services.notifier.delivery import TargetDelivery
from services.notifier.faust_app import PARTITIONS
from services.notifier.message import NotifyMessage, NotifyTarget
from services.notifier.metrics import PushMetrics
from services.notifier.push import Push
from services.notifier.settings import NotifierSettings
from tests.unit.services.kit import MemoryLog
from tests.unit.services.memory_redis import AsyncRedis, MemoryRedis
from tests.unit.services.notifier.kit import (
    METERS,
    NOTIFY,
    TARGET,
    entry,
    event,
    others,
    record,
    streams,
)


class Cursors(dict[str, Any]):
    """The table of cursors, and what its changelog was sent by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.changelog: list[tuple[int, str, Any]] = []

    async def send_changelog(self, partition: int, key: str, value: Any) -> None:
        self.changelog.append((partition, key, value))


class App:
    """Stands where the Faust app does."""

    def __init__(self, *mine: int) -> None:
        self.mine = mine
        self.assignor = self
        self.crash_reason = "a broker said no"
        self.broken = asyncio.Event()
        self.started = self.stopped = False

    def assigned_actives(self) -> list[Any]:
        return [partition(p) for p in self.mine] + [partition(9, "another topic")]

    async def start(self) -> None:
        self.started = True

    async def wait(self) -> None:
        await self.broken.wait()

    async def stop(self) -> None:
        self.stopped = True


def partition(number: int, topic: str = names.EVENTS) -> Any:
    return SimpleNamespace(topic=topic, partition=number)


class History:
    """What the log has of a partition from an offset on."""

    def __init__(self, log: MemoryLog, partition: int, offset: int) -> None:
        self._log = log
        self._place = (partition, offset)

    async def read(self) -> list[Any]:
        number, offset = self._place
        batch = self._log.batch(names.EVENTS, number, offset)
        self._place = (number, offset + len(batch))
        return [slice_of(batch)] if len(batch) else []

    def close(self) -> None:
        """Nothing is open."""


class Pushing:
    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *entries: StreamEntry, **settings: Any
    ) -> None:
        self.log = MemoryLog()
        self.log.partitions[names.EVENTS] = PARTITIONS
        self.redis = MemoryRedis()
        self.app = App(0)
        self.cursors = Cursors()
        self.on: dict[str, Callable[..., Awaitable[None]]] = {}
        self.conditions: dict[str, Condition] = {}
        monkeypatch.setattr(push, "Admin", lambda *_, **__: self.log)
        monkeypatch.setattr(push, "make_app", self._make_app)
        monkeypatch.setattr(
            push, "FeedHistory", lambda b, c, topic, p, offset: History(self.log, p, offset)
        )
        # a delivery connects only once it is started
        monkeypatch.setattr(TargetDelivery, "start", lambda one: None)
        self.reader = streams(*(entries or (entry(NOTIFY),)))
        self.settings = NotifierSettings(instance="n1", **settings)
        health: Any = SimpleNamespace(ready=self._ready, conditions=lambda: self.conditions)
        client: Any = AsyncRedis(self.redis)
        publisher: Any = self.log
        registry = CollectorRegistry()
        self.push = Push(
            self.settings,
            self.reader,
            health,
            PushMetrics(registry),
            ManualClock(),
            client,
            publisher,
        )

    def _make_app(self, settings: Any, **on: Any) -> tuple[App, Cursors]:
        self.on = on
        return self.app, self.cursors

    def _ready(self, name: str, ready: bool = True, why: str = "") -> None:
        self.conditions[name] = Condition(ready, why)

    async def begin(self) -> None:
        await self.on["on_recovered"]()

    async def read(self, value: bytes | None, number: int = 0) -> None:
        """A record comes into the log, and the live reader hands it over."""
        offset = self.log.append(names.EVENTS, value, None, number)
        await self.on["on_event"](number, offset, value)

    def delivery(self, target: NotifyTarget = TARGET) -> TargetDelivery:
        return self.push._deliveries[target]

    def waiting(self) -> list[NotifyMessage]:
        return [m for c in self.delivery().cursors.values() for m in c.waiting(99, 1 << 30)]

    def controls(self) -> list[tuple[int, str]]:
        """Control records that streams were sent, by partition."""
        found = []
        for number in range(METERS.partitions):
            for value in self.log.values("in.db", number):
                found.append((number, decode(ControlRecord, value).kind))
        return found


@pytest.fixture
async def pushing(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pushing]:
    made = Pushing(monkeypatch)
    await made.begin()
    yield made


def events(**more: Any) -> bytes:
    return encode(record([event()], **more))


async def test_a_record_becomes_a_message_for_its_targets(pushing: Pushing) -> None:
    assert pushing.conditions["push"].ready
    await pushing.read(events())
    (message,) = pushing.waiting()
    assert (message.partition, message.offset, message.stream) == (0, 0, 12)
    assert message.targets == (TARGET,)
    key = TARGET.key(0)
    assert pushing.cursors.changelog == [(0, key, Mark(0).to_json())]
    assert pushing.cursors[key] == Mark(0).to_json()
    await pushing.read(events(offset=5))
    assert len(pushing.waiting()) == 2 and len(pushing.cursors.changelog) == 1


@pytest.mark.parametrize(
    "value", [b"junk", None, encode(record([event()], stream=99)), b"\0\0\0\0\4\xff"]
)
async def test_records_that_nobody_is_told_of(pushing: Pushing, value: bytes | None) -> None:
    await pushing.read(value)
    assert not pushing.push._deliveries
    await pushing.read(events())
    assert len(pushing.waiting()) == 1


async def test_another_notifiers_partitions_are_left_alone(pushing: Pushing) -> None:
    await pushing.read(events(), 1)
    assert not pushing.push._deliveries
    await pushing.read(events())
    await pushing.on["on_revoked"](None, [partition(0), partition(0, "other")])
    assert pushing.delivery().cursors == {}
    await pushing.read(events(offset=6))
    assert pushing.waiting() == []


async def test_targets_go_on_where_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    pushing = Pushing(monkeypatch)
    for offset in range(4):
        pushing.log.append(names.EVENTS, events(offset=offset))
    gone = NotifyTarget("ws://gone:1/a", "drop")
    elsewhere = TARGET.key(3)
    pushing.cursors |= {
        TARGET.key(0): Mark(2).to_json(),
        gone.key(0): Mark(1).to_json(),
        elsewhere: Mark(1).to_json(),
        "0|place|": {"o": 3},
    }
    await pushing.begin()
    cursor = pushing.delivery().cursors[0]
    assert (cursor.mark.offset, cursor.behind) == (2, 2), "it is behind: the log has more"
    assert gone.key(0) not in pushing.cursors, "no stream names it any more"
    assert elsewhere in pushing.cursors, "another notifier delivers it"
    assert pushing.push._intake.positions() == {0: 3}


async def test_what_the_live_reader_leaves_out_is_read_from_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pushing = Pushing(monkeypatch)
    for offset in range(3):
        pushing.log.append(names.EVENTS, events(offset=offset))
    await pushing.begin()
    await pushing.push._intake.look()
    assert [m.offset for m in pushing.waiting()] == [0, 1, 2]


# -------------------------------------------------------------------- barriers


async def test_a_barrier_is_reported_when_its_targets_have_all_before_it(pushing: Pushing) -> None:
    await pushing.read(events())
    body = json.dumps({"streams": [12]})
    await pushing.read(encode(ControlRecord("barrier", id="b1", body=body)))
    key = names.barrier("b1")
    assert not pushing.redis.hashes[key]
    pushing.delivery()._settle(pushing.waiting(), delivered=True)
    pushing.push._on_settled(TARGET)
    await others()
    assert pushing.redis.hashes[key] == {f"notifier:{names.EVENTS}:0": "1"}


# -------------------------------------------------------------------- streams that are held


async def test_a_stream_whose_target_is_too_far_behind_is_held_and_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pushing = Pushing(monkeypatch, pause_bytes=4096)
    await pushing.begin()
    await pushing.read(encode(record([event(x="y" * 3000)])))
    assert pushing.controls() == []
    await pushing.read(encode(record([event(x="y" * 3000)], offset=5)))
    assert pushing.controls() == [(0, "pause"), (1, "pause")]
    status = pushing.redis.hashes[names.stream_status(12)]
    assert "behind" in status[names.HELD]
    await pushing.read(encode(record([event(x="y" * 3000)], offset=6)))
    assert len(pushing.controls()) == 2, "it is held already"
    delivery = pushing.delivery()
    delivery._settle(pushing.waiting()[:1], delivered=True)
    pushing.push._on_settled(TARGET)
    await others()
    assert len(pushing.controls()) == 2, "half of it has to be delivered"
    delivery._settle(pushing.waiting(), delivered=True)
    pushing.push._on_settled(TARGET)
    await others()
    assert pushing.controls() == [(0, "pause"), (0, "resume"), (1, "pause"), (1, "resume")]
    assert names.HELD not in status


async def test_a_target_that_drops_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    dropping = entry(NOTIFY.replace("PAUSE", "DROP"))
    pushing = Pushing(monkeypatch, dropping, pause_bytes=4096)
    await pushing.begin()
    await pushing.read(encode(record([event(x="y" * 9000)])))
    assert pushing.controls() == []


# -------------------------------------------------------------------- a life


async def test_it_ends_when_the_faust_app_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    pushing = Pushing(monkeypatch)
    running = asyncio.create_task(pushing.push.run())
    while not pushing.app.started:
        await asyncio.sleep(0)
    pushing.app.broken.set()
    with pytest.raises(BusError) as broke:
        await running
    assert broke.value.detail == "a broker said no"
    assert pushing.app.stopped
    assert not pushing.conditions["push"].ready
    assert pushing.log.partitions[names.NOTIFIER_CURSORS] == PARTITIONS


async def test_it_does_not_begin_without_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    pushing = Pushing(monkeypatch)
    pushing.log.refusal = BusError("Kafka is away")
    with pytest.raises(BusError):
        await pushing.push.run()
    assert not pushing.app.started


async def test_places_are_kept_and_targets_that_nobody_names_are_forgotten(
    pushing: Pushing,
) -> None:
    await pushing.read(events())
    pushing.push._keep_places()
    assert pushing.cursors["0|place|"] == {"o": 1}
    pushing.reader.catalog.remove(12)
    await pushing.push._tidy()
    assert not pushing.push._deliveries
    assert TARGET.key(0) not in pushing.cursors


async def test_idle_targets_follow_the_log(pushing: Pushing) -> None:
    await pushing.read(events())
    pushing.delivery()._settle(pushing.waiting(), delivered=True)
    for _ in range(5):
        await pushing.read(b"of somebody else")
    await pushing.push._tidy()
    assert pushing.cursors[TARGET.key(0)]["o"] == 6

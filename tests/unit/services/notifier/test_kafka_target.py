"""NOTIFY into a topic, at a broker that librdkafka plays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from penstock.bus import Delivery, Publisher
from penstock.errors import BusError
from services.notifier import kafka_target
from tests.unit.services.notifier.web_kit import delivering

TOPIC = "Alerts"
PARTITIONS = 4


@pytest.fixture
def broker() -> Iterator[str]:
    """The address of a broker with a topic of four partitions, each with one record."""
    played = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    for partition in range(PARTITIONS):
        played.produce(TOPIC, b"first", partition=partition)
    played.flush(10)
    (found,) = played.list_topics(timeout=10).brokers.values()
    yield f"{found.host}:{found.port}"
    # the broker is played as long as the producer is there
    del played


def records(broker: str) -> list[Message]:
    """All records behind those that made the topic."""
    reader = Consumer({"bootstrap.servers": broker, "group.id": "test", "log_level": 0})
    places = [TopicPartition(TOPIC, p, 1) for p in range(PARTITIONS)]
    found: list[Message] = []
    try:
        wanted = sum(reader.get_watermark_offsets(place, timeout=10)[1] - 1 for place in places)
        reader.assign(places)
        while len(found) < wanted and (some := reader.consume(wanted - len(found), 30)):
            found += some
    finally:
        reader.close()
    assert all(one.error() is None for one in found)
    return found


def body(record: Message) -> dict[str, Any]:
    value = record.value()
    assert isinstance(value, bytes)
    made: dict[str, Any] = json.loads(value)
    return made


async def test_an_event_is_a_record_as_the_kafka_binding_has_it(broker: str) -> None:
    listed = (f"kafka://{TOPIC}",)
    async with delivering(f"kafka://{TOPIC}", allow=listed, kafka_bootstrap=broker) as to:
        to.offer(7)
        await to.delivered()
    (record,) = records(broker)
    event = body(record)
    assert record.key() == b"53"
    assert event["data"]["windowStart"] == 7
    assert dict(record.headers() or []) == {
        "content-type": b"application/cloudevents+json; charset=utf-8",
        "ce_specversion": b"1.0",
        "ce_id": event["id"].encode(),
        "ce_source": b"/streams/db.s",
        "ce_type": b"penstock.window.close",
        "ce_subject": b"d1",
        "ce_time": b"2024-12-04T04:01:27.197Z",
        "ce_partitionkey": b"53",
    }


class _Failing(Publisher):
    """Loses one record in seven, as often as it may."""

    count = 0
    failures = 2

    def publish(self, *given: Any, **named: Any) -> Future[Delivery]:
        kind = type(self)
        kind.count += 1
        if kind.count % 7 or not kind.failures:
            return super().publish(*given, **named)
        kind.failures -= 1
        failed: Future[Delivery] = Future()
        failed.set_exception(BusError("the record was not written", detail="_MSG_TIMED_OUT"))
        return failed


@pytest.mark.parametrize("groups", [1, 7])
async def test_what_is_not_confirmed_comes_again_with_its_id_and_in_order(
    broker: str, monkeypatch: pytest.MonkeyPatch, groups: int
) -> None:
    """Whoever drops repeats has each group's events in order."""
    monkeypatch.setattr(kafka_target, "Publisher", _Failing)
    monkeypatch.setattr(_Failing, "failures", 2)
    async with delivering(f"kafka://{TOPIC}", allow=("kafka://A*",), kafka_bootstrap=broker) as to:
        to.offer(*range(0, 30, 3), events=3, groups=groups)
        await to.delivered(60)
    assert not _Failing.failures
    found = [body(record) for record in records(broker)]
    starts = {event["id"]: event["data"]["windowStart"] for event in found}
    assert sorted(starts.values()) == list(range(30))
    for group in range(groups):
        mine = [start for start in starts.values() if start % groups == group]
        assert mine == sorted(mine)


@pytest.mark.parametrize(
    ("topic", "allow"),
    [
        (TOPIC, ()),
        (TOPIC, ("alerts", "*", "kafka://alerts", "kafka://Alert")),
        ("penstock.events", ("kafka://*",)),
        ("in.power", ("kafka://*",)),
    ],
)
async def test_a_topic_that_may_not_be_written_is_not(
    broker: str, topic: str, allow: tuple[str, ...]
) -> None:
    async with delivering(f"kafka://{topic}", "drop", allow=allow, kafka_bootstrap=broker) as to:
        to.offer(7)
        await to.delivered()
        assert to.one.down == f"kafka://{topic} may not be notified"
    made = Producer({"bootstrap.servers": broker, "log_level": 0}).list_topics(timeout=10)
    assert set(made.topics) == {TOPIC}


async def test_a_broker_that_is_away_is_a_target_that_is_down() -> None:
    async with delivering(
        f"kafka://{TOPIC}",
        "drop",
        allow=("kafka://*",),
        kafka_bootstrap="127.0.0.1:1",
        connect_seconds=0.5,
    ) as to:
        to.offer(7)
        await to.delivered(60)
        assert to.one.down.startswith("the topic cannot be had: ")

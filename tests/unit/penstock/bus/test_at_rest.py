"""What readers and publishers do while nothing happens, at a broker that librdkafka plays."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import pytest
from confluent_kafka import Producer

from penstock.bus import Publisher, Reader

_TOPIC = "t"


@pytest.fixture
def broker() -> Iterator[str]:
    """The address of a broker with a topic of four partitions, each with one record."""
    played = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    for partition in range(4):
        played.produce(_TOPIC, b"first", partition=partition)
    played.flush(10)
    (found,) = played.list_topics(timeout=10).brokers.values()
    yield f"{found.host}:{found.port}"
    # the broker is played as long as the producer is there
    del played


def test_a_reader_at_rest_asks_once_a_second_for_all_its_partitions(
    broker: str, caplog: pytest.LogCaptureFixture
) -> None:
    ends = {(_TOPIC, partition): 1 for partition in range(4)}
    with (
        caplog.at_level(logging.DEBUG, "penstock.kafka"),
        Reader(broker, ends, client_id="rest", options={"debug": "fetch"}) as reader,
    ):
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            assert reader.read(timeout=0.5) == []
    asked = re.findall(r"Fetch (\d+)/\d+/\d+ toppar", caplog.text)
    assert 1 <= len(asked) <= 3, "two in one and a half seconds, and one at the edge"
    assert set(asked) == {"4"}, "a partition that is left out would have to wait for the others"


class _Counted(Publisher):
    """Counts how often its thread looks for deliveries."""

    looks = 0

    def _serve(self, call: Callable[[float], int], seconds: float) -> int:
        self.looks += 1
        return super()._serve(call, seconds)


@pytest.fixture
def publisher(broker: str) -> Iterator[_Counted]:
    with _Counted(broker, client_id="rest") as made:
        yield made


def test_a_publisher_looks_for_nothing_while_nothing_is_under_way(publisher: _Counted) -> None:
    time.sleep(0.5)
    assert publisher.looks == 0
    publisher.publish(_TOPIC, b"x", partition=0).result(timeout=5)
    time.sleep(0.2)
    after = publisher.looks
    time.sleep(0.5)
    assert publisher.looks == after


def test_a_delivery_is_told_though_the_publisher_rested(publisher: _Counted) -> None:
    told: SimpleQueue[Any] = SimpleQueue()
    for number in range(3):
        time.sleep(0.05)
        publisher.send(_TOPIC, b"x", partition=number, on_delivery=told.put)
        assert told.get(timeout=3).partition == number


def test_a_publisher_at_rest_closes_at_once(publisher: _Counted) -> None:
    time.sleep(0.2)
    begun = time.monotonic()
    publisher.close()
    assert time.monotonic() - begun < 1

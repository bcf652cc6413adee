"""Logs are read from where the copies end, and what is known already is passed over."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from penstock.bus import Batch
from services.tables.log_follower import LogFollower, LogRead
from services.tables.replica import Replica
from tests.unit.services.tables.kit import Log, Node, stream_table


class Kafka:
    """One log, as a reader and an admin see it."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.places: dict[tuple[str, int], int] = {}
        self.first = 0
        self.sought: list[int] = []
        #: ends the wait for records
        self.arrived = threading.Event()

    def __enter__(self) -> Kafka:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def topics(self) -> dict[str, int]:
        return {self.log.topic: 1}

    def start_offsets(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        return dict.fromkeys(places, self.first)

    def end_offsets(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        return dict.fromkeys(places, len(self.log.values))

    def add(self, starts: dict[tuple[str, int], int]) -> None:
        self.places |= starts

    def remove(self, places: Iterable[tuple[str, int]]) -> None:
        for place in places:
            del self.places[place]

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self.places[topic, partition] = offset
        self.sought.append(offset)

    def read(self, most: int, seconds: float) -> list[Batch]:
        found = []
        for place, start in self.places.items():
            stop = len(self.log.values)
            if start < stop:
                found.append(self.log.batch(start, stop))
                self.places[place] = stop
        if not found:
            self.arrived.wait(seconds)
        return found


class Here:
    def __init__(self, directory: Path, loop: asyncio.AbstractEventLoop) -> None:
        table = stream_table()
        self.log = Log(table.topic)
        self.replica: Replica = Node("N1", table, self.log, directory, loop).replica
        self.kafka = Kafka(self.log)
        #: replicas that had to have room
        self.waited: list[Replica] = []
        kafka = cast(Any, self.kafka)
        self.follower = LogFollower(kafka, kafka, self.waited.append)

    @property
    def topic(self) -> str:
        return self.log.topic


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    loop = asyncio.new_event_loop()
    yield Here(tmp_path, loop)
    loop.close()


def test_a_log_is_read_to_its_end(here: Here) -> None:
    for value in (b"a", b"bc"):
        here.log.add(value)
    here.follower.begin(here.replica)
    assert here.follower.reads(here.topic) and not here.follower.caught_up
    assert here.follower.read() == LogRead(3, known=False)
    assert here.follower.caught_up and here.replica.copy.offset == 2
    assert here.waited == [here.replica]
    assert here.follower.read() is None


def test_a_copy_that_lacks_records_no_longer_there_begins_at_the_first(here: Here) -> None:
    for value in (b"a", b"b", b"c"):
        here.log.add(value)
    here.kafka.first = 2
    here.follower.begin(here.replica)
    assert here.kafka.places == {(here.topic, 0): 2}


def test_what_this_node_took_as_it_sent_it_is_not_applied_again(here: Here) -> None:
    here.follower.begin(here.replica)
    here.log.add(b"abc")
    here.replica.copy.advance(1)
    assert here.follower.read() == LogRead(3, known=True)
    assert here.waited == []


def test_what_this_node_took_ahead_of_the_reader_is_not_fetched(here: Here) -> None:
    here.log.add(b"a")
    here.follower.begin(here.replica)
    here.follower.read()
    here.replica.copy.advance(3)
    here.follower.read()
    assert here.kafka.sought == [3]


def test_a_log_that_is_left_is_not_read(here: Here) -> None:
    here.follower.begin(here.replica)
    here.follower.leave(here.topic)
    here.follower.leave(here.topic)  # one that is not read
    here.log.add(b"a")
    assert here.follower.read() is None
    assert not here.follower.reads(here.topic) and here.replica.copy.offset == 0

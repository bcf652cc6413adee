"""Logs of services on their way over Redis: what is sent when, and what is read."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis

from penstock import names
from penstock.coordination import service_logs
from penstock.coordination.service_logs import KEPT, LogSender
from penstock.runtime.newest_entries import NewestEntries
from tests.unit.penstock.service.kit import AtticSettings
from tests.unit.services.memory_redis import MemoryRedis

NOW = datetime.now(UTC)


class Attic:
    """A service called attic on a node, and what it logs."""

    def __init__(self, client: MemoryRedis, directory: Path, node: int = 1, most: int = 50) -> None:
        self._redis = client
        self.logged = NewestEntries(most)
        self._sender = LogSender(AtticSettings(data_dir=directory, node=node), self.logged)

    def log(self, second: int, event: str) -> None:
        time = (NOW + timedelta(seconds=second)).isoformat()
        self.logged.keep(json.dumps({"timestamp": time, "level": "info", "event": event}))

    def beat(self) -> None:
        with self._redis.pipeline(transaction=False) as pipe:
            self._sender.send(pipe)  # type: ignore[arg-type]


@pytest.fixture
def client() -> MemoryRedis:
    return MemoryRedis()


def read(client: Any, most: int | None = None) -> list[tuple[int, str, int]]:
    logs = service_logs.senders(client, NOW.timestamp())
    found = service_logs.read(client, logs, most)
    return [(sent.node, sent.entry.text, sent.left_out) for sent in found]


def test_entries_of_all_nodes_come_by_time_the_newest_first(
    client: MemoryRedis, tmp_path: Path
) -> None:
    one, two = Attic(client, tmp_path), Attic(client, tmp_path, node=2)
    one.log(1, "a")
    one.log(3, "c")
    two.log(2, "b")
    one.beat()
    two.beat()
    assert read(client) == [(1, "c", 0), (2, "b", 0), (1, "a", 0)]
    assert read(client, 1) == [(1, "c", 0), (2, "b", 0)]
    assert service_logs.senders(client, NOW.timestamp()) == [(1, "attic"), (2, "attic")]  # type: ignore[arg-type]


def test_nothing_new_sends_nothing(client: MemoryRedis, tmp_path: Path) -> None:
    attic = Attic(client, tmp_path)
    attic.beat()
    assert (client.streams, client.sorted_sets) == ({}, {})
    attic.log(1, "a")
    attic.beat()
    attic.beat()
    assert len(client.streams[names.log(1, "attic")]) == 1


def test_what_redis_did_not_take_comes_later(client: MemoryRedis, tmp_path: Path) -> None:
    attic = Attic(client, tmp_path, most=2)
    for second in range(5):
        attic.log(second, str(second))
    away = client.pipeline()
    client.down = True
    for _ in range(3):
        with pytest.raises(redis.RedisError):
            attic._sender.send(away)  # type: ignore[arg-type]
    attic.log(5, "5")
    client.down = False
    attic.beat()
    attic.beat()
    assert read(client) == [(1, "5", 0), (1, "4", 0), (1, "3", 3)]


def test_what_came_twice_is_read_once(client: MemoryRedis, tmp_path: Path) -> None:
    attic = Attic(client, tmp_path)
    attic.log(1, "a")
    attic.beat()
    stream = client.streams[names.log(1, "attic")]
    stream.append(stream[0])
    assert read(client) == [(1, "a", 0)]


def test_a_log_is_capped(client: MemoryRedis, tmp_path: Path) -> None:
    attic = Attic(client, tmp_path)
    for second in range(KEPT + 100):
        attic.log(second, str(second))
        attic.beat()
    found = read(client)
    assert (len(found), found[0][1]) == (KEPT, str(KEPT + 99))


def test_what_is_no_entry_is_left_out(client: MemoryRedis) -> None:
    client.zadd(names.logs(), {"1:attic": NOW.timestamp(), "x:y": NOW.timestamp(), "2:old": 0.0})
    client.xadd(names.log(1, "attic"), {"entry": "{"}, maxlen=KEPT)
    client.xadd(names.log(1, "attic"), {}, maxlen=KEPT)
    assert read(client) == []
    assert service_logs.senders(client, NOW.timestamp()) == [(1, "attic")]  # type: ignore[arg-type]

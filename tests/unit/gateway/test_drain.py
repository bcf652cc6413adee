"""Barriers through everything that was written, and who is waited for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.drain import Drain
from gateway.leader_duties import LeaderDuties
from gateway.repartition.coordinator import RepartitionCoordinator
from penstock import names
from penstock.catalog.model import Database, Move
from penstock.errors import BusError, PenstockError
from penstock.records import ControlRecord, decode
from penstock.repartition import progress
from tests.unit.gateway.kit import MemoryGateway


class Readers:
    """Services that report every barrier, and all of an end, as soon as it is sent."""

    def __init__(self, gateway: MemoryGateway, *readers: str) -> None:
        self.gateway = gateway
        self.readers = readers
        self.rounds: list[str] = []
        self._publish = gateway.log.publish
        gateway.log.publish = self.publish

    def publish(self, topic: str, value: bytes, *, partition: int = -1, **more: Any) -> Any:
        sent = self._publish(topic, value, partition=partition, **more)
        control = decode(ControlRecord, value)
        for reader in self.readers:
            if control.kind == "barrier":
                self.gateway.redis.hset(
                    names.barrier(control.id), f"{reader}:{topic}:{partition}", "1"
                )
            if control.kind == "end":
                offset = sent.result().offset
                self.gateway.redis.hset(control.id, f"{reader}:{partition}", offset)
        if control.kind == "barrier" and partition == 0:
            self.rounds.append(topic)
        return sent


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[MemoryGateway]:
    made = MemoryGateway(tmp_path)
    made.define("CREATE DATABASE d PARTITIONS 2; CREATE DATABASE e PARTITIONS 2")
    yield made
    made.close()


def drain_of(gateway: MemoryGateway) -> Drain:
    return gateway.parts.drain


def test_a_chain_of_streams_takes_a_round_for_each_and_one_for_the_store(
    gateway: MemoryGateway,
) -> None:
    readers = Readers(gateway, "store")
    drain_of(gateway).through({"in.d": 2}, 3)
    assert readers.rounds == ["in.d"] * 4
    assert gateway.kinds("in.d").count((1, "barrier")) == 4


def test_who_does_not_report_is_named(gateway: MemoryGateway) -> None:
    with pytest.raises(BusError) as late:
        drain_of(gateway).through({"in.d": 2}, 0)
    assert late.value.code == "E_NOT_LIVE"
    assert "missing store:in.d:0, store:in.d:1" in late.value.detail


def test_stream_jobs_are_waited_for_where_they_run(tmp_path: Path) -> None:
    gateway = MemoryGateway(tmp_path, wait_for_jobs=True)
    for topic in ("in.d",):
        gateway.redis.set(names.query_heartbeat(topic), "{}")
    gateway.define("CREATE DATABASE d PARTITIONS 1; CREATE TABLE p (ts TIMESTAMP, a INT)")
    Readers(gateway, "store")
    with pytest.raises(BusError) as late:
        drain_of(gateway).through({"in.d": 1}, 0)
    assert "scan:in.d:0" in late.value.detail or f"exchange:{names.EXCHANGE}" in late.value.detail
    gateway.close()


# -------------------------------------------------------------------- more partitions


@pytest.fixture
def moving(gateway: MemoryGateway, monkeypatch: pytest.MonkeyPatch) -> MemoryGateway:
    padded: list[Any] = []

    def pad(bootstrap: str, admin: Any, topic: str, ends: Any) -> None:
        padded.append((topic, dict(ends)))
        for partition, end in ends.items():
            while len(gateway.log.records[topic, partition]) < end:
                gateway.log.append(topic, b"", None, partition)

    monkeypatch.setattr("gateway.repartition.coordinator.pad", pad)
    return gateway


def database(gateway: MemoryGateway) -> Database:
    found = gateway.catalog.database("d")
    assert found is not None
    return found


def test_a_database_moves_when_all_have_done_their_part(moving: MemoryGateway) -> None:
    moving.define("CREATE TABLE p (ts TIMESTAMP, a INT)")
    Readers(moving, "store")
    for _ in range(3):
        moving.log.append("in.d", b"row", None, 1)
    key = progress.key(database(moving))
    moving.redis.hset(key, "store", "moved")
    moving.define("ALTER DATABASE d PARTITIONS 4")
    moved = database(moving)
    assert (moved.partitions, moved.move, moved.generation) == (4, None, 2)
    table = moving.catalog.table("d", "p")
    assert table is not None and (table.topic, table.partitions) == (moved.topic, 4)
    kinds = [k for p, k in moving.kinds("in.d") if p == 0]
    assert kinds[0] == "close" and kinds[-1] == "end"
    first = [decode(ControlRecord, moving.log.values(moved.topic, q)[-1]).kind for q in range(4)]
    assert first == ["begin"] * 4
    ended = moved.former[0]
    assert moving.log.starts[moved.topic, 3] == ended[1] + 1, "offsets go on where they were"


def test_a_move_waits_for_the_store_and_for_writers(moving: MemoryGateway) -> None:
    coordinator: RepartitionCoordinator = moving.parts.repartition
    with pytest.raises(BusError) as late:
        moving.define("ALTER DATABASE d PARTITIONS 4")
    assert "the store has not split" in late.value.message
    assert coordinator.under_way
    key = progress.key(database(moving))
    moving.redis.hset(key, "store", "split")
    moving.redis.set(names.gateway_heartbeat("g2"), "1")
    with pytest.raises(BusError) as late:
        coordinator.finish()
    assert "not every writer has stopped" in late.value.message
    move = database(moving).move
    assert move == Move(4, True)
    moving.redis.hset(key, "writer:g2", "1")
    Readers(moving, "store")
    with pytest.raises(BusError) as late:
        coordinator.finish()
    assert "the store has not moved" in late.value.message
    moving.redis.hset(key, "store", "moved")
    coordinator.finish()
    assert not coordinator.under_way and database(moving).partitions == 4


def test_a_stream_that_fills_its_history_holds_a_move_up(moving: MemoryGateway) -> None:
    moving.define(
        "CREATE STABLE met (ts TIMESTAMP, a INT) TAGS (t INT); CREATE STREAM s INTO r AS SELECT"
        " _wstart, sum(a) AS n FROM met PARTITION BY tbname INTERVAL(1s)"
    )
    stream = moving.catalog.stream("d", "s")
    assert stream is not None
    moving.redis.hset(names.stream_status(stream.id), f"{names.FILLING}in.d:0", "40")
    with pytest.raises(PenstockError) as busy:
        moving.define("ALTER DATABASE d PARTITIONS 4")
    assert busy.value.code == "E_CANNOT_MOVE"
    assert database(moving).move is None


def test_topics_of_earlier_generations_go_once_they_are_empty(moving: MemoryGateway) -> None:
    Readers(moving, "store")
    moving.redis.hset(progress.key(database(moving)), "store", "moved")
    moving.define("ALTER DATABASE d PARTITIONS 4")
    coordinator: RepartitionCoordinator = moving.parts.repartition
    assert coordinator.has_former_topics
    coordinator.clear()
    assert "in.d" in moving.log.partitions, "there are records in it"
    for partition in range(2):
        moving.log.starts["in.d", partition] = len(moving.log.records["in.d", partition])
    coordinator.clear()
    assert "in.d" not in moving.log.partitions
    assert not coordinator.has_former_topics


def test_the_leader_looks_after_moves_topics_and_rights(moving: MemoryGateway) -> None:
    duties = LeaderDuties(lambda: True, moving.definer, moving.parts.repartition, None)
    loops = duties.loops()
    assert set(loops) == {"moves", "topics"}
    for loop in loops.values():
        loop.close()
    rights: Any = object()
    with_rights = LeaderDuties(lambda: True, moving.definer, moving.parts.repartition, rights)
    loops = with_rights.loops()
    assert {"root in Kafka", "rights in Kafka"} < set(loops)
    for loop in loops.values():
        loop.close()

"""What the services take for granted of Kafka, checked on a real broker."""

from __future__ import annotations

import uuid

import pytest

from penstock import names
from penstock.bus import BEGINNING, Admin, Publisher, Reader
from penstock.errors import BusError
from penstock.rows.partition import partition


@pytest.fixture
def topic(kafka: str) -> str:
    name = names.ingest_topic(f"t{uuid.uuid4().hex[:8]}")
    Admin(kafka).ensure_topics({name: 4}, replication=1)
    return name


def read_all(
    kafka: str, topic: str, partitions: int, count: int, *, committed: bool = False
) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    with Reader(
        kafka,
        {(topic, p): BEGINNING for p in range(partitions)},
        client_id="contract",
        committed=committed,
        ends=True,
    ) as reader:
        while len(found) < count or len(reader.at_end) < partitions:
            for batch in reader.read(timeout=10):
                found += [(batch.partition, value or b"") for value in batch.values]
    return found


def test_partitioner_is_ours(kafka: str, topic: str) -> None:
    tables = [f"table {i} ü" for i in range(200)]
    with Publisher(kafka, client_id="contract") as publisher:
        futures = [publisher.publish(topic, name.encode(), key=name.encode()) for name in tables]
        placed = {
            name: future.result(30).partition for name, future in zip(tables, futures, strict=True)
        }
    assert placed == {name: partition(name, 4) for name in tables}
    assert sorted((p, n.encode()) for n, p in placed.items()) == sorted(
        read_all(kafka, topic, 4, 200)
    )


def test_offsets_of_an_ingest_topic_have_no_gaps(kafka: str, topic: str) -> None:
    with Publisher(kafka, client_id="contract") as publisher:
        offsets = [publisher.publish(topic, b"x", partition=0).result(30).offset for _ in range(50)]
    assert offsets == list(range(50))
    assert Admin(kafka).end_offsets([(topic, 0)]) == {(topic, 0): 50}


def test_large_records_pass(kafka: str, topic: str) -> None:
    with Publisher(kafka, client_id="contract", compression="none") as publisher:
        value = bytes(7 << 20)
        publisher.publish(topic, value, partition=1).result(30)
    assert read_all(kafka, topic, 4, 1) == [(1, value)]


def test_append_time_is_the_brokers(kafka: str, topic: str) -> None:
    with Publisher(kafka, client_id="contract") as publisher:
        first = publisher.publish(topic, b"a", partition=2).result(30)
        second = publisher.publish(topic, b"b", partition=2).result(30)
    assert 0 < first.timestamp <= second.timestamp
    assert Admin(kafka).offsets_at([(topic, 2)], first.timestamp) == {(topic, 2): 0}


def test_deleted_records_are_gone_and_say_so(kafka: str, topic: str) -> None:
    admin = Admin(kafka)
    with Publisher(kafka, client_id="contract") as publisher:
        for _ in range(10):
            publisher.send(topic, b"x", partition=3)
        publisher.flush()
    admin.delete_records({(topic, 3): 6})
    assert admin.start_offsets([(topic, 3)]) == {(topic, 3): 6}
    with (
        Reader(kafka, {(topic, 3): 2}, client_id="contract") as reader,
        pytest.raises(BusError) as gone,
    ):
        while not reader.read(timeout=10):
            pass
    assert gone.value.code == "E_OFFSET_GONE"


def test_transactions_are_all_or_nothing_and_fence_the_older_producer(kafka: str) -> None:
    topic = f"contract-{uuid.uuid4().hex[:8]}"
    identity = f"contract-{uuid.uuid4().hex}"
    Admin(kafka).ensure_topics({topic: 1}, replication=1)
    with Publisher(kafka, client_id="old", transactional_id=identity) as old:
        old.fence()
        with old.transaction():
            old.send(topic, b"kept")
        with pytest.raises(RuntimeError), old.transaction():
            old.send(topic, b"undone")
            old.flush()
            raise RuntimeError("in the middle")
        with Publisher(kafka, client_id="new", transactional_id=identity) as new:
            new.fence()
            with new.transaction():
                new.send(topic, b"newer")
            with pytest.raises(BusError) as fenced, old.transaction():
                old.send(topic, b"zombie")
            assert fenced.value.code == "E_FENCED"
    assert read_all(kafka, topic, 1, 2, committed=True) == [(0, b"kept"), (0, b"newer")]


def test_unknown_topics_are_not_made_by_asking(kafka: str) -> None:
    with Publisher(kafka, client_id="contract", timeout=5) as publisher, pytest.raises(BusError):
        publisher.publish("no-such-topic", b"x", partition=0).result(30)
    assert "no-such-topic" not in Admin(kafka).topics()

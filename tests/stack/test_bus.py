"""The bus against a real broker: order, back-pressure, transactions, fencing, offsets that are
gone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from uuid import uuid4

import polars as pl
import pytest

from penstock import names
from penstock.auth.kafka_users import KafkaUsers, Rule
from penstock.bus import BEGINNING, END, Admin, Batch, Delivery, Publisher, Reader
from penstock.catalog.model import Table, TableVersion
from penstock.codec import TableCodec
from penstock.errors import BusError
from penstock.mesh.running import RunningMesh, running_mesh
from penstock.rows.partition import partition, partition_of
from penstock.sql.plan import Column
from penstock.types import ColumnType


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    with running_mesh(tmp_path_factory.mktemp("bus"), services=("kafka", "redis")) as running:
        yield running


@pytest.fixture(scope="module")
def bootstrap(servers: RunningMesh) -> str:
    return servers.kafka_bootstrap


@pytest.fixture(scope="module")
def admin(bootstrap: str) -> Admin:
    return Admin(bootstrap)


@pytest.fixture
def topic(admin: Admin) -> Iterator[str]:
    name = names.ingest_topic(f"bus_{uuid4().hex[:8]}")
    admin.ensure_topics({name: 4})
    yield name
    admin.delete_topics([name])


@pytest.fixture
def publisher(bootstrap: str) -> Iterator[Publisher]:
    with Publisher(bootstrap, client_id="test") as made:
        yield made


def read(reader: Reader, records: int, seconds: float = 20.0) -> list[Batch]:
    found: list[Batch] = []
    deadline = time.monotonic() + seconds
    while sum(len(b) for b in found) < records:
        assert time.monotonic() < deadline, f"{sum(len(b) for b in found)} of {records}"
        found += reader.read(timeout=0.5)
    return found


def test_names_go_where_the_partition_rule_says(publisher: Publisher, topic: str) -> None:
    names_ = [f"device_{i}" for i in range(300)] + ["漢字", "ü", "x" * 192]
    found = [publisher.publish(topic, b"v", key=n.encode()).result(20).partition for n in names_]
    assert (
        found == [partition(n, 4) for n in names_] == partition_of(pl.Series(names_), 4).to_list()
    )


def test_what_is_published_is_read_in_order_from_any_offset(
    bootstrap: str, publisher: Publisher, topic: str
) -> None:
    before = time.time_ns() // 1_000_000
    deliveries = [publisher.publish(topic, b"%d" % i, partition=1) for i in range(1000)]
    assert [d.result(20).offset for d in deliveries] == list(range(1000))
    with Reader(bootstrap, {(topic, 1): 400}, client_id="test") as reader:
        batches = read(reader, 600)
    assert [v for b in batches for v in b.values] == [b"%d" % i for i in range(400, 1000)]
    assert {(b.topic, b.partition) for b in batches} == {(topic, 1)}
    assert batches[-1].next_offset == 1000
    assert all(
        before - 5_000 <= t <= before + 60_000 for b in batches for t in b.timestamps.tolist()
    )


def test_reader_takes_beginning_end_and_more_partitions(
    bootstrap: str, publisher: Publisher, topic: str
) -> None:
    for number in range(3):
        publisher.publish(topic, b"old", partition=number).result(20)
    with Reader(
        bootstrap, {(topic, 0): BEGINNING, (topic, 1): END}, client_id="test", ends=True
    ) as reader:
        assert [b.values for b in read(reader, 1)] == [[b"old"]]
        while reader.at_end.keys() != {(topic, 0), (topic, 1)}:
            assert reader.read(timeout=5) == []
        publisher.publish(topic, b"new", partition=1).result(20)
        assert [b.values for b in read(reader, 1)] == [[b"new"]]
        reader.add({(topic, 2): 0})
        assert [(b.partition, b.values) for b in read(reader, 1)] == [(2, [b"old"])]
        reader.pause([(topic, 2)])
        publisher.publish(topic, b"held back", partition=2).result(20)
        assert reader.read(timeout=0.3) == []
        reader.resume([(topic, 2)])
        assert [b.values for b in read(reader, 1)] == [[b"held back"]]
        reader.remove([(topic, 2)])
        reader.seek(topic, 0, 0)
        assert [(b.partition, b.values) for b in read(reader, 1)] == [(0, [b"old"])]


def test_a_reader_that_goes_back_is_not_at_the_end(
    bootstrap: str, publisher: Publisher, topic: str
) -> None:
    for _ in range(100):
        publisher.send(topic, b"x", partition=0)
    publisher.flush()
    with Reader(bootstrap, {(topic, 0): 0}, client_id="test", ends=True) as reader:
        for _ in range(2):
            found = 0
            while not reader.at_end:
                found += sum(len(b) for b in reader.read(max_records=60, timeout=5))
            assert (found, reader.at_end) == (100, {(topic, 0): 100})
            reader.seek(topic, 0, 0)
            assert [len(b) for b in reader.read(max_records=1, timeout=5)] == [1]
            assert reader.at_end == {}
            reader.seek(topic, 0, 0)
        publisher.publish(topic, b"y", partition=0).result(20)
        reader.seek(topic, 0, 0)
        found = 0
        while not reader.at_end:
            found += sum(len(b) for b in reader.read(timeout=5))
        assert (found, reader.at_end) == (101, {(topic, 0): 101})


@pytest.mark.alone
def test_an_idle_reader_gets_a_record_at_once(
    bootstrap: str, publisher: Publisher, topic: str
) -> None:
    took = []
    with Reader(bootstrap, {(topic, 0): 0}, client_id="test") as reader:
        for _ in range(50):
            started = time.perf_counter()
            publisher.send(topic, b"x", partition=0)
            read(reader, 1)
            took.append(time.perf_counter() - started)
    assert sorted(took)[25] < 0.05


def test_a_deleted_offset_is_a_clear_error(
    bootstrap: str, admin: Admin, publisher: Publisher, topic: str
) -> None:
    for _ in range(10):
        publisher.send(topic, b"x", partition=3)
    publisher.flush()
    admin.delete_records({(topic, 3): 6})
    assert admin.start_offsets([(topic, 3)]) == {(topic, 3): 6}
    assert admin.end_offsets([(topic, 3), (topic, 0)]) == {(topic, 3): 10, (topic, 0): 0}
    with (
        Reader(bootstrap, {(topic, 3): 2}, client_id="test") as reader,
        pytest.raises(BusError) as gone,
    ):
        read(reader, 1)
    assert (gone.value.code, gone.value.topic, gone.value.partition) == ("E_OFFSET_GONE", topic, 3)
    with Reader(bootstrap, {(topic, 3): 6}, client_id="test") as reader:
        assert sum(len(b) for b in read(reader, 4)) == 4


def test_topics_get_the_settings_their_names_call_for(admin: Admin, topic: str) -> None:
    wanted = {**names.BUILT_IN_TOPICS, topic: 4}
    admin.ensure_topics(wanted)
    admin.ensure_topics(wanted)
    assert {t: n for t, n in admin.topics().items() if t in wanted} == wanted
    with pytest.raises(BusError) as other:
        admin.ensure_topics({topic: 5})
    assert other.value.code == "E_TOPIC_PARTITIONS"
    admin.delete_topics(["in.never_was"])
    with pytest.raises(BusError):
        admin.end_offsets([("in.never_was", 0)])


def test_a_topic_made_again_with_other_partitions_is_written_and_read_at_once(
    bootstrap: str, admin: Admin, publisher: Publisher, topic: str
) -> None:
    publisher.publish(topic, b"old", partition=3).result(30)
    with Reader(bootstrap, {(topic, 3): 0}, client_id="test") as reader:
        assert sum(len(b) for b in read(reader, 1)) == 1
        reader.remove([(topic, 3)])
        admin.delete_topics([topic])
        assert topic not in admin.topics()
        admin.ensure_topics({topic: 6})
        sent = {p: publisher.publish(topic, b"new", partition=p) for p in (5, 0)}
        assert [future.result(30).offset for future in sent.values()] == [0, 0]
        reader.add({(topic, p): 0 for p in (5, 0, 3)})
        assert [v for b in read(reader, 2) for v in b.values] == [b"new", b"new"]
    with pytest.raises(BusError, match="refuses"):
        publisher.send(topic, b"nowhere", partition=6)


def test_only_committed_transactions_are_seen_by_who_asks_so(bootstrap: str, topic: str) -> None:
    with Publisher(bootstrap, client_id="t1", transactional_id=f"tx-{uuid4().hex}") as writer:
        writer.fence()
        with writer.transaction():
            writer.send(topic, b"yes", partition=0)
        with pytest.raises(ZeroDivisionError), writer.transaction():
            writer.send(topic, b"no", partition=0)
            writer.flush()
            raise ZeroDivisionError
        with writer.transaction():
            writer.send(topic, b"again", partition=0)
    with Reader(bootstrap, {(topic, 0): 0}, client_id="test", committed=True) as reader:
        assert [v for b in read(reader, 2) for v in b.values] == [b"yes", b"again"]
    with Reader(bootstrap, {(topic, 0): 0}, client_id="test") as reader:
        assert [v for b in read(reader, 3) for v in b.values] == [b"yes", b"no", b"again"]


def test_a_newer_producer_of_the_same_id_shuts_the_older_out(bootstrap: str, topic: str) -> None:
    name = f"tx-{uuid4().hex}"
    old, new = (
        Publisher(bootstrap, client_id=who, transactional_id=name) for who in ("old", "new")
    )
    with old, new:
        old.fence()
        new.fence()
        with pytest.raises(BusError) as fenced, old.transaction():
            old.send(topic, b"late", partition=0)
        assert fenced.value.code == "E_FENCED" and not fenced.value.retryable
        with new.transaction():
            new.send(topic, b"x", partition=0)


def test_a_full_queue_waits_instead_of_losing(bootstrap: str, admin: Admin, topic: str) -> None:
    with Publisher(bootstrap, client_id="small", queue_bytes=1 << 20) as small:
        for i in range(400):
            small.send(topic, bytes(20_000), partition=i % 4)
        small.flush()
    assert sum(admin.end_offsets([(topic, p) for p in range(4)]).values()) == 400


def test_failures_are_bus_errors(bootstrap: str, publisher: Publisher) -> None:
    with pytest.raises(BusError, match="refuses"):
        publisher.send("in.x", bytes(9 << 20))
    with pytest.raises(BusError) as unknown:
        publisher.publish("in.never_was", b"x").result(30)
    assert unknown.value.topic == "in.never_was"
    with Publisher("127.0.0.1:1", client_id="lost", timeout=1.0) as lost:
        with pytest.raises(BusError) as nowhere:
            lost.publish("in.x", b"x").result(20)
        assert nowhere.value.retryable
    with pytest.raises(BusError):
        Admin("127.0.0.1:1", timeout=1.0).topics()


def test_after_a_fatal_error_every_record_fails_at_once_and_says_why(
    bootstrap: str, topic: str
) -> None:
    users = KafkaUsers(bootstrap, client_id="test")
    users.set_password("bob", "bobs password")
    # who may not write anywhere gets no producer id: that is fatal to an idempotent producer
    users.allow([Rule("bob", "READ", "TOPIC", topic)])
    bob = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "bob",
        "sasl.password": "bobs password",
    }
    with Publisher(bootstrap, client_id="bob", options=bob) as refused:
        waiting = [refused.publish(topic, b"x", partition=i % 4) for i in range(100)]
        for number, future in enumerate(waiting):
            with pytest.raises(BusError, match="CLUSTER_AUTHORIZATION_FAILED") as failed:
                future.result(20)
            assert (failed.value.topic, failed.value.partition) == (topic, number % 4)
            assert not failed.value.retryable
        with pytest.raises(BusError, match="CLUSTER_AUTHORIZATION_FAILED"):
            refused.publish(topic, b"x")
        refused.flush(1)


def test_many_threads_share_a_publisher(publisher: Publisher, admin: Admin, topic: str) -> None:
    seen: list[Delivery | BusError] = []

    def send() -> None:
        for _ in range(500):
            publisher.send(topic, b"x", partition=2, on_delivery=seen.append)

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    publisher.flush()
    deadline = time.monotonic() + 10
    while len(seen) < 2000 and time.monotonic() < deadline:
        publisher.flush()
    assert sorted(d.offset for d in seen) == list(range(2000))
    assert admin.end_offsets([(topic, 2)]) == {(topic, 2): 2000}


def test_row_batches_travel(bootstrap: str, publisher: Publisher, topic: str) -> None:
    columns = (Column("ts", ColumnType("TIMESTAMP")), Column("v", ColumnType("DOUBLE")))
    codec = TableCodec(Table(1, "db", "t", "plain", topic, 4, "ms", (TableVersion(100, columns),)))
    rows = pl.DataFrame(
        {
            "tbname": [f"d{i % 50}" for i in range(1000)],
            "ts": range(1000),
            "v": [i / 2 for i in range(1000)],
        }
    )
    sent = codec.encode_partitioned(rows, 4)
    for number, value in sent:
        publisher.send(topic, value, partition=number)
    with Reader(bootstrap, {(topic, p): 0 for p in range(4)}, client_id="test") as reader:
        batches = read(reader, len(sent))
    decoded = [(b.partition, codec.decode(b.values)) for b in batches]
    assert all(partition_of(d.rows["tbname"], 4).unique().to_list() == [p] for p, d in decoded)
    back = pl.concat([d.rows for _, d in decoded]).sort("ts")
    assert back.select("tbname", "ts", "v").equals(rows)

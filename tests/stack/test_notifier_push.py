"""NOTIFY over real sockets: in order and at least once over restarts of either side, and nobody
waits for another's target.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from penstock import names
from penstock.bus import Reader
from penstock.errors import SchemaError
from penstock.records import ControlRecord, decode

from .conftest import eventually
from .notifier_kit import Kit, Receiver, kit, receiving

ON = "ON ('WINDOW_OPEN', 'WINDOW_CLOSE')"


@pytest.fixture(scope="module")
def mesh_kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kit]:
    small = {
        "PENSTOCK_NOTIFIER_PUSH_BYTES": "4096",
        "PENSTOCK_NOTIFIER_PAUSE_BYTES": "400000",
        "PENSTOCK_NOTIFIER_RETRY_MAX": "0.3",
    }
    with kit(tmp_path_factory.mktemp("push"), **small) as made:
        yield made


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


def test_messages_reach_every_target_in_order(mesh_kit: Kit, receiver: Receiver) -> None:
    other = Receiver()
    other.up()
    stream = mesh_kit.stream(mesh_kit.database(), f"NOTIFY ('{receiver.url}', '{other.url}') {ON}")
    mesh_kit.events(stream, 500)
    barrier = mesh_kit.barrier(stream)
    eventually(lambda: mesh_kit.passed(barrier))
    assert receiver.numbers() == other.numbers() == list(range(500))
    first = receiver.messages[0]
    assert set(first) == {"messageId", "timestamp", "streams"}
    assert first["streams"][0]["streamName"] == "s"
    assert [m["messageId"] for m in receiver.messages] == [m["messageId"] for m in other.messages]
    name = f"{stream.database}.s"
    assert mesh_kit.metric("penstock_notify_delivered_events_total", name) == 1000
    assert mesh_kit.metric("penstock_notify_behind_events", name) == 0
    other.down()


def test_paused_target_gets_everything_over_restarts_of_both(mesh_kit: Kit) -> None:
    target = Receiver()
    stream = mesh_kit.stream(mesh_kit.database(), f"NOTIFY ('{target.url}') {ON} ON_FAILURE PAUSE")
    mesh_kit.events(stream, 300)
    pid = mesh_kit.mesh.kill("notifier")
    mesh_kit.events(stream, 300)
    mesh_kit.mesh.wait_ready("notifier", not_pid=pid)
    mesh_kit.events(stream, 100)
    barrier = mesh_kit.barrier(stream)
    target.up()
    eventually(lambda: len(target.numbers()) >= 100)
    target.down()
    mesh_kit.events(stream, 50)
    pid = mesh_kit.mesh.kill("notifier")
    target.up()
    mesh_kit.mesh.wait_ready("notifier", not_pid=pid)
    eventually(lambda: len(target.numbers()) >= 750)
    assert target.numbers() == list(range(750))
    barrier = mesh_kit.barrier(stream)
    eventually(lambda: mesh_kit.passed(barrier))
    target.down()


def test_barrier_waits_for_a_paused_target_of_its_streams_only(
    mesh_kit: Kit, receiver: Receiver
) -> None:
    target = Receiver()
    database = mesh_kit.database()
    dead = mesh_kit.stream(database, f"NOTIFY ('{target.url}') {ON}", "dead")
    well = mesh_kit.stream(database, f"NOTIFY ('{receiver.url}') {ON}", "well")
    mesh_kit.events(dead)
    mesh_kit.events(well)
    mine = mesh_kit.barrier(well)
    both = mesh_kit.barrier(dead, well)
    eventually(lambda: mesh_kit.passed(mine))
    assert not mesh_kit.passed(both)
    target.up()
    eventually(lambda: mesh_kit.passed(both))
    target.down()


def test_dropping_target_loses_what_came_while_it_was_down(mesh_kit: Kit) -> None:
    target = Receiver()
    stream = mesh_kit.stream(mesh_kit.database(), f"NOTIFY ('{target.url}') {ON} ON_FAILURE DROP")
    mesh_kit.events(stream, 700)
    barrier = mesh_kit.barrier(stream)
    eventually(lambda: mesh_kit.passed(barrier))
    assert mesh_kit.metric("penstock_notify_dropped_events_total", f"{stream.database}.s") == 700
    target.up()

    def comes_through() -> bool:
        mesh_kit.events(stream)
        return bool(target.messages)

    eventually(comes_through, every=0.1)
    assert min(target.numbers()) >= 700
    target.down()


def test_a_target_that_does_not_read_holds_back_nobody(mesh_kit: Kit, receiver: Receiver) -> None:
    slow = Receiver()
    dead = Receiver()
    slow.up()
    slow.reading.clear()
    database = mesh_kit.database()
    stuck = mesh_kit.stream(database, f"NOTIFY ('{slow.url}', '{dead.url}') {ON}", "stuck")
    brisk = mesh_kit.stream(database, f"NOTIFY ('{receiver.url}') {ON}", "brisk")
    mesh_kit.events(stuck, 20, padding=10_000)
    times = []
    for number in range(50):
        began = time.perf_counter()
        mesh_kit.events(brisk)
        eventually(lambda n=number: len(receiver.messages) > n, every=0.0005)
        times.append(time.perf_counter() - began)
    print(f"publish to target: p50 {sorted(times)[25] * 1000:.1f} ms")
    assert sorted(times)[25] < 0.25
    slow.reading.set()
    eventually(lambda: slow.numbers() == list(range(20)))
    slow.down()


def test_refused_addresses_are_never_connected_to(mesh_kit: Kit) -> None:
    before = mesh_kit.metric("penstock_notify_targets_down")
    stream = mesh_kit.stream(
        mesh_kit.database(), f"NOTIFY ('ws://169.254.169.254:80/latest') {ON} ON_FAILURE DROP"
    )
    mesh_kit.events(stream, 3)
    eventually(
        lambda: mesh_kit.metric("penstock_notify_dropped_events_total", f"{stream.database}.s") == 3
    )
    eventually(lambda: mesh_kit.metric("penstock_notify_targets_down") > before)


def test_stream_far_ahead_of_its_target_is_paused_and_goes_on(mesh_kit: Kit) -> None:
    target = Receiver()
    database = mesh_kit.database()
    stream = mesh_kit.stream(database, f"NOTIFY ('{target.url}') {ON}")
    topic = mesh_kit.table(database).topic

    def status() -> str:
        answer = mesh_kit.sql("SHOW STREAMS", database)
        columns = [c[0] for c in answer["column_meta"]]
        mine = [row for row in answer["data"] if row[columns.index("source_db")] == database]
        return str(mine[0][columns.index("status")])

    def controls() -> list[str]:
        kinds = []
        with Reader(mesh_kit.mesh.kafka_bootstrap, {(topic, 0): 0}, client_id="test") as reader:
            for batch in reader.read(100, 2.0):
                for value in batch.values:
                    try:
                        kinds.append(decode(ControlRecord, value).kind)
                    except SchemaError:
                        continue
        return [k for k in kinds if k in ("pause", "resume")]

    mesh_kit.events(stream, 50, padding=10_000)
    eventually(lambda: status() == "paused")
    eventually(lambda: controls() == ["pause"])
    assert "behind" in str(mesh_kit.redis.hget(names.stream_status(stream.id), "notifier"))
    target.up()
    eventually(lambda: target.numbers() == list(range(50)))
    eventually(lambda: controls() == ["pause", "resume"])
    assert status() != "paused"
    target.down()

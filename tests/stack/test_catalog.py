"""The catalog's log on real servers: leaders change, Redis forgets, readers all see the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
import redis

from penstock import names
from penstock.bus import Admin, Publisher
from penstock.catalog import changes, entries
from penstock.catalog.apply import Changed
from penstock.catalog.changes import Change
from penstock.catalog.model import Child, Database
from penstock.catalog.reader import CatalogReader
from penstock.catalog.writer import LEASE, CatalogWriter
from penstock.coordination.lease import Lease
from penstock.errors import BusError, LeaseLost
from penstock.mesh.running import RunningMesh, running_mesh
from penstock.sql.plan import Column
from penstock.types import ColumnType
from tests.stack.conftest import eventually

TIME = Column("ts", ColumnType("TIMESTAMP"))
VOLTAGE = Column("v", ColumnType("INT"))
PLACE = Column("place", ColumnType("VARCHAR", 9))


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    with running_mesh(tmp_path_factory.mktemp("catalog"), services=("kafka", "redis")) as running:
        yield running


class Gateways:
    """Several gateways of one mesh: each a reader and a writer of its own."""

    def __init__(self, servers: RunningMesh, stack: ExitStack) -> None:
        self.bootstrap = servers.kafka_bootstrap
        self._stack = stack
        self.redis = stack.enter_context(redis.Redis.from_url(servers.redis_url))

    def reader(self, **options: bool) -> CatalogReader:
        return self._stack.enter_context(CatalogReader(self.bootstrap, client_id="test", **options))

    def writer(self, address: str = "http://here:1") -> CatalogWriter:
        made = CatalogWriter(self.bootstrap, self.redis, self.reader(), address=address)
        self._stack.callback(made.close)
        return made


@pytest.fixture
def gateways(servers: RunningMesh) -> Iterator[Gateways]:
    admin = Admin(servers.kafka_bootstrap)
    admin.delete_topics([names.CATALOG])
    admin.ensure_topics({names.CATALOG: 1})
    with ExitStack() as stack:
        made = Gateways(servers, stack)
        made.redis.flushall()
        yield made


def commit(writer: CatalogWriter, change: Change) -> int:
    return writer.commit(change.puts, change.removes)


def test_ddl_is_seen_by_every_reader_and_survives(gateways: Gateways) -> None:
    writer = gateways.writer()
    reader = gateways.reader()
    heard: list[Changed] = []
    reader.listen(heard.extend)
    assert writer.lead() and writer.lead()
    commit(writer, changes.create_database(writer.catalog, writer.new_id, "power"))
    commit(
        writer,
        changes.create_table(
            writer.catalog, writer.new_id, "power", "meters", (TIME, VOLTAGE), (PLACE,)
        ),
    )
    commit(
        writer,
        changes.create_child(
            writer.catalog, writer.new_id, "power", "d1", "meters", {"place": "here"}
        ),
    )
    revision = commit(
        writer,
        changes.add_column(
            writer.catalog, writer.new_id, "power", "meters", Column("w", VOLTAGE.type)
        ),
    )
    seen = reader.wait_for(revision)
    assert seen.tables() == writer.catalog.tables()
    assert seen.child("power", "D1") == writer.catalog.child("power", "d1") is not None
    assert [(c.old is None, type(c.new).__name__) for c in heard] == [
        (True, "Database"),
        (True, "Table"),
        (True, "Child"),
        (False, "Table"),
    ]
    late = gateways.reader()
    lean = gateways.reader(children=False)
    assert late.catalog.tables() == seen.tables() and late.catalog.epoch == 1
    assert lean.catalog.child("power", "d1") is None and lean.catalog.tables() == seen.tables()
    gone = commit(writer, changes.drop_database(writer.catalog, "power"))
    assert reader.wait_for(gone).tables() == [] and reader.catalog.child("power", "d1") is None
    assert [c.new for c in heard[4:]] == [None] * 3
    assert gateways.reader().catalog.next_id == writer.new_id()


def test_the_second_gateway_forwards_until_the_first_goes(gateways: Gateways) -> None:
    first = gateways.writer("http://first:1")
    second = gateways.writer("http://second:2")
    assert first.lead() and not second.lead() and not second.leading
    leader = second.leader()
    assert leader is not None and leader.address == "http://first:1"
    with pytest.raises(LeaseLost):
        second.commit([Database(second.new_id(), "x")])
    taken = first.new_id()
    first.commit([Database(taken, "one")])
    first.close()
    assert second.lead()
    assert second.catalog.database("one") is not None and second.new_id() > taken
    assert second.catalog.epoch == 2


def test_who_comes_back_waits_for_the_end_of_the_lease_it_left(gateways: Gateways) -> None:
    killed = Lease(gateways.redis, LEASE, ttl=2.0, address="http://here:1")
    assert killed.acquire()
    assert not gateways.writer("http://other:1").lead(), "elsewhere it is forwarded at once"
    assert gateways.writer("http://here:1").lead() and not killed.held


def test_a_leader_that_slept_cannot_write(gateways: Gateways) -> None:
    sleeper = gateways.writer()
    heir = gateways.writer()
    assert sleeper.lead()
    gateways.redis.delete(names.lease(LEASE))
    assert heir.lead()
    assert sleeper.leading  # by its own clock; Kafka knows better
    with pytest.raises(LeaseLost):
        sleeper.commit([Database(sleeper.new_id(), "ghost")])
    assert not sleeper.leading
    revision = heir.commit([Database(heir.new_id(), "real")])
    assert [d.name for d in gateways.reader().wait_for(revision).databases()] == ["real"]


def test_an_empty_redis_takes_no_epoch_back(gateways: Gateways) -> None:
    first = gateways.writer()
    assert first.lead()
    first.commit([Database(first.new_id(), "kept")])
    gateways.redis.flushall()
    second = gateways.writer()
    assert second.lead() and second.catalog.epoch == 2
    assert second.catalog.database("kept") is not None


def test_records_of_a_lower_epoch_or_of_no_sense_are_dropped(gateways: Gateways) -> None:
    writer = gateways.writer()
    assert writer.lead()
    revision = writer.commit([Database(writer.new_id(), "real")])
    with Publisher(gateways.bootstrap, client_id="zombie") as zombie:
        old = Database(777, "ghost")
        zombie.publish(
            names.CATALOG, entries.to_value(old, 0), key=entries.key_of(old), partition=0
        ).result(20)
        zombie.publish(names.CATALOG, b"junk", key=b"table/1", partition=0).result(20)
        zombie.publish(names.CATALOG, None, key=b"what/is this", partition=0).result(20)
    seen = gateways.reader()
    assert seen.wait_for(revision + 2).databases() == writer.catalog.databases()


def test_definitions_of_records_are_there_before_the_records_are_used(gateways: Gateways) -> None:
    writer = gateways.writer()
    reader = gateways.reader()
    assert writer.lead()
    late = threading.Event()
    reader.listen(lambda _: late.wait(60))  # the thread that follows the log stands still in here
    commit(writer, changes.create_database(writer.catalog, writer.new_id, "power"))
    eventually(lambda: reader.catalog.database("power"))
    commit(
        writer,
        changes.create_table(
            writer.catalog, writer.new_id, "power", "meters", (TIME, VOLTAGE), (PLACE,)
        ),
    )
    made = writer.catalog.table("power", "meters")
    assert made is not None and reader.catalog.schema(made.schema_id) is None
    with ThreadPoolExecutor(1) as pool:
        known = pool.submit(reader.know, [made.schema_id, names.CONTROL_SCHEMA_ID, -1])
        with pytest.raises(TimeoutError):
            known.result(0.2)
        late.set()
        known.result(60)
    assert reader.catalog.schema(made.schema_id) is not None
    nobodys = made.schema_id + 1_000_000
    reader.know([nobodys])  # the log decides: it is not waited for
    assert reader.catalog.schema(nobodys) is None


def test_waiting_has_an_end_and_a_failed_listener_does_not_stop_the_rest(
    gateways: Gateways,
) -> None:
    writer = gateways.writer()
    reader = gateways.reader()
    assert writer.lead()

    def fail(_: list[Changed]) -> None:
        raise RuntimeError("a listener")

    reader.listen(fail)
    with pytest.raises(BusError, match="in time"):
        reader.wait_for(lambda c: c.database("later") is not None, timeout=0.2)
    waited = threading.Event()

    def wait() -> None:
        reader.wait_for(lambda c: c.database("later") is not None)
        waited.set()

    thread = threading.Thread(target=wait)
    thread.start()
    writer.commit([Database(writer.new_id(), "later")])
    assert waited.wait(10)
    thread.join()


def test_a_hundred_thousand_child_tables(gateways: Gateways) -> None:
    writer = gateways.writer()
    assert writer.lead()
    commit(writer, changes.create_database(writer.catalog, writer.new_id, "power"))
    commit(
        writer,
        changes.create_table(
            writer.catalog, writer.new_id, "power", "meters", (TIME, VOLTAGE), (PLACE,)
        ),
    )
    meters = writer.catalog.table("power", "meters")
    assert meters is not None
    for start in range(0, 100_000, 2_000):
        # a busy machine may cost the lease, and Kafka's patience with a long transaction
        eventually(writer.lead)
        made = [
            Child(writer.new_id(), "power", meters.id, f"d{i}", ("x", i))
            for i in range(start, start + 2_000)
        ]
        writer.commit(made, timeout=60)
    seen = gateways.reader().catalog
    assert len(seen.children(meters.id)) == 100_000
    child = seen.child("power", "D99999")
    assert child is not None and child.tags == ("x", 99_999)


def test_a_forged_record_is_refused_and_made_good(gateways: Gateways) -> None:
    """Compaction keeps the newest record of a key: the leader writes the true one behind a forged
    one.
    """
    writer = gateways.writer()
    assert writer.lead()
    real = Database(writer.new_id(), "real")
    writer.commit([real])
    with Publisher(gateways.bootstrap, client_id="forger") as forger:
        forger.publish(
            names.CATALOG,
            entries.to_value(Database(99, "forged"), 1),
            key=entries.key_of(real),
            partition=0,
        ).result(10)
    eventually(lambda: bool(writer._reader.spoiled))
    revision = writer.commit([Database(writer.new_id(), "other")])
    assert sorted(d.name for d in gateways.reader().wait_for(revision).databases()) == [
        "other",
        "real",
    ]
    assert writer._reader.spoiled == set()

"""The one process that may change the catalog: leading, committing and stepping down.

The log and Redis are in memory; tests/stack/test_catalog.py has real ones.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest
import redis

from penstock import names
from penstock.bus import Batch, Delivery
from penstock.catalog import entries, writer
from penstock.catalog.model import Database, User
from penstock.catalog.reader import CatalogReader
from penstock.catalog.writer import LEASE, CatalogWriter
from penstock.coordination.lease import Holder
from penstock.errors import BusError, LeaseLost, RemoteError
from penstock.runtime.clock import ManualClock
from tests.unit.penstock.coordination.memory_redis import MemoryRedis

Record = tuple[bytes, bytes | None]
HOME = Database(100, "home")
ANN = User(101, "ann", "hash")


class Log:
    """The catalog's log, read by one reader as soon as a transaction commits."""

    def __init__(self) -> None:
        self.reader = CatalogReader("nowhere:1", client_id="test")
        self.records: list[Record] = []
        self.producers: list[Producer] = []
        #: what the next commit ends with
        self.failure: BusError | None = None
        self.unread: list[Record] = []

    def append(self, records: list[Record]) -> int:
        """Commit records, and those that lie before them unread; return the first one's offset."""
        arrived = [*self.unread, *records]
        self.unread = []
        first = len(self.records)
        self.records += arrived
        count = len(arrived)
        offsets = np.arange(first, first + count)
        keys = [k for k, _ in arrived]
        values = [v for _, v in arrived]
        batch = Batch(names.CATALOG, 0, offsets, np.zeros(count, np.int64), keys, values)  # type: ignore[arg-type]
        self.reader._take([batch], first + count)
        return first + count - len(records)

    def publisher(self, bootstrap: str, **options: Any) -> Producer:
        assert options["transactional_id"] == "penstock-catalog"
        made = Producer(self)
        self.producers.append(made)
        return made


class Producer:
    """Records of a transaction, which go to the log when it commits."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.fenced = False
        self.closed = False
        self.pending: list[tuple[Record, Future[Delivery]]] = []

    def fence(self) -> None:
        self.fenced = True

    def publish(
        self, topic: str, value: bytes | None, *, key: bytes, partition: int
    ) -> Future[Delivery]:
        assert (topic, partition) == (names.CATALOG, 0)
        told: Future[Delivery] = Future()
        self.pending.append(((key, value), told))
        return told

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        assert self.fenced and not self.closed
        self.pending = []
        yield
        if self.log.failure is not None:
            raise self.log.failure
        first = self.log.append([record for record, _ in self.pending])
        for offset, (_, told) in enumerate(self.pending, first):
            told.set_result(Delivery(names.CATALOG, 0, offset, 0))

    def close(self, timeout: float) -> None:
        self.closed = True


class Mesh:
    """A log, a Redis and a clock; writers of it."""

    def __init__(self) -> None:
        self.log = Log()
        self.redis = MemoryRedis()
        self.clock = ManualClock()
        self.writers: list[CatalogWriter] = []

    def writer(self, address: str = "a:1", ttl: float = 5.0) -> CatalogWriter:
        made = CatalogWriter(
            "nowhere:1",
            self.redis,  # type: ignore[arg-type]
            self.log.reader,
            address=address,
            clock=self.clock,
            ttl=ttl,
        )
        self.writers.append(made)
        return made


@pytest.fixture
def mesh(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mesh]:
    made = Mesh()
    monkeypatch.setattr(writer, "Publisher", made.log.publisher)
    yield made
    made.redis.down = None
    for each in made.writers:
        each.close()


def test_a_writer_leads_once_its_reader_shows_its_record(mesh: Mesh) -> None:
    made = mesh.writer()
    assert not made.leading
    assert made.leader() is None
    assert made.lead()
    assert made.leading
    assert made.leader() == Holder(1, "a:1")
    ((key, value),) = mesh.log.records
    assert key == entries.LEADER_KEY and value is not None
    assert entries.read(value).epoch == made.catalog.epoch == 1
    assert made.lead()
    assert len(mesh.log.producers) == 1


def test_a_commit_returns_with_the_revision_that_shows_it(mesh: Mesh) -> None:
    made = mesh.writer()
    made.lead()
    assert made.commit([HOME, ANN]) == made.catalog.revision == 4
    assert made.catalog.database("home") == HOME and made.catalog.user("ann") == ANN
    assert made.commit([], [ANN]) == 6
    assert made.catalog.user("ann") is None
    assert mesh.log.records[-1][0] == entries.LEADER_KEY


def test_ids_go_on_behind_those_of_earlier_leaders(mesh: Mesh) -> None:
    first = mesh.writer()
    first.lead()
    given = [first.new_id() for _ in range(3)]
    assert given == list(range(given[0], given[0] + 3))
    first.commit([HOME])
    first.close()
    second = mesh.writer("b:1")
    second.lead()
    assert second.new_id() == given[-1] + 1


def test_nobody_leads_beside_another(mesh: Mesh) -> None:
    first, second = mesh.writer(), mesh.writer("b:1")
    assert first.lead()
    assert not second.lead()
    assert second.leader() == Holder(1, "a:1")
    with pytest.raises(LeaseLost):
        second.commit([HOME])
    first.close()
    assert not first.leading and mesh.log.producers[0].closed
    assert second.lead()
    assert second.catalog.epoch == 2


def test_a_lease_of_this_very_address_is_waited_for(mesh: Mesh) -> None:
    """It was left by a process that is no more."""
    left = mesh.writer("a:1")
    left.lead()
    key = names.lease(LEASE)
    asked: list[str] = []
    get = mesh.redis.get

    def run_out(name: str) -> str | None:
        found = get(name)
        asked.append(name)
        mesh.redis.expire(key)
        return found

    mesh.redis.get = run_out  # type: ignore[method-assign]
    again = mesh.writer("a:1")
    assert again.lead()
    assert asked == [key]
    assert again.catalog.epoch == 2


def test_a_lease_that_ran_out_ends_the_leading(mesh: Mesh) -> None:
    made = mesh.writer()
    made.lead()
    mesh.clock.advance(6.0)
    assert not made.leading
    with pytest.raises(LeaseLost) as lost:
        made.commit([HOME])
    assert lost.value.epoch == 1
    assert made.catalog.database("home") is None


def test_a_lease_that_runs_out_in_a_commit_leaves_nothing_behind(mesh: Mesh) -> None:
    made = mesh.writer()
    made.lead()
    publish = mesh.log.producers[0].publish

    def slow(*given: Any, **more: Any) -> Future[Delivery]:
        mesh.clock.advance(6.0)
        return publish(*given, **more)

    mesh.log.producers[0].publish = slow  # type: ignore[method-assign]
    with pytest.raises(LeaseLost):
        made.commit([HOME])
    assert made.catalog.database("home") is None
    assert not made.leading and mesh.log.producers[0].closed


@pytest.mark.parametrize(("code", "raised"), [("E_FENCED", LeaseLost), ("E_BUS", BusError)])
def test_whatever_is_uncertain_about_a_commit_ends_the_leading(
    mesh: Mesh, code: str, raised: type[Exception]
) -> None:
    made = mesh.writer()
    made.lead()
    mesh.log.failure = BusError("no", code=code)
    with pytest.raises(raised):
        made.commit([HOME])
    assert not made.leading
    assert mesh.log.producers[0].closed
    mesh.log.failure = None
    assert made.lead()
    assert made.catalog.epoch == 2
    made.commit([HOME])


def test_a_kafka_that_fails_gives_the_lease_back(mesh: Mesh) -> None:
    made = mesh.writer()
    mesh.log.failure = BusError("no")
    with pytest.raises(BusError):
        made.lead()
    assert made.leader() is None and mesh.log.producers[0].closed


def test_a_redis_that_fails_lets_nobody_lead(mesh: Mesh) -> None:
    made = mesh.writer()
    mesh.redis.down = redis.ConnectionError("down")
    with pytest.raises(RemoteError):
        made.lead()
    assert not made.leading


def test_a_lease_that_cannot_be_given_back_stops_nobody(mesh: Mesh) -> None:
    made = mesh.writer()
    made.lead()
    mesh.redis.down = redis.ConnectionError("down")
    made.close()
    assert not made.leading


def test_epochs_that_redis_has_forgotten_are_passed(mesh: Mesh) -> None:
    """The log knows a leader that neither Redis nor this reader knew of."""
    mesh.log.unread = [(entries.LEADER_KEY, entries.leader_value(9, 500))]
    made = mesh.writer()
    assert made.lead()
    assert made.catalog.epoch == 10
    assert made.leader() == Holder(10, "a:1")
    assert made.new_id() == 500
    made.commit([HOME])
    assert made.catalog.database("home") == HOME


def test_a_record_that_was_refused_is_written_again(mesh: Mesh) -> None:
    made = mesh.writer()
    made.lead()
    made.commit([ANN])
    key = entries.key_of(ANN)
    mesh.log.append([(key, b"forged"), (b"user/999", b"forged"), (entries.LEADER_KEY, b"x")])
    assert {key, b"user/999"} <= mesh.log.reader.spoiled
    start = len(mesh.log.records)
    made.commit([HOME])
    written = dict(mesh.log.records[start:])
    assert entries.read(written[key] or b"").name == "ann"
    assert written[b"user/999"] is None
    assert mesh.log.reader.spoiled == set()
    assert made.catalog.user("ann") == ANN

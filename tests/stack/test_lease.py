"""Leases on a real Redis: one holder an epoch, epochs that only grow, a Redis that forgets."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from uuid import uuid4

import pytest
import redis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from penstock import names
from penstock.coordination.lease import Holder, Lease
from penstock.errors import LeaseLost, RemoteError
from penstock.mesh.running import RunningMesh, running_mesh
from penstock.runtime.clock import ManualClock

from .conftest import eventually


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    with running_mesh(tmp_path_factory.mktemp("lease"), services=("redis",)) as running:
        yield running


@pytest.fixture(scope="module")
def client(servers: RunningMesh) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(servers.redis_url) as made:
        yield made


@pytest.fixture
def name() -> str:
    return f"test-{uuid4().hex}"


def test_one_holds_it_and_others_see_who(client: redis.Redis, name: str) -> None:
    first = Lease(client, name, address="http://a:1")
    second = Lease(client, name, address="http://b:2|x")
    assert first.holder() is None
    assert first.acquire() and first.held and first.epoch == 1
    assert first.ttl == 5
    assert not second.acquire() and not second.held
    holder = second.holder()
    assert holder is not None and (holder.epoch, holder.address) == (1, "http://a:1")
    first.release()
    assert not first.held
    assert second.acquire() and second.epoch == 2
    holder = first.holder()
    assert holder is not None and holder.address == "http://b:2|x"


def test_who_slept_past_the_end_has_lost(client: redis.Redis, name: str) -> None:
    clock = ManualClock()
    sleeper = Lease(client, name, ttl=5, clock=clock)
    next_one = Lease(client, name)
    assert sleeper.acquire()
    client.delete(names.lease(name))  # its time is over in Redis
    assert next_one.acquire() and next_one.epoch == 2
    clock.advance(5.1)
    assert not sleeper.held
    with pytest.raises(LeaseLost) as lost:
        sleeper.renew()
    assert lost.value.epoch == 1
    assert sleeper.epoch == 0
    with pytest.raises(LeaseLost):
        sleeper.check()
    sleeper.release()
    assert next_one.held and next_one.holder() is not None


def test_renewing_holds_on(client: redis.Redis, name: str) -> None:
    clock = ManualClock()
    lease = Lease(client, name, ttl=5, clock=clock)
    assert lease.acquire()
    for _ in range(5):
        clock.advance(4)
        lease.renew()
        lease.check()
    assert lease.epoch == 1


def test_an_empty_redis_gives_no_old_epoch(client: redis.Redis, name: str) -> None:
    first = Lease(client, name)
    assert first.acquire(seen=41) and first.epoch == 42
    client.delete(names.lease(name), names.lease(name) + ":epoch")
    with pytest.raises(LeaseLost):
        first.renew()
    assert Lease(client, name).acquire(
        seen=0
    )  # who has not read the log gets a low one, and the log refuses it
    client.delete(names.lease(name), names.lease(name) + ":epoch")
    second = Lease(client, name)
    assert second.acquire(seen=42) and second.epoch == 43


def test_it_is_held_for_its_time_and_not_a_moment_longer(client: redis.Redis, name: str) -> None:
    clock = ManualClock()
    lease = Lease(client, name, ttl=50, clock=clock)
    assert lease.acquire()
    assert 40_000 < client.pttl(names.lease(name)) <= 50_000
    clock.advance(49.5)
    lease.check()
    client.pexpire(names.lease(name), 100_000)
    lease.renew()
    assert 40_000 < client.pttl(names.lease(name)) <= 50_000
    clock.advance(49.5)
    lease.check()
    clock.advance(0.5)
    assert not lease.held
    with pytest.raises(LeaseLost):
        lease.check()


def test_who_never_had_it_has_nothing_to_renew_or_release(client: redis.Redis, name: str) -> None:
    holder = Lease(client, name)
    other = Lease(client, name)
    assert holder.acquire()
    other.release()
    with pytest.raises(LeaseLost):
        other.renew()
    with pytest.raises(LeaseLost):
        other.check()
    assert holder.holder() is not None
    assert holder.token != other.token
    assert client.get(names.lease(name)) == f"{holder.token}|1|".encode()


def test_a_lease_is_taken_from_the_dead_and_nobody_else(client: redis.Redis, name: str) -> None:
    dead = Lease(client, name, address="http://a:1")
    assert dead.acquire()
    known = dead.holder()
    assert known is not None
    assert dead.revoke(known)
    assert dead.holder() is None
    assert not dead.revoke(known)
    heir = Lease(client, name)
    assert heir.acquire() and heir.epoch == 2
    assert not heir.revoke(known)
    assert heir.holder() == Holder(2, "")


def test_a_lease_released_may_be_taken_and_kept_again(client: redis.Redis, name: str) -> None:
    told = threading.Event()
    lease = Lease(client, name, ttl=3)
    for epoch in (1, 2):
        assert lease.acquire() and lease.epoch == epoch
        lease.keep(lambda _: told.set())
        # only the second time it is waited for, longer than it lasts without its keeper
        assert not told.wait(3.5 * (epoch - 1))
        lease.check()
        lease.release()
        assert lease.holder() is None and not lease.held
        assert not [t for t in threading.enumerate() if t.name == f"lease-{name}"]


def test_redis_may_be_away_for_as_long_as_the_lease_lasts(
    servers: RunningMesh, client: redis.Redis, name: str
) -> None:
    clock = ManualClock()
    lost: list[int] = []
    told = threading.Event()
    with redis.Redis.from_url(servers.redis_url) as own:
        lease = Lease(own, name, ttl=0.3, clock=clock)
        assert lease.acquire(seen=6)

        def tell(error: LeaseLost) -> None:
            lost.append(error.epoch)
            lease.release()  # from its own thread
            told.set()

        # new connections go to where nobody listens, and there are no old ones
        own.connection_pool.connection_kwargs["port"] = 1
        own.connection_pool.reset()
        lease.keep(tell)
        assert not told.wait(1)
        assert lease.held
        clock.advance(1)
        assert told.wait(30)
        assert lost == [7] and not lease.held


def test_the_keeper_renews_and_tells_when_it_is_over(client: redis.Redis, name: str) -> None:
    lost: list[LeaseLost] = []
    told = threading.Event()
    lease = Lease(client, name, ttl=0.6)
    assert lease.acquire()

    def tell(error: LeaseLost) -> None:
        lost.append(error)
        told.set()

    lease.keep(tell)
    assert not told.wait(1.5)
    assert lease.held
    client.set(names.lease(name), "somebody|9|")
    assert told.wait(5)
    assert [e.epoch for e in lost] == [1] and not lease.held
    lease.release()
    assert client.get(names.lease(name)) == b"somebody|9|"


def test_a_lease_runs_out_by_itself(client: redis.Redis, name: str) -> None:
    assert Lease(client, name, ttl=0.2).acquire()
    heir = Lease(client, name)
    assert eventually(lambda: heir.acquire(), deadline=5)
    assert heir.epoch == 2


def test_no_redis_is_a_clear_error(name: str) -> None:
    with redis.Redis(port=1) as nobody:
        lease = Lease(nobody, name)
        with pytest.raises(RemoteError) as error:
            lease.acquire()
        assert error.value.code == "E_REDIS"
        with pytest.raises(RemoteError):
            lease.holder()


def test_any_interleaving_has_one_holder_an_epoch(client: redis.Redis) -> None:
    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            name = f"machine-{uuid4().hex}"
            self.name = name
            self.written = 0
            self.newest = -1
            #: epochs handed out since Redis was last emptied, in order
            self.handed_out: list[int] = []
            #: epoch → which acquisitions wrote under it
            self.writers: dict[int, set[int]] = {}
            self.acquisitions = 0
            self.leases = [Lease(client, name, ttl=60) for _ in range(3)]

        @rule(who=st.integers(0, 2))
        def acquire(self, who: int) -> None:
            if self.leases[who].acquire(seen=self.written):
                assert self.leases[who].epoch > self.written, (
                    "a reader would not know the new leader from the old one"
                )
                self.handed_out.append(self.leases[who].epoch)
                self.acquisitions += 1
                self.newest = who

        @rule(who=st.integers(0, 2))
        def write(self, who: int) -> None:
            """A fenced write: Kafka takes it from the last who began a transaction there, readers
            drop it below a higher epoch.
            """
            epoch = self.leases[who].epoch
            if who == self.newest and epoch and epoch >= self.written:
                self.written = epoch
                self.writers.setdefault(epoch, set()).add(self.acquisitions)

        @rule(who=st.integers(0, 2))
        def renew(self, who: int) -> None:
            try:
                self.leases[who].renew()
            except LeaseLost:
                assert not self.leases[who].held

        @rule(who=st.integers(0, 2))
        def release(self, who: int) -> None:
            self.leases[who].release()

        @rule()
        def expire(self) -> None:
            client.delete(names.lease(self.name))

        @rule()
        def forget(self) -> None:
            client.delete(names.lease(self.name), names.lease(self.name) + ":epoch")
            self.handed_out = []

        @invariant()
        def a_new_holder_is_above_all_that_was_written(self) -> None:
            holder = self.leases[0].holder()
            if holder is not None:
                assert holder.epoch >= self.written

        @invariant()
        def an_epoch_is_handed_out_once_unless_redis_was_emptied(self) -> None:
            assert self.handed_out == sorted(set(self.handed_out))

        @invariant()
        def an_epoch_has_one_writer(self) -> None:
            assert all(len(writers) == 1 for writers in self.writers.values())

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=100,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

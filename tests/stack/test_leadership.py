"""Who runs the jobs, on a real Redis: one at a time, sleepers stop, and an outage stops nobody who
is alone.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import redis

from penstock import names
from penstock.coordination.lease import Lease
from penstock.errors import LeaseLost
from penstock.mesh.running import RunningMesh, running_mesh
from penstock.runtime.clock import SystemClock
from spark_jobs.guard import Guard
from spark_jobs.leadership import LEASE, Leadership
from tests.stack.conftest import eventually

pytestmark = pytest.mark.long

TTL = 1.0


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    with running_mesh(tmp_path_factory.mktemp("leadership"), services=("redis",)) as running:
        yield running


@pytest.fixture
def client(servers: RunningMesh) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(servers.redis_url, decode_responses=True, socket_timeout=1) as made:
        made.flushall()
        yield made


class Node:
    """A process that would run the jobs."""

    def __init__(self, client: redis.Redis, node: int, directory: Path) -> None:
        self.lost = threading.Event()
        self.waits_for: list[str] = []
        self.leadership = Leadership(
            client, SystemClock(), ttl=TTL, node=node, data_dir=directory, on_lost=self.lost.set
        )

    def lead(self, stop: threading.Event | None = None) -> bool:
        return self.leadership.wait(stop or threading.Event(), self.waits_for.append)


def foreign(client: redis.Redis, ttl: float = TTL) -> Lease:
    """The lease of a process on a machine that cannot be looked at."""
    about = {"node": 9, "machine": uuid4().hex, "pid": 1, "started": 0.0}
    lease = Lease(client, LEASE, ttl=ttl, address=json.dumps(about))
    assert lease.acquire()
    return lease


def test_a_standby_waits_until_the_holder_is_not_heard_of_any_more(
    client: redis.Redis, tmp_path: Path
) -> None:
    foreign(client)
    node = Node(client, 2, tmp_path)
    assert node.lead()
    assert node.waits_for[0] == "node 9 runs the jobs"
    assert node.leadership.lease.epoch == 2
    node.leadership.release()


def test_a_standby_that_is_stopped_takes_nothing(client: redis.Redis, tmp_path: Path) -> None:
    foreign(client, 30)
    stop = threading.Event()
    stop.set()
    assert not Node(client, 2, tmp_path).lead(stop)


def test_a_dead_predecessor_of_this_machine_is_not_waited_for(
    client: redis.Redis, tmp_path: Path
) -> None:
    first = Node(client, 1, tmp_path)
    about = json.loads(first.leadership.lease._address)
    dead = Lease(
        client, LEASE, ttl=600, address=json.dumps({**about, "started": about["started"] - 1})
    )
    assert dead.acquire()
    assert first.lead() and first.leadership.lease.epoch == 2
    first.leadership.release()


def test_a_lease_that_ran_out_unnoticed_is_taken_again_and_one_that_was_taken_is_lost(
    client: redis.Redis, tmp_path: Path
) -> None:
    node = Node(client, 1, tmp_path)
    assert node.lead()
    client.flushall()  # Redis came back with nothing
    eventually(lambda: node.leadership.lease.held and node.leadership.lease.epoch == 2, 10)
    assert not node.lost.is_set()
    client.delete(names.lease(LEASE))
    foreign(client, 30)
    assert node.lost.wait(10), "somebody else leads"


def test_workers_stop_when_somebody_else_leads_and_not_for_an_outage(client: redis.Redis) -> None:
    lease = foreign(client)
    guard = Guard(client, lease.token, TTL)
    guard.check()
    client.delete(names.lease(LEASE))
    guard._until = 0.0
    guard.look()
    guard.check()  # nobody stands by: nobody can have taken over
    client.set(names.standby(), "", ex=60)
    guard.look()
    with pytest.raises(LeaseLost):
        guard.check()
    assert lease.acquire()
    guard.look()
    guard.check()
    client.delete(names.lease(LEASE))
    client.delete(names.standby())
    foreign(client)
    guard.look()
    with pytest.raises(LeaseLost):
        guard.check()


def test_a_worker_that_slept_looks_before_it_publishes(client: redis.Redis) -> None:
    lease = foreign(client, 60)
    guard = Guard(client, lease.token, 60)
    client.delete(names.lease(LEASE))
    foreign(client, 60)
    guard.check()  # it has looked a moment ago
    guard._looked -= 121
    with pytest.raises(LeaseLost):
        guard.check()

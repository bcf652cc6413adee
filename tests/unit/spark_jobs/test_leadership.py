"""One process runs the jobs, the others stand by."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from penstock import names
from penstock.coordination import lease
from penstock.runtime.clock import ManualClock
from spark_jobs import leadership
from spark_jobs.holder import this_machine
from spark_jobs.leadership import LEASE, Leadership
from tests.unit.spark_jobs.driver_kit import MemoryRedis

#: the thread that renews sleeps through the test
_LONG = 600.0
#: it renews every few milliseconds
_SHORT = 0.02


class _Node:
    """A process that wants to run the jobs."""

    def __init__(self, root: Path, ttl: float = _LONG, client: MemoryRedis | None = None) -> None:
        self.clock = ManualClock()
        self.redis = client or MemoryRedis(self.clock)
        self.lost = threading.Event()
        given: Any = self.redis
        self.leadership = Leadership(
            given, self.clock, ttl=ttl, node=1, data_dir=root, on_lost=self.lost.set
        )
        self.stop = threading.Event()
        self.why: list[str] = []

    def wait(self, then: Callable[[], None] | None = None) -> bool:
        """Stand by; *then* happens when it has said for the first time whom it waits for."""

        def waiting(why: str) -> None:
            self.why.append(why)
            if then is None or len(self.why) > 3:
                self.stop.set()
            elif len(self.why) == 1:
                then()

        return self.leadership.wait(self.stop, waiting)

    def hold(self, token: str = "other", epoch: int = 4, **about: Any) -> None:
        """Somebody has the lease."""
        usual = {"node": 2, "machine": "another", "pid": 1, "started": 0.0}
        self.redis.set(f"{names.lease(LEASE)}:epoch", epoch)
        self.redis.set(
            names.lease(LEASE), f"{token}|{epoch}|{json.dumps({**usual, **about})}", px=10_000_000
        )


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Node]:
    monkeypatch.setattr(leadership, "_ASK_SECONDS", 0.001)
    monkeypatch.setattr(leadership, "members", lambda root: [])
    made = _Node(tmp_path)
    yield made
    made.redis.answers = True
    made.leadership.release()


def test_a_free_lease_is_taken_at_once(node):
    assert node.wait()
    assert node.why == []
    held = node.redis.get(names.lease(LEASE))
    assert held.startswith(f"{node.leadership.token}|1|")
    about = json.loads(held.split("|", 2)[2])
    assert (about["node"], about["pid"]) == (1, os.getpid())
    assert node.leadership.lease.held


def test_who_stands_by_says_so_and_for_whom(node):
    node.hold()
    assert not node.wait()
    assert node.why == ["node 2 runs the jobs"]
    assert node.redis.get(names.standby()) == "1"


def test_a_lease_that_ran_out_is_taken_over(node):
    node.hold()
    assert node.wait(then=lambda: node.redis.delete(names.lease(LEASE)))
    assert node.leadership.lease.epoch == 5


def test_a_predecessor_of_this_machine_that_is_dead_is_not_waited_for(node):
    node.hold(machine=this_machine(), pid=2**22 + 1)
    assert node.wait()
    assert node.leadership.lease.epoch == 5


def test_one_that_lives_is_waited_for_and_a_successor_of_its_pid_is_not_it(node):

    started = psutil.Process().create_time()
    node.hold(machine=this_machine(), pid=os.getpid(), started=started)
    assert not node.wait()
    node.hold(machine=this_machine(), pid=os.getpid(), started=started - 1)
    node.stop.clear()
    assert node.wait()


def test_a_standby_beside_the_holder_needs_no_promise_of_it(node):
    started = psutil.Process().create_time()
    node.hold(machine=this_machine(), pid=os.getpid(), started=started)
    assert not node.wait()
    assert node.redis.get(names.standby()) is None


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does nothing."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def _of(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """What a process would say of itself as the holder."""
    started = psutil.Process(process.pid).create_time()
    return {"machine": this_machine(), "pid": process.pid, "started": started}


def test_the_end_of_a_holder_on_this_machine_is_noticed_at_once(node, sleeper, monkeypatch):
    monkeypatch.setattr(leadership, "_ASK_SECONDS", 20)
    node.hold(**_of(sleeper))
    began = time.monotonic()
    # nobody waits for it: it is not reaped meanwhile
    assert node.wait(then=sleeper.kill)
    assert time.monotonic() - began < 15


def test_a_holder_of_this_machine_that_renews_late_is_left_alone(node, sleeper):
    node.hold(**_of(sleeper))

    def run_out() -> None:
        node.redis.delete(names.lease(LEASE))

    assert not node.wait(then=run_out)
    assert sleeper.poll() is None


def test_a_holder_of_this_machine_that_does_not_renew_is_ended_before_its_lease_is_taken(
    node, sleeper
):
    node.hold(**_of(sleeper))

    def waiting(why: str) -> None:
        if why:
            node.redis.delete(names.lease(LEASE))
        else:
            node.clock.advance(_LONG / 2)

    assert node.leadership.wait(node.stop, waiting)
    assert sleeper.wait(10) == -signal.SIGKILL


def test_the_same_pid_on_another_machine_says_nothing(node):
    node.hold(machine="another", pid=2**22 + 1)
    assert not node.wait()


def test_a_node_that_may_sleep_has_to_see_first_that_somebody_stands_by(node):
    node.redis.hset(names.nodes(), "2:spark", "{}")
    assert not node.wait()
    node.why.clear()
    node.stop.clear()
    assert node.wait(then=lambda: node.clock.advance(_LONG / 2))


def test_what_this_node_and_other_services_say_delays_nothing(node):
    node.redis.hset(names.nodes(), "1:spark", "{}")
    node.redis.hset(names.nodes(), "2:store", "{}")
    assert node.wait()


def test_redis_is_waited_for(node):
    node.redis.answers = False

    def come_back() -> None:
        node.redis.answers = True

    assert node.wait(then=come_back)
    assert "Redis does not answer" in node.why[0]


def test_workers_of_a_dead_driver_are_ended_and_not_those_of_this_one(node, sleeper, monkeypatch):
    class _Process:
        def __init__(self, *words: str, pid: int = 2**22 + 1) -> None:
            self.pid = pid
            self.words = list(words)
            self.killed = False

        def cmdline(self) -> list[str]:
            return self.words

        def kill(self) -> None:
            self.killed = True

    worker = _Process("python", "-m", "spark_jobs.daemon")
    jvm = _Process("java", "-Dx=spark_jobs.daemon")
    own = _Process("python", "-m", "spark_jobs.daemon", pid=sleeper.pid)
    monkeypatch.setattr(leadership, "members", lambda root: [worker, jvm, own])
    monkeypatch.setattr(leadership.psutil, "wait_procs", lambda processes, timeout: None)
    assert node.wait()
    assert (worker.killed, jvm.killed, own.killed) == (True, False, False)


def test_whoever_stops_lets_a_standby_take_over_at_once(node):
    node.wait()
    node.leadership.release()
    assert node.redis.get(names.lease(LEASE)) is None
    assert not node.leadership.lease.held


def test_a_lease_that_cannot_be_given_back_runs_out_by_itself(node):
    node.wait()
    node.redis.answers = False
    node.leadership.release()
    node.redis.answers = True
    assert node.redis.get(names.lease(LEASE)) is not None


# -------------------------------------------------------------------- holding it


class _Observed(MemoryRedis):
    """Tells when the lease was taken a second time."""

    def __init__(self) -> None:
        super().__init__()
        self.taken = 0
        self.again = threading.Event()

    def eval(self, script: str, count: int, *given: Any) -> int:
        epoch = super().eval(script, count, *given)
        if script == lease._ACQUIRE and epoch:
            self.taken += 1
            if self.taken == 2:
                self.again.set()
        return epoch


@pytest.fixture
def holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Node]:
    """A node that has the lease and renews it all the time."""
    monkeypatch.setattr(leadership, "_ASK_SECONDS", 0.001)
    monkeypatch.setattr(leadership, "members", lambda root: [])
    made = _Node(tmp_path, _SHORT, _Observed())
    assert made.wait()
    yield made
    made.leadership.release()


def test_a_lease_that_went_with_redis_data_is_held_again(holder):
    holder.redis.delete(names.lease(LEASE))
    assert holder.redis.again.wait(5)
    assert not holder.lost.is_set()


def test_whoever_finds_another_holder_stops(holder):
    holder.hold(epoch=9)
    assert holder.lost.wait(5)


def test_whoever_finds_that_another_has_led_in_between_stops(holder):
    with_epoch = f"{names.lease(LEASE)}:epoch"
    holder.redis.set(with_epoch, 7)
    holder.redis.delete(names.lease(LEASE))
    assert holder.lost.wait(5)
    assert holder.redis.get(names.lease(LEASE)) is None  # given back


def test_without_redis_a_holder_stops_only_where_somebody_stands_by(holder):
    seen = threading.Event()
    exists = holder.redis.exists

    def note(key: str) -> int:
        found = exists(key)
        if found:
            seen.set()
        return found

    holder.redis.exists = note
    holder.redis.answers = False
    holder.clock.advance(10)
    assert not holder.lost.wait(0.05)
    holder.redis.answers = True
    holder.redis.set(names.standby(), "2")
    assert seen.wait(5)
    holder.redis.answers = False
    holder.clock.advance(10)
    assert holder.lost.wait(5)

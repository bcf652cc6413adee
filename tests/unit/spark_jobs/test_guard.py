"""A worker's own look at the lease: who may publish, who has to stop."""

from __future__ import annotations

import os
from typing import Any

import pytest

from penstock import names
from penstock.errors import LeaseLost
from penstock.runtime.clock import ManualClock
from spark_jobs.guard import EXIT_LOST, Guard
from spark_jobs.leadership import LEASE
from tests.unit.spark_jobs.driver_kit import MemoryRedis

#: long enough that the thread which looks sleeps through the test
_TTL = 600.0


class _Worker:
    """A worker whose driver has the token `mine`."""

    def __init__(self, holder: str | None = "mine", *, standby: bool = False) -> None:
        self.clock = ManualClock()
        self.redis = MemoryRedis(self.clock)
        if holder is not None:
            self.hold(holder)
        if standby:
            self.redis.set(names.standby(), "2")
        client: Any = self.redis
        self.guard = Guard(client, "mine", _TTL, self.clock)

    def hold(self, token: str, seconds: float = _TTL) -> None:
        self.redis.set(names.lease(LEASE), f"{token}|1|address", px=int(seconds * 1000))


def test_the_worker_of_the_holder_goes_on():
    worker = _Worker()
    worker.guard.check()
    worker.clock.advance(_TTL / 2)
    worker.guard.check()


def test_a_worker_stops_once_somebody_else_has_the_lease():
    worker = _Worker()
    worker.hold("other")
    worker.guard.check()  # it has not looked yet
    worker.guard.look()
    with pytest.raises(LeaseLost):
        worker.guard.check()
    worker.hold("mine")
    worker.guard.look()
    with pytest.raises(LeaseLost):  # what was published in between is not known
        worker.guard.check()


def test_a_holder_whose_token_begins_alike_is_another():
    worker = _Worker()
    worker.hold("mine2")
    worker.guard.look()
    with pytest.raises(LeaseLost):
        worker.guard.check()


def test_while_nobody_stands_by_a_lease_that_ran_out_stops_nobody():
    worker = _Worker()
    worker.redis.answers = False
    worker.clock.advance(1.5 * _TTL)
    worker.guard.check()


def test_where_somebody_stands_by_it_does():
    worker = _Worker(standby=True)
    worker.clock.advance(0.9 * _TTL)
    worker.guard.check()
    worker.redis.answers = False
    worker.clock.advance(0.2 * _TTL)
    with pytest.raises(LeaseLost):
        worker.guard.check()


def test_a_lease_that_was_renewed_is_as_long_as_redis_says():
    worker = _Worker(standby=True)
    worker.clock.advance(0.9 * _TTL)
    worker.hold("mine", seconds=100)
    worker.guard.look()
    worker.clock.advance(99)
    worker.guard.check()
    worker.clock.advance(2)
    with pytest.raises(LeaseLost):
        worker.guard.check()


def test_a_process_that_slept_looks_before_it_goes_on():
    worker = _Worker()
    worker.hold("other", seconds=100 * _TTL)
    worker.clock.advance(3 * _TTL)
    with pytest.raises(LeaseLost):
        worker.guard.check()


def test_without_a_token_nothing_is_guarded():
    client: Any = MemoryRedis()
    client.answers = False
    clock = ManualClock()
    guard = Guard(client, "", _TTL, clock)
    clock.advance(10 * _TTL)
    guard.check()


def test_enforcing_ends_the_process(monkeypatch):
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    worker = _Worker()
    worker.guard.enforce()
    assert ended == []
    worker.hold("other")
    worker.guard.look()
    worker.guard.enforce()
    assert ended == [EXIT_LOST]

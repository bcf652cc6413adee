"""A lease's own part: its epoch, its clock, and what an answer of Redis means.

The scripts themselves run against a real Redis in tests/stack/test_lease.py.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest
import redis

from penstock import names
from penstock.coordination.lease import Holder, Lease
from penstock.errors import LeaseLost, RemoteError
from penstock.runtime.clock import ManualClock


class Server:
    """Answers of Redis, the next one first, and what was asked."""

    def __init__(self, *answers: Any, value: Any = None) -> None:
        self.answers = list(answers)
        self.value = value
        self.asked: list[tuple[list[str], list[Any]]] = []

    def eval(self, script: str, count: int, *rest: Any) -> Any:
        assert script
        self.asked.append((list(rest[:count]), list(rest[count:])))
        answer = self.answers.pop(0) if self.answers else 0
        if isinstance(answer, Exception):
            raise answer
        return answer

    def get(self, key: str) -> Any:
        assert key == names.lease("x")
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


def lease(server: Server, clock: ManualClock | None = None, **options: Any) -> Lease:
    return Lease(server, "x", clock=clock or ManualClock(), **options)  # type: ignore[arg-type]


DOWN = redis.ConnectionError("down")


def test_nothing_is_held_before_it_is_acquired() -> None:
    held = lease(Server())
    assert (held.epoch, held.held) == (0, False)
    with pytest.raises(LeaseLost):
        held.check()
    with pytest.raises(LeaseLost):
        held.renew()


def test_acquiring_says_who_for_how_long_and_which_epochs_are_known() -> None:
    server = Server(7)
    held = lease(server, ttl=2.5, address="here:1")
    assert held.acquire(seen=6)
    assert (held.epoch, held.held) == (7, True)
    key = names.lease("x")
    assert server.asked == [([key, f"{key}:epoch"], [held.token, 2500, 6, "here:1"])]


def test_a_lease_that_somebody_has_is_not_acquired() -> None:
    held = lease(Server(0))
    assert not held.acquire()
    assert (held.epoch, held.held) == (0, False)


def test_each_hold_has_a_token_of_its_own() -> None:
    first, second = lease(Server()), lease(Server())
    assert first.token != second.token and first.token == first.token


def test_time_runs_from_before_the_question() -> None:
    clock = ManualClock()

    class Slow(Server):
        def eval(self, script: str, count: int, *rest: Any) -> Any:
            clock.advance(1.0)
            return super().eval(script, count, *rest)

    held = lease(Slow(7, 1), clock, ttl=5.0)
    held.acquire()
    clock.advance(3.9)
    assert held.held
    clock.advance(0.2)
    assert not held.held
    with pytest.raises(LeaseLost) as lost:
        held.check()
    assert lost.value.epoch == 7
    assert held.epoch == 0


def test_renewing_starts_the_time_anew() -> None:
    clock = ManualClock()
    server = Server(7, 1)
    held = lease(server, clock, ttl=5.0)
    held.acquire()
    clock.advance(4.0)
    held.renew()
    clock.advance(4.0)
    assert held.held
    held.check()
    assert server.asked[1] == ([names.lease("x")], [held.token, 5000])


def test_a_lease_that_another_has_is_lost() -> None:
    held = lease(Server(7, 0))
    held.acquire()
    with pytest.raises(LeaseLost) as lost:
        held.renew()
    assert (lost.value.name, lost.value.epoch) == ("x", 7)
    assert (held.held, held.epoch) == (False, 0)


def test_a_redis_that_does_not_answer_takes_no_lease_away() -> None:
    clock = ManualClock()
    held = lease(Server(7, DOWN), clock, ttl=5.0)
    held.acquire()
    with pytest.raises(RemoteError) as error:
        held.renew()
    assert error.value.code == "E_REDIS"
    assert held.held
    clock.advance(5.0)
    assert not held.held


def test_releasing_gives_back_only_what_is_held() -> None:
    server = Server()
    held = lease(server)
    held.release()
    assert server.asked == []
    server.answers = [7, 1]
    held.acquire()
    held.release()
    assert server.asked[-1] == ([names.lease("x")], [held.token])
    assert not held.held


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (None, None),
        (b"token|7|here:1", Holder(7, "here:1")),
        ("token|7|", Holder(7, "")),
        (b"token|7|a|b", Holder(7, "a|b")),
    ],
)
def test_the_holder_is_told_with_its_address(value: Any, wanted: Holder | None) -> None:
    assert lease(Server(value=value)).holder() == wanted


def test_a_redis_that_does_not_answer_tells_no_holder() -> None:
    with pytest.raises(RemoteError, match="Redis does not answer"):
        lease(Server(value=DOWN)).holder()
    with pytest.raises(RemoteError):
        lease(Server(DOWN)).acquire()


def test_a_lease_is_revoked_by_its_epoch() -> None:
    server = Server(1, 0)
    other = lease(server)
    assert other.revoke(Holder(7, "there"))
    assert not other.revoke(Holder(7, "there"))
    assert server.asked[0] == ([names.lease("x")], [7])


@pytest.mark.parametrize("answer", [0, DOWN])
def test_a_lease_that_is_kept_tells_its_end_once(answer: Any) -> None:
    clock = ManualClock()
    server = Server(7, answer)
    held = lease(server, clock, ttl=0.003)
    held.acquire()
    clock.advance(1.0)
    lost: list[LeaseLost] = []
    told = threading.Event()

    def on_lost(error: LeaseLost) -> None:
        lost.append(error)
        told.set()

    held.keep(on_lost)
    assert told.wait(10)
    held.release()
    assert [(e.name, e.epoch) for e in lost] == [("x", 7)]


def test_a_lease_is_kept_until_it_is_released() -> None:
    renewed = threading.Event()

    class Counting(Server):
        def eval(self, script: str, count: int, *rest: Any) -> Any:
            if len(self.asked) > 2:
                renewed.set()
            return super().eval(script, count, *rest)

    server = Counting(*[1] * 100_000)
    held = lease(server, ttl=0.003)
    held.acquire()
    held.keep(lambda lost: pytest.fail("it is held"))
    assert renewed.wait(10)
    held.release()
    asked = len(server.asked)
    assert server.asked[-1] == ([names.lease("x")], [held.token])
    assert len(server.asked) == asked

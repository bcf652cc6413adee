"""Writes that wait for the thread that publishes them, and what becomes of records sent together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from gateway.coalescer import PendingWrite
from gateway.flush import RowFlush, WriteOutcome
from gateway.idempotency import Receipt
from gateway.write_queue import WriteQueue
from penstock.bus import Delivery
from penstock.errors import BusError, OverloadError
from penstock.runtime.clock import ManualClock
from tests.unit.gateway.test_rows import METERS


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def write(loop: asyncio.AbstractEventLoop, size: int = 10) -> PendingWrite:
    return PendingWrite(METERS, [], 1, size, loop.create_future())


def test_writes_leave_together_and_free_their_memory(loop: asyncio.AbstractEventLoop) -> None:
    queue = WriteQueue(ManualClock(), 25, 10)
    first = write(loop)
    second = write(loop)
    queue.put(first)
    queue.put(second)
    assert queue.pending == (2, 20)
    with pytest.raises(OverloadError):
        queue.put(write(loop))
    assert queue.take() == [[first, second]]
    assert queue.pending == (2, 20), "they are on their way"
    queue.release([first, second])
    assert queue.pending == (0, 0)


def test_what_is_held_comes_again_when_it_is_looked_at(loop: asyncio.AbstractEventLoop) -> None:
    queue = WriteQueue(ManualClock(), 100, 10)
    held = write(loop)
    queue.hold([held])
    assert queue.held == [held]
    queue.look_again()
    assert queue.take() == [[held]]
    assert queue.held == []


def test_a_queue_that_closes_gives_what_there_is_and_then_nothing(
    loop: asyncio.AbstractEventLoop,
) -> None:
    queue = WriteQueue(ManualClock(), 100, 10)
    last = write(loop)
    queue.put(last)
    queue.close()
    assert queue.take() == [[last]]
    assert queue.take() is None


class Flushing:
    """A flush of two writes in three records."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.writes = [write(loop), write(loop)]
        self.outcomes: list[list[tuple[PendingWrite, WriteOutcome]]] = []
        self.acked: dict[tuple[str, int], int] = {("t", 0): 9}
        receipts: list[tuple[PendingWrite, WriteOutcome]] = [
            (w, Receipt(n)) for n, w in enumerate(self.writes)
        ]
        self.flush = RowFlush(3, receipts, self.outcomes.append, self.acked)


def test_a_flush_is_settled_by_its_last_record(loop: asyncio.AbstractEventLoop) -> None:
    flushing = Flushing(loop)
    flushing.flush.count(Delivery("t", 0, 5, 0))
    flushing.flush.count(Delivery("t", 1, 7, 0))
    assert flushing.outcomes == []
    flushing.flush.count(Delivery("t", 1, 6, 0))
    (outcomes,) = flushing.outcomes
    assert [o for _, o in outcomes] == [Receipt(0), Receipt(1)]
    assert flushing.acked == {("t", 0): 9, ("t", 1): 7}, "the newest of each partition"


def test_one_record_that_fails_fails_all_writes_of_a_flush(loop: asyncio.AbstractEventLoop) -> None:
    flushing = Flushing(loop)
    first = BusError("not enough replicas")
    flushing.flush.count(first)
    flushing.flush.count(Delivery("t", 1, 7, 0))
    flushing.flush.count(BusError("another"))
    (outcomes,) = flushing.outcomes
    assert [o for _, o in outcomes] == [first, first]
    assert flushing.acked[("t", 1)] == 7

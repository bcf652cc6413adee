from __future__ import annotations

import asyncio

import pytest

from penstock.errors import OverloadError
from penstock.runtime.clock import ManualClock
from penstock.runtime.limits import Open, Rate, Turns


def test_a_rate_lets_a_burst_through_and_then_its_share() -> None:
    clock = ManualClock()
    rate = Rate(10, clock)
    for _ in range(20):
        rate.spend("ann")
    with pytest.raises(OverloadError, match="10 requests a second"):
        rate.spend("ann")
    rate.spend("bob")
    clock.advance(0.1)
    rate.spend("ann")
    with pytest.raises(OverloadError):
        rate.spend("ann")


def test_less_than_one_a_second() -> None:
    clock = ManualClock()
    rate = Rate(0.1, clock)
    rate.spend("ann")
    clock.advance(9)
    with pytest.raises(OverloadError):
        rate.spend("ann")
    clock.advance(1.001)
    rate.spend("ann")


def test_zero_is_no_limit() -> None:
    rate = Rate(0, ManualClock())
    many = Open(0)
    for _ in range(10_000):
        rate.spend("ann")
        many.enter("ann")


def test_what_is_open_is_counted_by_caller() -> None:
    held = Open(2)
    with held.inside("a"), held.inside("a"), held.inside("b"):
        with pytest.raises(OverloadError), held.inside("a"):
            pass
        assert (held.count("a"), held.count("b")) == (2, 1)
    assert held.count("a") == held.count("b") == 0
    with held.inside("a"):
        pass


def test_turns_are_taken_in_order_and_a_full_queue_refuses_at_once() -> None:
    async def run() -> None:
        turns = Turns(2, 3)
        order = []
        go = asyncio.Event()

        async def query(number: int) -> None:
            async with turns.turn("ann"):
                order.append(number)
                await go.wait()

        tasks = [asyncio.create_task(query(n)) for n in range(5)]
        await asyncio.sleep(0)
        assert order == [0, 1]
        with pytest.raises(OverloadError, match="2 queries of ann run and 3 wait"):
            await query(5)
        async with turns.turn("bob"):  # others have turns of their own
            pass
        tasks[3].cancel()  # who gives up waiting takes nobody's turn
        go.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert order == [0, 1, 2, 4]
        async with turns.turn("ann"), turns.turn("ann"):
            pass

    asyncio.run(run())


def test_a_turn_that_came_to_one_who_gave_up_goes_on_to_the_next() -> None:
    async def run() -> None:
        turns = Turns(1, 3)
        async with turns.turn("ann"):
            given_up = asyncio.create_task(turns._enter("ann"))
            await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        async with asyncio.timeout(30), turns.turn("ann"):
            pass

    asyncio.run(run())

from __future__ import annotations

import asyncio

from services.tables.arrivals import Arrivals


async def test_an_announcement_in_the_loop_wakes_at_once_and_only_once():
    arrivals = Arrivals(asyncio.get_running_loop())
    before = arrivals.upcoming()
    arrivals.announce()
    assert before.is_set()
    assert not arrivals.upcoming().is_set()


async def test_an_announcement_of_another_thread_wakes_who_waits():
    arrivals = Arrivals(asyncio.get_running_loop())
    before = arrivals.upcoming()
    await asyncio.to_thread(arrivals.announce)
    async with asyncio.timeout(5):
        await before.wait()


def test_nobody_is_told_once_the_loop_is_closed():
    loop = asyncio.new_event_loop()
    arrivals = Arrivals(loop)
    loop.close()
    arrivals.announce()
    assert not arrivals.upcoming().is_set()

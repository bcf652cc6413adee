"""Ticks go to who works in real time, and do not pile up before who is behind."""

from __future__ import annotations

from penstock.bus import Delivery
from penstock.errors import BusError
from spark_jobs.tick_throttle import TickThrottle

HERE = ("in.d", 0)
THERE = ("in.d", 1)


def ticked(throttle: TickThrottle, seconds: int, position: int | None) -> list[int]:
    """In which of *seconds* a partition was ticked whose processor stands still at *position*; each
    tick is the next record.
    """
    found: list[int] = []
    for now in range(seconds):
        if throttle.allows(HERE, position, now):
            throttle.note_delivery(HERE, now, Delivery("in.d", 0, 100 + len(found), 0))
            found.append(now)
    return found


def test_who_keeps_up_is_ticked_every_time() -> None:
    throttle = TickThrottle(1.0)
    for now in range(100):
        assert throttle.allows(HERE, 100 + now - 3, now), (
            "a snapshot says a little later where the processor is"
        )
        throttle.note_delivery(HERE, now, Delivery("in.d", 0, 100 + now, 0))


def test_who_stands_still_is_ticked_for_seconds_and_then_rarely() -> None:
    assert ticked(TickThrottle(1.0), 70, 100) == [*range(5), *range(31, 36), *range(62, 67)]


def test_where_snapshots_are_rare_ticks_wait_for_longer() -> None:
    assert ticked(TickThrottle(20.0), 130, 100) == [*range(60), *range(121, 130)]


def test_ticks_come_again_when_the_waiting_one_is_passed() -> None:
    throttle = TickThrottle(1.0)
    ticked(throttle, 10, 100)
    assert not throttle.allows(HERE, 100, 10) and throttle.allows(THERE, 0, 10)
    assert throttle.allows(HERE, 101, 10)


def test_nobody_waits_for_a_place_that_is_not_known_or_a_tick_that_is_not_there() -> None:
    assert ticked(TickThrottle(1.0), 20, None) == list(range(20))
    throttle = TickThrottle(1.0)
    throttle.note_delivery(HERE, 0.0, BusError("the record was not written"))
    assert throttle.allows(HERE, 0, 20.0)


def test_what_is_no_longer_ticked_is_forgotten() -> None:
    throttle = TickThrottle(1.0)
    ticked(throttle, 10, 100)
    throttle.keep({"in.d"})
    assert not throttle.allows(HERE, 100, 10)
    throttle.keep({"in.other"})
    assert throttle.allows(HERE, 100, 10)

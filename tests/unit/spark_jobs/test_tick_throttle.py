"""Ticks go to who works in real time, and do not pile up before who is behind."""

from __future__ import annotations

from penstock.bus import Delivery
from penstock.errors import BusError
from spark_jobs.pace import Pace

HERE = ("in.d", 0)
THERE = ("in.d", 1)


def ticked(pace: Pace, seconds: int, position: int | None) -> list[int]:
    """In which of *seconds* a partition was ticked whose lane stands still at *position*; each tick
    is the next record.
    """
    found: list[int] = []
    for now in range(seconds):
        if pace.allows(HERE, position, now):
            pace.sent(HERE, now, Delivery("in.d", 0, 100 + len(found), 0))
            found.append(now)
    return found


def test_who_keeps_up_is_ticked_every_time() -> None:
    pace = Pace(1.0)
    for now in range(100):
        assert pace.allows(HERE, 100 + now - 3, now), (
            "a snapshot says a little later where the lane is"
        )
        pace.sent(HERE, now, Delivery("in.d", 0, 100 + now, 0))


def test_who_stands_still_is_ticked_for_seconds_and_then_rarely() -> None:
    assert ticked(Pace(1.0), 70, 100) == [*range(5), *range(31, 36), *range(62, 67)]


def test_where_snapshots_are_rare_ticks_wait_for_longer() -> None:
    assert ticked(Pace(20.0), 130, 100) == [*range(60), *range(121, 130)]


def test_ticks_come_again_when_the_waiting_one_is_passed() -> None:
    pace = Pace(1.0)
    ticked(pace, 10, 100)
    assert not pace.allows(HERE, 100, 10) and pace.allows(THERE, 0, 10)
    assert pace.allows(HERE, 101, 10)


def test_nobody_waits_for_a_place_that_is_not_known_or_a_tick_that_is_not_there() -> None:
    assert ticked(Pace(1.0), 20, None) == list(range(20))
    pace = Pace(1.0)
    pace.sent(HERE, 0.0, BusError("the record was not written"))
    assert pace.allows(HERE, 0, 20.0)


def test_what_is_no_longer_ticked_is_forgotten() -> None:
    pace = Pace(1.0)
    ticked(pace, 10, 100)
    pace.keep({"in.d"})
    assert not pace.allows(HERE, 100, 10)
    pace.keep({"in.other"})
    assert pace.allows(HERE, 100, 10)

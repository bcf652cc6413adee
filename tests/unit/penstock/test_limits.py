from __future__ import annotations

import pytest

from penstock.clock import ManualClock
from penstock.errors import OverloadError
from penstock.limits import Open, Rate


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
    rate, many = Rate(0, ManualClock()), Open(0)
    for _ in range(10_000):
        rate.spend("ann")
        many.enter("ann")


def test_what_is_open_is_counted_by_caller() -> None:
    held = Open(2)
    with held.entered("a"), held.entered("a"), held.entered("b"):
        with pytest.raises(OverloadError), held.entered("a"):
            pass
        assert (held.count("a"), held.count("b")) == (2, 1)
    assert held.count("a") == held.count("b") == 0
    with held.entered("a"):
        pass

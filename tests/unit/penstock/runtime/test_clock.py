from __future__ import annotations

import pytest

from penstock.runtime.clock import ManualClock, SystemClock, milliseconds


def test_manual_clock_moves_only_when_told() -> None:
    clock = ManualClock(5_000_000_000)
    assert (clock.now(), clock.monotonic()) == (5_000_000_000, 0.0)
    clock.advance(1.5)
    assert (milliseconds(clock), clock.monotonic()) == (6_500, 1.5)
    with pytest.raises(ValueError, match="back"):
        clock.advance(-1)


def test_system_clock_goes_on() -> None:
    clock = SystemClock()
    assert clock.now() > 1_600_000_000 * 10**9
    assert clock.monotonic() <= clock.monotonic()

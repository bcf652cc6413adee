"""Time as a value that is passed in: what the time is, so that a test can say it."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> int:
        """Wall time, nanoseconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back, for deadlines and intervals."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> int:
        return time.time_ns()

    def monotonic(self) -> float:
        return time.monotonic()


class ManualClock:
    """Stands still until it is advanced."""

    def __init__(self, now: int = 0) -> None:
        self._lock = threading.Lock()
        self._now = self._started = now

    def now(self) -> int:
        return self._now

    def monotonic(self) -> float:
        return (self._now - self._started) / 1e9

    def advance(self, seconds: float) -> None:
        """Let *seconds* pass."""
        if seconds < 0:
            raise ValueError("time does not go back")
        with self._lock:
            self._now += round(seconds * 1e9)


def milliseconds(clock: Clock) -> int:
    """Wall time in milliseconds since the epoch."""
    return clock.now() // 1_000_000

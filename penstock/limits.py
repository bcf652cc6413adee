"""How much one caller may ask of a door: requests a second, and how many at once. Pure decisions; the clock is passed in.

What is over a limit is refused at once with E_OVERLOAD (429), nothing is queued: a caller that is slowed down elsewhere (by a window of
unanswered frames, by a full queue to Kafka) never comes here. Zero means no limit.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.clock import Clock
from penstock.errors import OverloadError

#: callers remembered; who was quiet longest is forgotten first
_MOST = 10_000


class Rate:
    """A bucket of tokens for each caller: filled at `per_second`, as large as two seconds' worth. One thread."""

    def __init__(self, per_second: float, clock: Clock) -> None:
        self._rate, self._clock = per_second, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def spend(self, who: str) -> None:
        """Count one request of *who*. Raises OverloadError."""
        if not self._rate:
            return
        now, most = self._clock.monotonic(), max(2 * self._rate, 1.0)
        left, at = self._buckets.pop(who, (most, now))
        left = min(left + (now - at) * self._rate, most)
        self._buckets[who] = (left - 1 if left >= 1 else left, now)
        if len(self._buckets) > _MOST:
            self._buckets.popitem(last=False)
        if left < 1:
            raise OverloadError(f"more than {self._rate:g} requests a second", hint="send more rows in fewer requests")


class Open:
    """How many requests or connections each caller has open. One thread."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._counts: dict[str, int] = {}

    def enter(self, who: str) -> None:
        """One more. Raises OverloadError."""
        count = self._counts.get(who, 0)
        if self._most and count >= self._most:
            raise OverloadError(f"{count} requests and connections are open from this address", hint="close some")
        self._counts[who] = count + 1

    def count(self, who: str) -> int:
        return self._counts.get(who, 0)

    def leave(self, who: str) -> None:
        count = self._counts.get(who, 0) - 1
        if count > 0:
            self._counts[who] = count
        else:
            self._counts.pop(who, None)

    @contextmanager
    def entered(self, who: str) -> Iterator[None]:
        """Inside, *who* has one more. Raises OverloadError."""
        self.enter(who)
        try:
            yield
        finally:
            self.leave(who)

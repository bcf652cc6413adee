"""How much one caller may ask of an endpoint: requests a second, and how many at once. Pure
decisions; the clock is passed in.

What is over a limit is refused at once with E_OVERLOAD (429); only `Turns` has a queue, a short
one. A caller that is slowed down elsewhere (by a window of unanswered frames, by a full queue to
Kafka) never comes here. Zero means no limit.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from penstock.errors import OverloadError
from penstock.runtime.clock import Clock

#: callers remembered; who was quiet longest is forgotten first
_MOST = 10_000


class Rate:
    """A bucket of tokens for each caller: filled at `per_second`, as large as two seconds' worth.
    One thread.
    """

    def __init__(self, per_second: float, clock: Clock) -> None:
        self._rate = per_second
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def spend(self, who: str) -> None:
        """Count one request of *who*. Raises OverloadError."""
        if not self._rate:
            return
        now = self._clock.monotonic()
        most = max(2 * self._rate, 1.0)
        left, at = self._buckets.pop(who, (most, now))
        left = min(left + (now - at) * self._rate, most)
        self._buckets[who] = (left - 1 if left >= 1 else left, now)
        if len(self._buckets) > _MOST:
            self._buckets.popitem(last=False)
        if left < 1:
            raise OverloadError(
                f"more than {self._rate:g} requests a second",
                hint="send more rows in fewer requests",
            )


class Turns:
    """So many at once for each caller, and a queue for each. Event loop only."""

    def __init__(self, at_once: int, waiting: int) -> None:
        """
        Args:
            at_once: what one caller may have under way; 0: as much as comes.
            waiting: what may wait behind that.
        """
        self._at_once = at_once
        self._waiting = waiting
        self._under_way: dict[str, int] = {}
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def turn(self, who: str) -> AsyncIterator[None]:
        """Wait until *who* may have another one under way.

        Raises:
            OverloadError: the queue is full.
        """
        await self._enter(who)
        try:
            yield
        finally:
            self._leave(who)

    async def _enter(self, who: str) -> None:
        if not self._at_once or self._under_way.get(who, 0) < self._at_once:
            self._under_way[who] = self._under_way.get(who, 0) + 1
            return
        queue = self._queues.setdefault(who, deque())
        if len(queue) >= self._waiting:
            raise OverloadError(
                f"{self._at_once} queries of {who} run and {len(queue)} wait",
                hint="send fewer at a time, or try again",
            )
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave(who)  # it was this one's turn already
            raise

    def _leave(self, who: str) -> None:
        """Hand the place on to the one that waits longest."""
        queue = self._queues.get(who)
        while queue:
            waiting = queue.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return
        self._queues.pop(who, None)
        left = self._under_way[who] - 1
        if left:
            self._under_way[who] = left
        else:
            del self._under_way[who]


class Open:
    """Counts the requests or connections that each caller has open. One thread."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._counts: dict[str, int] = {}

    def enter(self, who: str) -> None:
        """One more. Raises OverloadError."""
        count = self._counts.get(who, 0)
        if self._most and count >= self._most:
            raise OverloadError(
                f"{count} requests and connections are open from this address", hint="close some"
            )
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
    def inside(self, who: str) -> Iterator[None]:
        """Count one more for *who* while inside. Raises OverloadError."""
        self.enter(who)
        try:
            yield
        finally:
            self.leave(who)

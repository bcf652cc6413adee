"""Reports for Redis, made in order; while it does not answer they wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

import redis

from penstock.runtime.log import get

log = get(__name__)
Report = Callable[[], None]


class RedisReports:
    """Used by the thread that reads the log."""

    def __init__(self) -> None:
        self._owed: deque[Report] = deque()

    def owe(self, report: Report) -> None:
        self._owed.append(report)

    def add(self, reports: Iterable[Report]) -> None:
        """Make *reports*, at once unless earlier ones wait."""
        at_once = not self._owed
        self._owed.extend(reports)
        if at_once:
            self.make()

    def make(self) -> None:
        """Make what is owed. While Redis does not answer, the rest stays owed."""
        try:
            while self._owed:
                self._owed[0]()
                self._owed.popleft()
        except redis.RedisError as error:
            log.warning(
                "latest rows and barriers wait for redis", error=str(error), owed=len(self._owed)
            )

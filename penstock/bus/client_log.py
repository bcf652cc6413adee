"""What librdkafka logs: that a broker is away is said now and then, not with each try."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

_FAILURE = "FAIL "
#: one failure of a client in so many seconds is enough: it tries twenty times a second
_SECONDS = 10.0
#: clients that are remembered
_MOST = 1_000


class FailuresNowAndThen(logging.Filter):
    """Lets a client's failed connections through once in a while."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._told: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return False for a failure that was told lately. Others pass."""
        text = record.getMessage()
        if not text.startswith(_FAILURE):
            return True
        client = text.split("]", 1)[0]
        now = self._clock()
        if now - self._told.get(client, -_SECONDS) < _SECONDS:
            return False
        if len(self._told) >= _MOST:
            self._told.clear()
        self._told[client] = now
        return True


#: where librdkafka's own lines go instead of stderr
LOGGER = logging.getLogger("penstock.kafka")
LOGGER.addFilter(FailuresNowAndThen())

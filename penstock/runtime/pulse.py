"""The pulse of an event loop: how long ago it last came round, asked from another thread."""

from __future__ import annotations

import asyncio
import time

_BEAT_SECONDS = 0.25


class Pulse:
    """Beat in *loop* from now on, until it closes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._beat()

    def late(self) -> float:
        """Return the seconds since the loop last came round. Any thread."""
        return max(time.monotonic() - self._last - _BEAT_SECONDS, 0.0)

    def _beat(self) -> None:
        self._last = time.monotonic()
        self._loop.call_later(_BEAT_SECONDS, self._beat)

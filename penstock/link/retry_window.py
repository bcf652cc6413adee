"""For how long, and how often, a lost link is tried again."""

from __future__ import annotations

import time

_SHORTEST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0


class RetryWindow:
    """The time for attempts since the link was lost, and the pauses between them."""

    def __init__(self, milliseconds: int, max_retries: int) -> None:
        """`max_retries` of 0: as many as there is time for."""
        self._milliseconds = milliseconds
        self._max_retries = max_retries
        self.begin()

    def begin(self) -> None:
        """Begin anew: the link is there."""
        self._lost_at = time.monotonic()
        self._pause = _SHORTEST_PAUSE

    def note_loss(self) -> None:
        """Count from now: the link was there until this moment."""
        self._lost_at = time.monotonic()

    def is_over(self, attempts: int) -> bool:
        """Tell whether *attempts* were enough."""
        if (time.monotonic() - self._lost_at) * 1000 > self._milliseconds:
            return True
        return self._milliseconds == 0 or 0 < self._max_retries <= attempts

    def pause(self) -> float:
        """Return the seconds until the next attempt: longer each time."""
        pause = self._pause
        self._pause = min(pause * 2, _LONGEST_PAUSE)
        return pause

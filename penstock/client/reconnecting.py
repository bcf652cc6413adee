"""Pauses between attempts to reach a service that is away, and what the log says of it meanwhile.

Knows no connection: whoever connects asks for the next pause and waits in its own way.
"""

from __future__ import annotations

import logging
import random
import time
from datetime import UTC, datetime

LOGGER = logging.getLogger("penstock.client")

#: a pause is this part of the time that the service has been away, so that the return of one that
#: was away for long is noticed a tenth later than it could be
_PART = 0.1
_SHORTEST = 0.05
_LONGEST = 10.0
#: seconds after which the log says it first; then after twice as many, at most so many
_FIRST_NOTICE = 5.0
_RAREST_NOTICE = 600.0


class Reconnecting:
    """Attempts of one connection: `failed` and `succeeded` say how each of them ended."""

    def __init__(self, service: str, waits: str, patience: float | None) -> None:
        """
        Args:
            service: what is waited for, as the log calls it.
            waits: who waits for it, as the log calls that.
            patience: seconds after which to give up; None: never.
        """
        self._service = service
        self._waits = waits
        self._patience = patience
        self._down_since: float | None = None
        self._down_at = ""
        self._next_attempt = 0.0
        self._notice_after = _FIRST_NOTICE
        self._noticed = False

    @property
    def away_since(self) -> str:
        """Time of the first failure behind the last success; empty: there was none."""
        return self._down_at

    def seconds_left(self) -> float:
        """Return the seconds until the next attempt; 0 or less: it may be made."""
        return 0.0 if self._down_since is None else self._next_attempt - time.monotonic()

    def failed(self, why: str) -> bool:
        """Put off the next attempt. Return False when patience is over."""
        now = time.monotonic()
        if self._down_since is None:
            self._down_since = now
            self._down_at = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        away = now - self._down_since
        if self._patience is not None and away >= self._patience:
            return False
        if away >= self._notice_after:
            self._notice(why, away)
        pause = min(max(away * _PART, _SHORTEST), _LONGEST)
        # those who lost it together do not come back together
        pause *= random.uniform(0.75, 1.25)
        if self._patience is not None:
            pause = min(pause, self._patience - away)
        self._next_attempt = now + pause
        return True

    def succeeded(self) -> None:
        """Forget the failures; the log says that the service is there if it said that it is not."""
        if self._noticed and self._down_since is not None:
            away = time.monotonic() - self._down_since
            LOGGER.warning(
                "%s is there again after %.0f s: %s goes on behind what it has",
                self._service,
                away,
                self._waits,
            )
        self._down_since = None
        self._down_at = ""
        self._notice_after = _FIRST_NOTICE
        self._noticed = False

    def _notice(self, why: str, away: float) -> None:
        self._noticed = True
        self._notice_after = away + min(away, _RAREST_NOTICE)
        LOGGER.warning(
            "%s has not been reached since %s (%s): %s waits for it",
            self._service,
            self._down_at,
            why,
            self._waits,
        )

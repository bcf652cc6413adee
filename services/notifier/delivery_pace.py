"""How much a target gets at a time, and how long it is left alone after a failure."""

from __future__ import annotations

from services.notifier.target_connection import TargetLimits


class DeliveryPace:
    """Slower after each failure; as fast as may be after a success."""

    def __init__(self, limits: TargetLimits, first_wait: float) -> None:
        """
        Args:
            first_wait: seconds to wait after the first failure.
        """
        self._limits = limits
        self._first_wait = first_wait
        #: messages that are sent together, at most
        self.at_once = limits.messages
        #: seconds that were waited last; 0 once something went through
        self.delay = 0.0

    def note_success(self) -> None:
        self.delay = 0.0
        self.at_once = min(self.at_once * 2, self._limits.messages)

    def note_slowness(self, messages: int) -> None:
        """Send less together: *messages* took too long."""
        self.at_once = max(messages // 4, 1)

    def note_break(self) -> None:
        """Note that a connection broke: the next failure in a row means that the target is down."""
        self.delay = self.delay or self._first_wait

    def note_failure(self) -> None:
        """Wait twice as long as before."""
        self.delay = min(max(self.delay * 2, self._first_wait), self._limits.wait)

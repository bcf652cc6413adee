"""Taking turns at reading one connection: its own thread, or a caller who waits for an answer
anyway.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

#: seconds after a caller has read in which the next one is awaited, and takes its answer itself
_CALLERS_SECONDS = 1.0
#: longest wait for a turn without looking again
_LOOK_SECONDS = 0.5


class ReadingTurn:
    """At most one thread reads at a time. All methods are called with the lock held."""

    def __init__(self, lock: threading.RLock) -> None:
        self._condition = threading.Condition(lock)
        self._reading = False
        #: until when the connection's thread leaves reading to callers
        self._callers_until = 0.0
        #: what a caller found out while reading: the connection is of no use ("broken"), or the
        #: rest has to be sent again ("again")
        self.trouble = ""

    def leave_to_callers(self) -> None:
        """Have the connection's thread leave reading to callers for a while."""
        self._callers_until = time.monotonic() + _CALLERS_SECONDS

    def hand_back(self) -> None:
        """Have the connection's thread read, because nobody else will."""
        self._callers_until = 0.0
        self._condition.notify()

    def try_take(self) -> bool:
        """Take the turn, unless somebody has it or there is trouble."""
        if self._reading or self.trouble:
            return False
        self._reading = True
        return True

    def take(self, usable: Callable[[], bool]) -> str:
        """Take the turn when no caller reads or is about to; at once when there is trouble or the
        connection is not *usable* any more. Return the trouble.
        """
        while not self.trouble and usable():
            left = self._callers_until - time.monotonic()
            if not self._reading and left <= 0:
                break
            self._condition.wait(left if left > 0 else _LOOK_SECONDS)
        self._condition.wait_for(lambda: not self._reading)
        self._reading = True
        return self.trouble

    def give_up(self) -> None:
        self._reading = False

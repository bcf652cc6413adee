"""A group that has lost its majority: for how long its writes are worth sending again."""

from __future__ import annotations

import time

from penstock.errors import PenstockError

#: seconds in which a group below its majority may find together again before writes are refused: a
#: node that died is back in that time
_QUORUM_SECONDS = 10.0


class QuorumLoss:
    """Since when the leader has said that its group has no majority. Its user holds a lock."""

    def __init__(self) -> None:
        self._since = -_QUORUM_SECONDS
        self._last = -_QUORUM_SECONDS

    def end(self) -> None:
        """Note that a write was taken."""
        self._last = -_QUORUM_SECONDS

    def may_recover(self, error: PenstockError) -> bool:
        """Tell whether the group has lost its majority so lately that the write is worth sending
        again, which keeps the writes in order, too.
        """
        if error.code != "E_NO_QUORUM":
            return False
        now = time.monotonic()
        if now - self._last > _QUORUM_SECONDS:
            self._since = now
        self._last = now
        return now - self._since < _QUORUM_SECONDS

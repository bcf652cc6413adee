"""When old rows are let go: once there are twice as many as were left the last time."""

from __future__ import annotations


class Bound:
    """The bound on the live rows of one kernel."""

    def __init__(self, room: int) -> None:
        """*room*: live rows that are kept in any case."""
        self.room = room
        #: how many there may be besides
        self.limit = 0
        #: whether rows were ever let go
        self.trimmed = False

    def allows(self, count: int) -> bool:
        """Return True if *count* live rows may stay."""
        return count <= max(self.limit, self.room)

    def settle(self, left: int) -> None:
        """Note that rows were let go and *left* are left."""
        self.limit = 2 * left
        self.trimmed = True

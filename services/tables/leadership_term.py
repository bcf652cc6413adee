"""The time that a node leads a group, and what it says to who writes before or after."""

from __future__ import annotations

from penstock.errors import RemoteError


def not_leader(table: str, why: str) -> RemoteError:
    return RemoteError(
        f"this node does not lead {table}",
        code="E_NOT_LEADER",
        detail=why,
        hint="ask any node who leads now",
    )


class LeadershipTerm:
    """The time that a node leads a group. Its tables begin together: no row is written before each
    log has the epoch's first record.
    """

    def __init__(self, epoch: int, leader: str) -> None:
        """
        Args:
            epoch: of the lease.
            leader: the node's alias and what tells its terms apart.
        """
        self.epoch = epoch
        self.leader = leader
        self.opened = False
        self.began_at = 0.0
        self._waiting: set[int] = set()
        self._begun: set[int] = set()

    def expect(self, table_id: int) -> None:
        """Writes wait for this table, too; not those of tables that are served already."""
        self._waiting.add(table_id)

    def began(self, table_id: int, now: float) -> None:
        """The table's log is in this epoch; *now* is the monotonic time."""
        self._waiting.discard(table_id)
        self._begun.add(table_id)
        if not self._waiting and not self.opened:
            self.opened = True
            self.began_at = now

    def serves(self, table_id: int) -> bool:
        return self.opened and table_id in self._begun

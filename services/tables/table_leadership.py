"""Whether this node takes writes for one table, and why not."""

from __future__ import annotations

from penstock.errors import RemoteError
from penstock.runtime.clock import Clock
from services.tables.leadership_term import LeadershipTerm, not_leader
from services.tables.writes import Entry, ProducerWrite


class TableLeadership:
    """One table in a term of its group. Changed under the session's lock."""

    def __init__(self, table_id: int, name: str, term: LeadershipTerm, clock: Clock) -> None:
        """
        Args:
            name: of the table, for people.
            term: what this node leads the group under.
        """
        self._table_id = table_id
        self._name = name
        self.term = term
        self._clock = clock
        #: why it is over
        self.over = ""
        #: why writes are refused although this node leads; "" when they are not
        self.refuses = ""

    @property
    def epoch(self) -> int:
        return self.term.epoch

    @property
    def leader(self) -> str:
        return self.term.leader

    @property
    def serving(self) -> bool:
        """Tell if writes are taken: every table of the group has begun its epoch."""
        return not self.over and self.term.serves(self._table_id)

    @property
    def led_for(self) -> float:
        """Seconds since writes are taken."""
        return self._clock.monotonic() - self.term.began_at

    def require(self, entry: Entry) -> None:
        """Raise RemoteError unless this node leads and has a majority."""
        if self.over or not self.serving:
            raise not_leader(self._name, self.over or "it is about to")
        if self.refuses and isinstance(entry, ProducerWrite):
            raise RemoteError(
                f"table {self._name} takes no writes",
                code="E_NO_QUORUM",
                detail=self.refuses,
                hint="start the missing nodes",
            )

    def begin(self) -> None:
        """Note that the epoch has begun in the table's log."""
        self.term.began(self._table_id, self._clock.monotonic())

    def error(self) -> RemoteError:
        """Return the error of those who are not answered any more."""
        return not_leader(self._name, self.over)

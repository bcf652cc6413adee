"""Makes the sessions of tables that this node leads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from penstock.bus import Publisher
from penstock.runtime.clock import Clock
from services.tables.direct import Direct
from services.tables.leadership_term import LeadershipTerm
from services.tables.replica import Replica
from services.tables.session import LeaderSession


class SessionMaker:
    """Knows what all sessions of a node share."""

    def __init__(
        self,
        bus: Publisher,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        max_bytes: int,
        direct: Direct | None,
    ) -> None:
        """
        Args:
            max_bytes: of writes to one table that may wait.
            direct: the short way to Kafka.
        """
        self._bus = bus
        self._clock = clock
        self._loop = loop
        self._max_bytes = max_bytes
        self._direct = direct
        #: called when there are writes to send; set before the first session
        self.wake_writer: Callable[[], None] = _nothing

    def make(
        self, replica: Replica, term: LeadershipTerm, on_over: Callable[[str], None]
    ) -> LeaderSession:
        """Make the session of a table, which its replica and the term know of from now on."""
        session = LeaderSession(
            replica,
            term,
            self._bus,
            self._clock,
            self._loop,
            max_bytes=self._max_bytes,
            wake=self.wake_writer,
            on_over=on_over,
            direct=self._direct,
        )
        term.expect(replica.table.id)
        replica.session = session
        return session


def _nothing() -> None:
    """Until there is something to call."""

"""Reads the logs of a node's tables with one Kafka reader, from where each copy ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from penstock.bus import Admin, Batch, Reader
from services.tables.replica import Replica

_BATCHES = 1_000
_WAIT_SECONDS = 0.05


class LogRead(NamedTuple):
    """Outcome of one read.

    Attributes:
        size: bytes of the records.
        known: none of them was new: this node had sent all of them and taken them as it sent them.
    """

    size: int
    known: bool


class LogFollower:
    """One life of a reader. The log thread only."""

    def __init__(
        self, reader: Reader, admin: Admin, wait_for_room: Callable[[Replica], None]
    ) -> None:
        """
        Args:
            wait_for_room: returns once a replica has room for more rows in memory.
        """
        self._reader = reader
        self._admin = admin
        self._wait_for_room = wait_for_room
        self._reading: dict[str, Replica] = {}
        #: topic → where its log ended when this began to read it
        self._ends: dict[str, int] = {}
        #: topic → the offset behind what was read of it last
        self._positions: dict[str, int] = {}
        #: of the catalog whose tables are all read
        self.revision = -1

    def reads(self, topic: str) -> bool:
        """Tell whether a log is being read."""
        return topic in self._reading

    @property
    def caught_up(self) -> bool:
        """True once everything is applied that was there when each log began to be read. Not the
        end of now: under load that is always a little ahead.
        """
        return all(r.copy.offset >= self._ends[topic] for topic, r in self._reading.items())

    def begin(self, replica: Replica) -> None:
        """Read a table's log from where its copy ends. Raises BusError."""
        topic = replica.table.topic
        place = (topic, 0)
        start = max(replica.copy.offset, self._admin.start_offsets([place])[place])
        end = self._admin.end_offsets([place])[place]
        self._ends[topic] = end if start < end else 0
        self._reader.add({place: start})
        self._reading[topic] = replica

    def leave(self, topic: str) -> None:
        """Read the log of a table no more."""
        self._positions.pop(topic, None)
        if self._reading.pop(topic, None) is not None:
            self._reader.remove([(topic, 0)])

    def read(self) -> LogRead | None:
        """Apply what has come. None when nothing has. Raises BusError."""
        batches = self._reader.read(_BATCHES, _WAIT_SECONDS)
        known = [self._take(batch) for batch in batches]
        self._pass_over()
        if not batches:
            return None
        return LogRead(sum(len(v or b"") for b in batches for v in b.values), all(known))

    def _take(self, batch: Batch) -> bool:
        """Apply what was read. Return True if all of it was known."""
        replica = self._reading.get(batch.topic)
        if replica is None:
            return True
        self._positions[batch.topic] = batch.next_offset
        if batch.next_offset <= replica.copy.offset:
            return True
        replica.apply(batch)
        self._wait_for_room(replica)
        return False

    def _pass_over(self) -> None:
        """Do not fetch what this node has sent and taken itself."""
        for topic, replica in self._reading.items():
            position = self._positions.get(topic)
            reached = replica.copy.offset
            if position is not None and position < reached:
                self._reader.seek(topic, 0, reached)
                self._positions[topic] = reached

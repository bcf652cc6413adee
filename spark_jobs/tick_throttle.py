"""Throttles clock ticks: a partition that has not consumed its last tick within a few seconds gets
no more until it has.

A tick ends the chunk in front of it. A processor that was ticked through all the time that it fell
behind would have to go through that time second by second, which costs more than the rows do and on
a busy machine more than there is. None is missed: the next one tells the time, too. Neither reads
positions nor sends.
"""

from __future__ import annotations

from collections.abc import Container

from penstock.bus import Delivery
from penstock.errors import BusError

#: (topic, partition)
Place = tuple[str, int]
#: processors say with every snapshot where they are: who works in real time has said that it passed
#: a tick before so many snapshots, and seconds
_WAITS_SNAPSHOTS = 3
_WAITS_SECONDS = 5.0
#: what a processor has said of its place may be lost, and without a record it does not say it again
_AGAIN_SECONDS = 30.0


class TickThrottle:
    """The oldest tick of each partition that is not known to be passed: its offset, and since
    when.
    """

    def __init__(self, snapshot_seconds: float) -> None:
        """`snapshot_seconds`: how often processors say where they are."""
        self._patience = max(_WAITS_SNAPSHOTS * snapshot_seconds, _WAITS_SECONDS)
        self._waiting: dict[Place, tuple[int, float]] = {}

    def keep(self, topics: Container[str]) -> None:
        """Forget partitions of all topics but these."""
        self._waiting = {place: tick for place, tick in self._waiting.items() if place[0] in topics}

    def allows(self, place: Place, position: int | None, now: float) -> bool:
        """Whether a partition may be ticked whose processor has come to *position* (None: nobody
        knows).
        """
        waiting = self._waiting.get(place)
        if waiting is None:
            return True
        offset, since = waiting
        if (
            position is None
            or position > offset
            or now - since > max(_AGAIN_SECONDS, 2 * self._patience)
        ):
            self._waiting.pop(place, None)
            return True
        return now - since < self._patience

    def note_delivery(self, place: Place, now: float, result: Delivery | BusError) -> None:
        """A tick that was sent at *now* is in the log, or is not."""
        if isinstance(result, Delivery):
            self._waiting.setdefault(place, (result.offset, now))

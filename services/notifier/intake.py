"""Every record of a partition once and in order, whatever the live reader leaves out.

Faust drops what it has fetched while it recovers its tables, and then goes back only where an
offset was committed, so some records never come. Here the live reader is news of the log and no
more: what it skips, or has not given since the last look, is read from the log. Refused here: what
a record means, and where a partition's place is kept.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from penstock.errors import BusError
from penstock.feeds.feed import FeedHistory
from penstock.runtime.log import get

_LOOK_SECONDS = 1.0
log = get(__name__)


@dataclass(eq=False)
class _Place:
    """In one partition: the next record, the one that was next at the last look, and where the log
    ended then.
    """

    next: int
    seen: int
    due: int
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class EventIntake:
    """Event loop only."""

    def __init__(
        self,
        take: Callable[[int, int, bytes | None], Awaitable[None]],
        ends: Callable[[list[int]], Awaitable[dict[int, int]]],
        history: Callable[[int, int], FeedHistory],
    ) -> None:
        """
        Args:
            take: gets partition, offset and value of each record.
            ends: next offsets of the logs of partitions.
            history: a reader of one partition from an offset on.
        """
        self._take = take
        self._ends = ends
        self._history = history
        self._places: dict[int, _Place] = {}
        self._begun = asyncio.Event()

    def begin(self, partition: int, offset: int, end: int) -> None:
        """The partition is ours: from *offset* on, and what is below *end* at once."""
        self._places[partition] = _Place(offset, offset, end)
        self._begun.set()

    def leave(self, partition: int) -> None:
        """The partition is another notifier's now."""
        self._places.pop(partition, None)

    def positions(self) -> dict[int, int]:
        """By partition, the offset below which everything was taken."""
        return {partition: place.next for partition, place in self._places.items()}

    async def live(self, partition: int, offset: int, value: bytes | None) -> None:
        """A record from the live reader.

        Raises:
            BusError: what lies before it cannot be read.
        """
        place = self._places.get(partition)
        if place is None:
            return
        async with place.lock:
            while place.next < offset and self._places.get(partition) is place:
                await self._fill(partition, place, offset)
            if place.next == offset:
                await self._take(partition, offset, value)
                place.next = offset + 1

    async def run(self) -> None:
        """Look every second, and when a partition begins, until cancelled."""
        while True:
            self._begun.clear()
            try:
                await self.look()
            except BusError as error:
                log.warning("events cannot be read for now", error=str(error))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._begun.wait()

    async def look(self) -> None:
        """Read what the live reader should have given since the last look, where it gave nothing.

        Raises:
            BusError: Kafka can't be used.
        """
        for partition, place in list(self._places.items()):
            if place.next == place.seen and place.next < place.due:
                async with place.lock:
                    await self._fill(partition, place, place.due)
            place.seen = place.next
        for partition, end in (await self._ends(list(self._places))).items():
            if partition in self._places:
                self._places[partition].due = end

    async def _fill(self, partition: int, place: _Place, until: int) -> None:
        """Take what the log has from `next` up to *until*, as far as it comes within a second."""
        log.info(
            "events are taken from the log", partition=partition, offset=place.next, until=until
        )
        history = self._history(partition, place.next)
        try:
            while place.next < until and self._places.get(partition) is place:
                slices = await history.read()
                if not slices:
                    return
                for piece in slices:
                    for offset, value in zip(
                        piece.batch.offsets.tolist(), piece.batch.values, strict=True
                    ):
                        if place.next <= offset < until:
                            await self._take(partition, offset, value)
                            place.next = offset + 1
                    place.next = max(place.next, min(piece.next, until))
        except BusError as error:
            if error.code != "E_OFFSET_GONE":
                raise
            log.error(
                "events were deleted before anybody was told",
                partition=partition,
                offset=place.next,
                until=until,
            )
            place.next = max(place.next, until)
        finally:
            history.close()

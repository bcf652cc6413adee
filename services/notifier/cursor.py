"""One partition of the events as one target sees it: what waits, what was settled, and from where
the log has to be read again.

Messages come from the live reader (`offer`) while memory lasts. Past the bound the cursor only
remembers where it stopped; when its queue is empty it is filled from the log (`refill`) until it
has caught up with the live reader. So a target that is down costs a bounded queue. Pure: no clock,
no sockets, no Kafka.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from services.notifier.message import NotifyMessage


@dataclass
class Mark:
    """What has been settled (delivered or dropped): everything below `offset`, and of each producer
    up to a position.
    """

    offset: int
    producers: dict[str, tuple[int, int]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"o": self.offset, "p": {k: list(v) for k, v in self.producers.items()}}

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Mark:
        return cls(int(body["o"]), {k: (int(v[0]), int(v[1])) for k, v in body["p"].items()})


class PartitionCursor:
    """`behind` is the offset from which the log has to be read; None while the queue holds all
    there is.
    """

    def __init__(self, mark: Mark, *, bound: int, behind: bool) -> None:
        self.mark = mark
        self.behind: int | None = mark.offset if behind else None
        self._bound = bound
        self._reach = mark.offset
        self._seen = dict(mark.producers)
        self._announced = dict(mark.producers)
        self._first_offer: int | None = None
        self._next_offer = 0
        self._queue: deque[NotifyMessage] = deque()
        self._size = 0

    def __len__(self) -> int:
        return len(self._queue)

    def offer(self, message: NotifyMessage) -> bool:
        """Take a message from the live reader, or note that it has to be read again; whether it is
        one more that waits.
        """
        repeat = message.position <= self._announced.get(message.producer, (-1, -1))
        if not repeat:
            self._announced[message.producer] = message.position
        if self._first_offer is None:
            self._first_offer = message.offset
        self._next_offer = message.offset + 1
        if self.behind is None and message.offset >= self._reach:
            if self._queue and self._size + len(message.text) > self._bound:
                self.behind = message.offset
            else:
                self._put(message)
        return not repeat and message.offset >= self.mark.offset

    def was_offered(self, message: NotifyMessage) -> bool:
        """Whether the live reader has given it; the log may be read further than that, and holds
        what came before this process.
        """
        return (
            self._first_offer is not None and self._first_offer <= message.offset < self._next_offer
        )

    def read_again(self, stream_id: int) -> int:
        """Events of a stream in the queue that the live reader has not given."""
        return sum(
            p.events for p in self._queue if p.stream == stream_id and not self.was_offered(p)
        )

    def refill(self, messages: Iterable[NotifyMessage], until: int, live: int) -> None:
        """Take what the log has from `behind` up to *until*; *live* is where the live reader
        stands.
        """
        for message in messages:
            if message.offset >= self._reach:
                self._put(message)
        self._reach = max(self._reach, until)
        self.behind = until if until < live else None

    def _put(self, message: NotifyMessage) -> None:
        self._reach = message.offset + 1
        if message.position <= self._seen.get(message.producer, (-1, -1)):
            return  # a restarted stream published it twice
        self._seen[message.producer] = message.position
        self._queue.append(message)
        self._size += len(message.text)

    def waiting(self, count: int, size: int) -> list[NotifyMessage]:
        """The next messages, at most *count* and about *size* characters; they stay until
        settled.
        """
        found: list[NotifyMessage] = []
        for message in islice(self._queue, count):
            if found and size < len(message.text):
                break
            size -= len(message.text)
            found.append(message)
        return found

    def settle(self, messages: Sequence[NotifyMessage]) -> None:
        """The first messages of the queue were delivered or dropped."""
        for message in messages:
            gone = self._queue.popleft()
            assert gone is message
            self._size -= len(gone.text)
            self.mark.offset = gone.offset + 1
            self.mark.producers[gone.producer] = gone.position

    def has_settled(self, offset: int) -> bool:
        """Whether nothing below *offset* is still to be delivered."""
        if self._queue:
            return self._queue[0].offset >= offset
        return self.behind is None or self.behind >= offset

    def rest(self, live: int) -> bool:
        """With nothing to do, move the mark up to the live reader; whether it moved."""
        if self._queue or self.behind is not None or self.mark.offset >= live:
            return False
        self.mark.offset = live
        return True

"""The way out: outputs of chunks to Kafka, counted in generations, so that a snapshot knows when
all before it is in the log.

A generation is closed when a snapshot or a barrier needs to know; what hangs on it runs when its
last record, and every earlier generation, has been acknowledged. Offsets come from delivery
reports, never from asking the broker. What a predecessor got out is read by `processor.published`.
A record that cannot be delivered is fatal: the operator dies and the successor replays.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from penstock.bus import Delivery, Publisher
from penstock.errors import BusError
from spark_jobs.replay import Replay

_PATIENCE = 30.0

#: what ran to its end: "topic:partition" → offset behind the last delivered output
Ends = Mapping[str, int]


@dataclass
class _Generation:
    pending: int = 0
    closed: bool = False
    ends: dict[str, int] = field(default_factory=dict)
    then: list[Callable[[Ends], None]] = field(default_factory=list)


def nobody_waits(_: Delivery) -> None:
    """For outputs of which nobody has to hear that they are in the log."""


class Outbox:
    """Outputs of one processor."""

    def __init__(
        self, publisher: Publisher, replay: Replay, allowed: Callable[[], None] = lambda: None
    ) -> None:
        """*allowed* does not return when this process may not publish any more."""
        self._publisher = publisher
        self._replay = replay
        self._allowed = allowed
        self._lock = threading.Condition()
        self._generations: deque[_Generation] = deque([_Generation()])
        self._ends: dict[str, int] = {}
        self._failure: BusError | None = None
        self.sent = self.held_back = 0
        #: append time (ms) of the newest record that was worked on: when what comes of no record
        #: of its own (a result that fails, a tick) came about
        self.time = 0

    def send(
        self,
        producer: str,
        topic: str,
        partition: int,
        offset: int,
        ordinal: int,
        value: bytes,
        there: Callable[[Delivery], None] = nobody_waits,
    ) -> None:
        """Publish one output of a chunk unless it is known to be in the log. *there* hears of it in
        the publisher's thread.
        """
        if self._replay.holds_back((producer, topic, partition), offset, ordinal):
            self.held_back += 1
            return
        self.post(topic, value, partition=partition, there=there)

    def post(
        self,
        topic: str,
        value: bytes,
        *,
        partition: int = -1,
        key: bytes | None = None,
        there: Callable[[Delivery], None] = nobody_waits,
    ) -> None:
        """Publish a record without position (a dead letter): after a crash it may come twice."""
        self._allowed()
        with self._lock:
            generation = self._generations[-1]
            generation.pending += 1
        self.sent += 1

        def report(result: Delivery | BusError) -> None:
            if isinstance(result, Delivery):
                there(result)
            self._note_delivery(generation, result)

        self._publisher.send(topic, value, key=key, partition=partition, on_delivery=report)

    def then(self, action: Callable[[Ends], None]) -> None:
        """Run *action* once all that was sent so far is in the log, in the publisher's thread: it
        must not block.
        """
        with self._lock:
            generation = self._generations[-1]
            generation.then.append(action)
            generation.closed = True
            self._generations.append(_Generation())
            due = self._due()
        _run(due)

    def check(self) -> None:
        """Raise what made a delivery fail."""
        if self._failure is not None:
            raise self._failure

    def wait(self, timeout: float = _PATIENCE) -> None:
        """Wait until all that was sent is in the log.

        Raises:
            BusError: it is not after *timeout* seconds, or never will be.
        """
        done = threading.Event()
        self.then(lambda _: done.set())
        with self._lock:
            self._lock.wait_for(lambda: done.is_set() or self._failure is not None, timeout)
        self.check()
        if not done.is_set():
            raise BusError(f"outputs are not acknowledged after {timeout:g} s", retryable=True)

    def _note_delivery(self, generation: _Generation, result: Delivery | BusError) -> None:
        with self._lock:
            generation.pending -= 1
            if isinstance(result, BusError):
                self._failure = self._failure or result
            else:
                where = f"{result.topic}:{result.partition}"
                generation.ends[where] = max(generation.ends.get(where, 0), result.offset + 1)
            due = self._due()
        _run(due)
        with self._lock:
            self._lock.notify_all()

    def _due(self) -> list[tuple[Callable[[Ends], None], Ends]]:
        """Return what may run now, with the ends it is told: nothing behind a failed delivery."""
        due: list[tuple[Callable[[Ends], None], Ends]] = []
        if self._failure is not None:
            return due
        while self._generations[0].closed and not self._generations[0].pending:
            first = self._generations.popleft()
            self._ends.update(first.ends)
            due += [(action, dict(self._ends)) for action in first.then]
        return due


def _run(due: Iterable[tuple[Callable[[Ends], None], Ends]]) -> None:
    for action, ends in due:
        action(ends)

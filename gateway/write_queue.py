"""Writes that wait for the thread that publishes them, and those that a halted topic holds back."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from gateway.coalescer import Coalescer, PendingWrite
from penstock.runtime.clock import Clock

_IDLE_S = 3600.0


class WriteQueue:
    """Thread-safe; one thread takes."""

    def __init__(self, clock: Clock, max_bytes: int, max_writes: int) -> None:
        """*max_bytes*, *max_writes*: what may wait or be under way at once."""
        self._clock = clock
        self._box = Coalescer(max_bytes, max_writes)
        self._wake = threading.Condition()
        self._held: list[list[PendingWrite]] = []
        self._look = False
        self.closing = False

    def put(self, write: PendingWrite) -> None:
        """Add one write. Raises OverloadError."""
        now = self._clock.monotonic()
        with self._wake:
            first = self._box.empty
            self._box.offer(write, now)
            # a thread that lingers for more wakes by itself: waking it for each write would cost
            # more than the write
            if first or self._box.wait(now) == 0.0:
                self._wake.notify()

    def take(self) -> list[list[PendingWrite]] | None:
        """Wait for writes that leave together; None once all were taken and no more come."""
        with self._wake:
            wait = self._box.wait(self._clock.monotonic())
            while wait != 0.0 and not self.closing and not self._look:
                self._wake.wait(_IDLE_S if wait is None else wait)
                wait = self._box.wait(self._clock.monotonic())
            if self.closing and wait is None:
                return None
            groups = [*self._held, *self._box.take(self._clock.monotonic())]
            self._held = []
            self._look = False
            return groups

    def hold(self, group: list[PendingWrite]) -> None:
        """Keep writes back until `look_again`."""
        with self._wake:
            self._held.append(group)

    def look_again(self) -> None:
        """Have what is held taken again."""
        with self._wake:
            self._look = True
            self._wake.notify()

    def close(self) -> None:
        """Take no more than there is."""
        with self._wake:
            self.closing = True
            self._wake.notify()

    def release(self, writes: Iterable[PendingWrite]) -> None:
        """Free the memory of writes that are acked or refused."""
        with self._wake:
            for write in writes:
                self._box.release(write)

    @property
    def held(self) -> list[PendingWrite]:
        """Return the writes that are kept back."""
        return [write for group in self._held for write in group]

    @property
    def pending(self) -> tuple[int, int]:
        """Return (writes, bytes) waiting or under way."""
        return self._box.pending

"""A reader of the log that asks often while something happens, and once a second while nothing
does.

A question that the broker holds is answered at once when a record comes, but a partition that is
added meanwhile has to wait for its end. So a long question is asked by a reader of its own, in a
thread: whoever wants something else leaves it behind, and opens the busy one again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Self

from penstock.bus import Batch, Offsets, Reader

#: makes a reader; True: of one that rests
OpenReader = Callable[[Offsets, bool], Reader]

#: nothing has come and nothing has changed for so long: it rests
_CALM_SECONDS = 10.0
#: how often who rests looks after its other work
_LOOK_SECONDS = 1.0
#: most that a reader that rests hands over
_FIRST_RECORDS = 20_000


class QuietReader:
    """Used by one thread, except `wake`."""

    def __init__(self, open_reader: OpenReader) -> None:
        self._open = open_reader
        #: where each partition goes on
        self._next: dict[tuple[str, int], int] = {}
        self._busy: Reader | None = None
        self._sleeper: _Sleeper | None = None
        self._stirred = threading.Event()
        self._moved_at = time.monotonic()

    def add(self, offsets: Offsets) -> None:
        """Read these partitions too; the offsets are places in the log."""
        self._stay_busy()
        self._next |= offsets
        if self._busy is not None:
            self._busy.add(offsets)

    def remove(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Read these partitions no longer."""
        self._stay_busy()
        gone = list(partitions)
        for place in gone:
            del self._next[place]
        if self._busy is not None:
            self._busy.remove(gone)

    def wake(self) -> None:
        """Be busy again for a while: something has changed, though not in the log. From any
        thread.
        """
        self._stirred.set()

    def read(self, max_records: int, timeout: float) -> list[Batch]:
        """Return what has come; waits at most *timeout* seconds for it while it is busy, and a
        second while it rests.

        Raises:
            BusError: see `Reader.read`.
        """
        if self._sleeper is not None:
            return self._read_at_rest(self._sleeper)
        if self._busy is None:
            self._busy = self._open(self._next, False)
        batches = self._busy.read(max_records, timeout)
        self._note(batches)
        if batches or self._stirred.is_set():
            self._stay_busy()
        elif time.monotonic() - self._moved_at > _CALM_SECONDS:
            self._rest(self._busy)
        return batches

    def _rest(self, busy: Reader) -> None:
        busy.close()
        self._busy = None
        self._sleeper = _Sleeper(self._open, dict(self._next), self._stirred)
        self._sleeper.start()

    def _read_at_rest(self, sleeper: _Sleeper) -> list[Batch]:
        if not self._stirred.wait(_LOOK_SECONDS):
            return []
        batches = sleeper.take()
        self._stay_busy()
        self._note(batches)
        return batches

    def _stay_busy(self) -> None:
        """Be busy from now on. What the sleeper finds and nobody has taken is read again."""
        if self._sleeper is not None:
            self._sleeper.leave()
            self._sleeper = None
        self._stirred.clear()
        self._moved_at = time.monotonic()

    def _note(self, batches: list[Batch]) -> None:
        self._next |= {(b.topic, b.partition): b.next_offset for b in batches}

    def close(self) -> None:
        """Stop reading."""
        if self._busy is not None:
            self._busy.close()
        if self._sleeper is not None:
            self._sleeper.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Sleeper(threading.Thread):
    """Waits for the first records, and stirs whoever waits for it."""

    def __init__(self, open_reader: OpenReader, offsets: Offsets, stirred: threading.Event) -> None:
        super().__init__(name="at rest", daemon=True)
        self._open = open_reader
        self._offsets = offsets
        self._stirred = stirred
        self._left = threading.Event()
        self._found: list[Batch] = []
        self._failure: BaseException | None = None

    def run(self) -> None:
        try:
            with self._open(self._offsets, True) as reader:
                while not self._left.is_set() and not self._found:
                    self._found = reader.read(_FIRST_RECORDS, _LOOK_SECONDS)
        except BaseException as failure:  # noqa: B036  whoever reads must see it and end
            self._failure = failure
        if not self._left.is_set():
            self._stirred.set()

    def take(self) -> list[Batch]:
        """Return what was found so far.

        Raises:
            BaseException: what ended it.
        """
        if self._failure is not None:
            raise self._failure
        return self._found

    def leave(self) -> None:
        """Have the thread end by itself, and say nothing."""
        self._left.set()

    def end(self) -> None:
        """Return when the thread has ended."""
        self._left.set()
        self.join()

"""Writes a processor's snapshots in the background, each once everything published before it is in
the log.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from spark_jobs.output import Ends, Outbox
from spark_jobs.state import Snapshot, StateFiles

_PATIENCE = 30.0
#: seconds after which to look again while a snapshot is being written
_AGAIN = 0.05


class Snapshots:
    """Snapshots of one processor, one at a time."""

    def __init__(self, files: StateFiles, owner: str, outbox: Outbox, ends: dict[str, int]) -> None:
        """
        Args:
            owner: who has claimed *files*.
            ends: see `Snapshot.ends`, as the state had them.
        """
        self._files = files
        self._owner = owner
        self._outbox = outbox
        self._ends = ends
        self._taken_at = time.monotonic()
        self._writing: Future[None] | None = None
        self._thread = ThreadPoolExecutor(1, "snapshots")

    @property
    def full_due(self) -> bool:
        """The next snapshot should be a full one."""
        return self._files.full_due

    def due(self, interval: float) -> float:
        """Return the seconds until the next snapshot, if one is taken every *interval* seconds."""
        if self._writing is not None and not self._writing.done():
            return _AGAIN
        return max(self._taken_at + interval - time.monotonic(), 0.0)

    def check(self) -> None:
        """Raise what made the last snapshot fail."""
        if self._writing is not None and self._writing.done():
            self._writing.result()

    def wait(self) -> None:
        """Wait until the last snapshot is written. Raises what made it fail."""
        if self._writing is not None:
            self._writing.result(_PATIENCE)

    def take(self, state: Snapshot, *, full: bool, written: Callable[[], None]) -> None:
        """Have *state* written, and *written* called behind it, in the background."""
        self._taken_at = time.monotonic()
        done: Future[None] = Future()
        self._writing = done

        def write(ends: Ends) -> None:
            state.ends = {**self._ends, **ends} if full else dict(ends)
            self._thread.submit(self._write, state, full, written, done)

        self._outbox.then(write)

    def _write(
        self, state: Snapshot, full: bool, written: Callable[[], None], done: Future[None]
    ) -> None:
        try:
            self._files.save(state, full=full)
            written()
            done.set_result(None)
        except BaseException as error:  # noqa: B036  told to the main loop
            done.set_exception(error)

    def release(self, next_offset: int) -> None:
        """Leave the state to whoever comes next: everything up to *next_offset* is published and
        saved.
        """
        self._files.release(self._owner, next_offset)

    def close(self) -> None:
        self._thread.shutdown()

"""Writes the copies of a node to disk, and shortens them in time, in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from penstock.runtime import vital
from penstock.runtime.clock import Clock, milliseconds
from penstock.runtime.log import get
from services.tables.replica import Replica
from services.tables.settings import TablesSettings

log = get(__name__)
#: the log is not read further while a table has this many times `flush_rows` waiting for a file
_BEHIND = 4
_PAUSE_SECONDS = 0.05
_LOOK_SECONDS = 0.5
_JOIN_SECONDS = 15


class CopyFiles:
    """One per node."""

    def __init__(
        self,
        settings: TablesSettings,
        clock: Clock,
        replicas: Callable[[], Iterable[Replica]],
        halt: threading.Event,
    ) -> None:
        """
        Args:
            replicas: the copies that there are now.
            halt: set when the node stops; what is in memory only is written then.
        """
        self._settings = settings
        self._clock = clock
        self._replicas = replicas
        self._halt = halt
        self._saved = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="files", daemon=True)
        #: table → when it was written last, and when copies were shortened last (monotonic seconds)
        self._flushed: dict[int, float] = {}
        self._swept = 0.0

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        """Wait until everything is written, once the node halts."""
        self._thread.join(timeout=_JOIN_SECONDS)

    def wait_for_room(self, replica: Replica) -> None:
        """Return once not too many rows of *replica* wait for a file, or the node halts."""
        with self._saved:
            while (
                replica.copy.waiting > _BEHIND * self._settings.flush_rows
                and not self._halt.is_set()
            ):
                self._saved.wait(_LOOK_SECONDS)

    @vital.run
    def _run(self) -> None:
        ending = False
        while not ending:
            ending = self._halt.is_set()
            self.save(time.monotonic(), everything=ending)
            self._halt.wait(_PAUSE_SECONDS)

    def save(self, now: float, *, everything: bool = False) -> None:
        """Write the copies for which it is time, or all of them, and shorten all now and then.

        Args:
            now: monotonic seconds.
        """
        for replica in self._replicas():
            last = self._flushed.setdefault(replica.table.id, now)
            late = now - last >= self._settings.flush_seconds
            if everything or late or replica.copy.due():
                self._flush(replica)
                self._flushed[replica.table.id] = now
        if now - self._swept >= self._settings.sweep_seconds:
            self._swept = now
            for replica in self._replicas():
                replica.copy.expire(milliseconds(self._clock))

    def _flush(self, replica: Replica) -> None:
        try:
            with replica.lock:  # the position and the rows belong together
                pending = replica.copy.begin_flush()
            if pending is not None:
                replica.copy.finish_flush(pending)
        except OSError as full:
            log.error(
                "a copy cannot be written to disk; it is tried again",
                table=replica.name,
                error=str(full),
            )
            replica.copy.undo_flush()
        with self._saved:
            self._saved.notify_all()

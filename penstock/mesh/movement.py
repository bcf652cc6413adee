"""Tells a service that is slow to start from one that stands still.

What moves is waited for, however long it takes: it writes to its log, uses the processor, or waits
for something else than before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from penstock.mesh.process import cpu_seconds

#: standing still for so long is said; the service may still come
STILL_SECONDS = 120.0
#: between two looks: one reads the process table
_LOOK_SECONDS = 5.0
#: less processor time than this between two looks is a wait that looks around
_BUSY_SECONDS = 0.15


@dataclass
class Movement:
    """When a starting service last moved; times are of one monotonic clock."""

    since: float
    _looked: float = field(default=0.0, repr=False)
    _cpu: float = field(default=0.0, repr=False)
    _told: tuple[str, int] = field(default=("", 0), repr=False)

    def look(self, now: float, why: str, log: Path, pid: int) -> None:
        """Look at the service again if that is due.

        Args:
            now: the time.
            why: what it says that it waits for.
            log: its log.
            pid: its first process.
        """
        if now - self._looked >= _LOOK_SECONDS:
            self.note(now, why, log.stat().st_size if log.exists() else 0, cpu_seconds(pid))

    def note(self, now: float, why: str, log_bytes: int, cpu: float) -> None:
        """Take what a look has found. Pure."""
        told = (why, log_bytes)
        # a process that ended took its seconds with it
        if told != self._told or not 0 <= cpu - self._cpu < _BUSY_SECONDS:
            self.since = now
        self._looked = now
        self._told = told
        self._cpu = cpu

    @property
    def stands_still(self) -> bool:
        """True when nothing had moved for long at the last look."""
        return self._looked - self.since >= STILL_SECONDS

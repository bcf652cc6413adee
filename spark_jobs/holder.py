"""A process that holds the lease of the jobs, as another one sees it: where it is, and whether it
lives.
"""

from __future__ import annotations

import json
import os
import select
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True)
class Holding:
    """What a holder says of itself in its lease. `machine`: where process ids mean the same."""

    node: int
    machine: str
    pid: int
    started: float

    @classmethod
    def from_address(cls, text: str) -> Holding:
        """Read the address of a lease."""
        return cls(**json.loads(text))

    def to_address(self) -> str:
        """Return the text that a lease carries."""
        return json.dumps(asdict(self))

    def is_here(self) -> bool:
        """Whether the holder is a process of this machine, dead or not."""
        return self.machine == this_machine()

    def is_dead(self) -> bool:
        """Whether the holder was a process of this machine that is no more."""
        return self.is_here() and self._process() is None

    def lives_here(self) -> bool:
        """Whether the holder is a process of this machine that has not ended."""
        return self.is_here() and self._process() is not None

    def wait(self, seconds: float) -> bool:
        """Wait for the end of a holder on this machine; False at once where that cannot be seen."""
        if not self.is_here() or not hasattr(os, "pidfd_open"):
            return False
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return True
        except OSError:  # this kernel has no such handles
            return False
        try:
            if not self.lives_here():
                return True
            watched = select.poll()
            watched.register(handle, select.POLLIN)
            watched.poll(seconds * 1000)
        finally:
            os.close(handle)
        return True

    def end(self) -> None:
        """Kill a holder on this machine."""
        process = self._process() if self.is_here() else None
        if process is not None:
            process.kill()

    def _process(self) -> psutil.Process | None:
        """Return the process if it has not ended; one that nobody has reaped yet has."""
        try:
            process = psutil.Process(self.pid)
            same = process.create_time() == self.started
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None


def this_machine() -> str:
    """Where process ids mean the same: this boot of this machine, and the container."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return (
        f"{boot.read_text(encoding='utf-8').strip()} {os.readlink('/proc/self/ns/pid')}"
        if boot.exists()
        else str(uuid.getnode())
    )

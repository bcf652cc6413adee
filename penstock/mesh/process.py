"""One child process: started in a process group of its own, tied to its parent's life, its output
in a log of bounded size.

Refused here: deciding whether to start it again, which is the supervisor's.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

import psutil

_LOG_BYTES = 32 << 20
_LOG_GENERATIONS = 2
_PR_SET_PDEATHSIG = 1
#: of every process of a mesh: files, directories and sockets are their owner's alone, wherever they
#: are
UMASK = 0o077
#: between two looks at a process that is waited for
_LOOK_SECONDS = 0.02
#: loaded before any fork: between fork and exec nothing may be
_libc = ctypes.CDLL(None, use_errno=True)


class OwnProcess(Protocol):
    """What `subprocess.Popen` tells of a process whose parent this one is."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...


#: starts a command with an environment, a log and a working directory
Spawn = Callable[[list[str], Mapping[str, str], Path, Path], OwnProcess]


class AdoptedProcess:
    """A process that somebody else has started and left to this one."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._status: int | None = None

    def poll(self) -> int | None:
        """Return the exit status, or None while it runs; negative: the signal that ended it."""
        if self._status is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status. Raises TimeoutExpired."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            time.sleep(_LOOK_SECONDS)
        return status


def execute(
    command: list[str], environment: Mapping[str, str], log: Path, directory: Path
) -> OwnProcess:
    """Start *command* as a program in a process group of its own."""
    with open(log, "ab") as output:
        return subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=directory,
            process_group=0,
            umask=UMASK,
            preexec_fn=die_with_parent(),
        )


class ChildProcess:
    """A running child and its process group."""

    def __init__(
        self,
        command: list[str],
        environment: Mapping[str, str],
        log: Path,
        directory: Path,
        spawn: Spawn = execute,
    ) -> None:
        self.log = log
        self.started = time.time()
        self._process = spawn(command, environment, log, directory)

    @property
    def pid(self) -> int:
        return self._process.pid

    def exit_status(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        return self._process.poll()

    def ask_to_stop(self) -> None:
        _signal_process(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End the whole group, at once; also what a dead leader left behind."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self._process.wait()

    def wait(self, seconds: float) -> bool:
        """True when it ended in time."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True


def die_with_parent(number: int = signal.SIGKILL) -> Callable[[], None] | None:
    """For `preexec_fn`: on Linux the kernel sends the child *number* when the thread that started
    it ends: start it from the main one.
    """
    if not sys.platform.startswith("linux"):
        return None
    return partial(tie_to, os.getpid(), number)


def tie_to(parent: int, number: int) -> None:
    """Have the kernel send this process *number* when *parent*, which is its parent, ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:  # it died before
        os._exit(1)


def rotate(log: Path) -> None:
    """Keep *log* bounded: copied aside and truncated, which its writer (in append mode) does not
    notice.
    """
    try:
        if log.stat().st_size < _LOG_BYTES:
            return
    except FileNotFoundError:
        return
    for generation in range(_LOG_GENERATIONS, 1, -1):
        older = log.with_name(f"{log.name}.{generation - 1}")
        if older.exists():
            older.replace(log.with_name(f"{log.name}.{generation}"))
    shutil.copyfile(log, log.with_name(f"{log.name}.1"))
    os.truncate(log, 0)


def proportional_memory(pid: int, *, children: bool = True) -> int:
    """PSS in bytes of a process and, with *children*, all below it: shared pages count once in a
    sum.
    """
    total = 0
    for process in _family(pid, children=children):
        try:
            full = process.memory_full_info()
            total += getattr(full, "pss", full.uss)
        except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return total


def cpu_seconds(pid: int) -> float:
    """Seconds of CPU that a process and all below it have used so far."""
    total = 0.0
    for process in _family(pid):
        try:
            used = process.cpu_times()
        except psutil.Error:
            continue
        total += used.user + used.system
    return total


def _family(pid: int, *, children: bool = True) -> list[psutil.Process]:
    """Return a process and, with *children*, all below it; none if it is gone."""
    try:
        leader = psutil.Process(pid)
        return [leader, *(leader.children(recursive=True) if children else [])]
    except psutil.NoSuchProcess:
        return []


def _signal_process(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass

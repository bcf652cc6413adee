"""The supervisor's end of the forkserver: starts it, asks it for services, and adopts them.

Only on Linux, where orphans can be given to a process that is not the first one. Where there is no
forkserver, or none any more, services are started as programs.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from penstock.mesh.process import UMASK, AdoptedProcess, OwnProcess, Spawn, die_with_parent
from penstock.runtime import log

#: bytes of one message: an environment and a few names
MAX_MESSAGE = 1 << 17
_PR_SET_CHILD_SUBREAPER = 36
#: a request waits behind the import of at most one package
_ANSWER_SECONDS = 30.0
#: until a forkserver that says nothing any more has ended
_END_SECONDS = 1.0
_logger = log.get("penstock.mesh")


class Forks:
    """The forkserver of one supervisor. For its main thread, to which its children are tied."""

    def __init__(
        self, packages: list[str], environment: Mapping[str, str], log_file: Path, directory: Path
    ) -> None:
        """
        Args:
            packages: of services, as `python -m` would run them, in the order to import them.
            environment: what the services have in common.
            log_file: takes what the forkserver says.
            directory: the forkserver works here.
        """
        self._imported: set[str] = set()
        self._server: subprocess.Popen[bytes] | None = None
        #: it worked until somebody killed it, and so may another one
        self.was_killed = False
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.setblocking(False)
        with theirs:
            if packages and _adopt_orphans():
                self._server = _start(packages, environment, theirs, log_file, directory)

    @property
    def pid(self) -> int | None:
        """The forkserver's process id; None when there is none."""
        return self._server.pid if self._server is not None else None

    def spawn_for(self, package: str) -> Spawn | None:
        """Return how to start *package* by a fork, or None while it is still being imported.

        Raises:
            ForksGone: there is no forkserver: start a program.
        """
        self._hear()
        if self._server is None:
            raise ForksGone
        return partial(self._fork, package) if package in self._imported else None

    def close(self) -> None:
        """End the forkserver; what it has forked goes on."""
        self._channel.close()
        if self._server is not None:
            self._server.kill()
            self._server.wait()
            self._server = None

    def _hear(self) -> None:
        """Take what the forkserver says by itself: which packages it has imported."""
        while self._server is not None and (said := self._receive()) is not None:
            self._imported.add(said["imported"])

    def _receive(self) -> dict[str, Any] | None:
        """Return the next message, None when there is none now."""
        try:
            text = self._channel.recv(MAX_MESSAGE)
        except BlockingIOError:
            return None
        except OSError:
            text = b""
        if not text:
            self._lose()
            return None
        message: dict[str, Any] = json.loads(text)
        return message

    def _lose(self) -> None:
        _logger.warning("the forkserver ended: services are started as programs")
        assert self._server is not None
        try:
            status = self._server.wait(_END_SECONDS)
            # what falls by itself would do so again
            self.was_killed = status == -signal.SIGKILL and bool(self._imported)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
        self._server = None

    def _fork(
        self,
        package: str,
        command: list[str],
        environment: Mapping[str, str],
        log_file: Path,
        directory: Path,
    ) -> OwnProcess:
        """Have *package* forked with a name and an environment of its own. Raises ForksGone."""
        wanted = {
            "package": package,
            "command": command,
            "environment": dict(environment),
            "log": str(log_file),
            "directory": str(directory),
        }
        log_file.touch()
        self._channel.settimeout(_ANSWER_SECONDS)
        try:
            self._channel.send(json.dumps(wanted).encode())
            while self._server is not None:
                said = self._receive()
                if said is not None and "pid" in said:
                    return AdoptedProcess(said["pid"])
                if said is not None:
                    self._imported.add(said["imported"])
        except OSError:
            self._lose()
        finally:
            self._channel.setblocking(False)
        raise ForksGone


class ForksGone(Exception):
    """There is no forkserver: not on this system, or no more."""


def reap_strays(own: set[int]) -> None:
    """Take the exit status of orphans that this process was given and that it has not started: a
    killed service leaves some.

    Args:
        own: process ids whose status somebody else asks for.
    """
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid in own:
            return
        with contextlib.suppress(ChildProcessError):
            os.waitpid(ended.si_pid, os.WNOHANG)


def _adopt_orphans() -> bool:
    """Have processes whose parents end become this one's children; False where that cannot be."""
    if not sys.platform.startswith("linux"):
        return False
    return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def _start(
    packages: list[str],
    environment: Mapping[str, str],
    channel: socket.socket,
    log_file: Path,
    directory: Path,
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "penstock.mesh.forkserver", str(channel.fileno())]
    with open(log_file, "ab") as output:
        return subprocess.Popen(
            [*command, str(os.getpid()), ",".join(packages)],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=directory,
            pass_fds=[channel.fileno()],
            process_group=0,
            umask=UMASK,
            preexec_fn=die_with_parent(),
        )

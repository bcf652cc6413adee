"""Caps and idle time of the connections to the Flight port, which Arrow's server has no settings
for.

A thread looks through the process's own sockets every second and shuts down those that are too
many, newest first, and those that have been silent for too long. gRPC then closes them, as when
their peer goes away. Calls are not looked into.
"""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import stat
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter

from penstock.runtime import vital
from penstock.runtime.file_limit import raise_file_limit
from penstock.runtime.networks import network_of

_SWEEP_SECONDS = 1.0
#: of the idle time: how far apart silent connections are looked for. That asks each one, which
#: counting does not
_IDLE_LOOKS = 20
_OWN_DESCRIPTORS = "/dev/fd"
#: Linux's `struct tcp_info`: where it has the milliseconds since data was last sent and received
_LAST_SENT = 44
_LAST_RECEIVED = 52
_TCP_INFO_BYTES = 56
#: why connections are shut down
TOO_MANY = "too many"
IDLE = "idle"
#: a socket of this process: its descriptor, and its inode, which another socket under the same
#: descriptor does not have
Socket = tuple[int, int]
_inode = itemgetter(1)


class FlightConnections:
    """The connections to one port of this process."""

    def __init__(
        self,
        port: int,
        *,
        most: int,
        most_per_address: int,
        idle_seconds: float,
        closed: Callable[[str], object] = lambda _why: None,
    ) -> None:
        """
        Args:
            most: connections in all; 0: as many as come.
            most_per_address: connections of one address (of IPv6: a /64); 0: as many as come.
            idle_seconds: a connection on which nothing was sent or received for so long is shut
                down; 0: never. On Linux only: elsewhere it is not known.
            closed: is called for each connection that is shut down, with `TOO_MANY` or `IDLE`.
        """
        self._port = port
        self._most = most
        self._most_per_address = most_per_address
        self._idle_seconds = idle_seconds if sys.platform == "linux" else 0.0
        self._closed = closed
        #: sockets with the address each is counted under, oldest first; "": not counted
        self._known: dict[Socket, str] = {}
        self._next_idle_look = 0.0
        # a descriptor of our own to hold sockets by: there may be no free one when it is needed
        self._nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._holder = os.dup(self._nothing)
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=vital.run(self._run), name="flight connections", daemon=True
        )

    def start(self) -> None:
        """Look after connections until `stop`."""
        raise_file_limit()
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        os.close(self._holder)
        os.close(self._nothing)

    @property
    def count(self) -> int:
        """How many connections count towards the caps, as of the last look."""
        return sum(1 for address in tuple(self._known.values()) if address)

    def _run(self) -> None:
        while not self._stopping.wait(_SWEEP_SECONDS):
            self._find()
            self._shut(list(self._too_many()), TOO_MANY)
            if self._idle_seconds and time.monotonic() >= self._next_idle_look:
                self._next_idle_look = time.monotonic() + self._idle_seconds / _IDLE_LOOKS
                self._shut([s for s, address in self._known.items() if address], IDLE)

    def _find(self) -> None:
        """Forget sockets that are gone and count those that are new."""
        present = set(_sockets())
        self._known = {s: address for s, address in self._known.items() if s in present}
        for found in sorted(present - self._known.keys(), key=_inode):  # in order, about
            self._known[found] = self._address(found)

    def _address(self, found: Socket) -> str:
        """Return what a socket is counted under; "" when it is no connection to the port."""
        with contextlib.suppress(OSError), self._held(found) as held:
            if held.family in (socket.AF_INET, socket.AF_INET6):
                own = held.getsockname()
                peer = held.getpeername()
                return network_of(str(peer[0])) if own[1] == self._port else ""
        return ""

    def _too_many(self) -> Iterator[Socket]:
        count = 0
        of_address: Counter[str] = Counter()
        for known, address in self._known.items():
            if not address:
                continue
            if (self._most and count >= self._most) or (
                self._most_per_address and of_address[address] >= self._most_per_address
            ):
                yield known
                continue
            count += 1
            of_address[address] += 1

    def _shut(self, sockets: Iterable[Socket], why: str) -> None:
        """Shut these down; with `IDLE` only those that are."""
        for known in sockets:
            # an OSError: its peer or gRPC was faster
            with contextlib.suppress(OSError), self._held(known) as held:
                if why == IDLE and _silent_seconds(held) < self._idle_seconds:
                    continue
                held.shutdown(socket.SHUT_RDWR)
                self._known[known] = ""
                self._closed(why)

    @contextlib.contextmanager
    def _held(self, known: Socket) -> Iterator[socket.socket]:
        """Hold a socket by a descriptor of our own, so that it stays the one that it is.

        Raises:
            OSError: it is not there any more.
        """
        descriptor, inode = known
        os.dup2(descriptor, self._holder, inheritable=False)
        try:
            if os.fstat(self._holder).st_ino != inode:
                raise OSError("another file has its descriptor now")
            held = socket.socket(fileno=self._holder)
            try:
                yield held
            finally:
                held.detach()
        finally:
            os.dup2(self._nothing, self._holder, inheritable=False)


def _sockets() -> Iterator[Socket]:
    """Yield all sockets of this process."""
    for descriptor in _descriptors():
        with contextlib.suppress(OSError):
            found = os.fstat(descriptor)
            if stat.S_ISSOCK(found.st_mode):
                yield descriptor, found.st_ino


def _descriptors() -> Iterable[int]:
    try:
        return [int(name) for name in os.listdir(_OWN_DESCRIPTORS)]
    except OSError:
        # no descriptor is free to list them with: all are in use
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return range(most)


def _silent_seconds(connection: socket.socket) -> float:
    """Return for how long no data was sent or received."""
    if sys.platform != "linux":
        return 0.0
    told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
    sent = struct.unpack_from("=I", told, _LAST_SENT)[0]
    received = struct.unpack_from("=I", told, _LAST_RECEIVED)[0]
    return float(min(sent, received)) / 1000

"""A TCP proxy for demos and tests of bad networks: it can be cut, healed and slowed. For loopback
only.

Owns threads and sockets of its own. Refused: knowing what goes through it.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from types import TracebackType
from typing import Self


class Proxy:
    """Listens on a free port of 127.0.0.1 and passes everything to (host, port); use it in a
    `with`.
    """

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self._to = (host, port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._cut = False
        #: seconds that each piece waits
        self.delay = 0.0
        #: bytes a second each way; 0: as they come
        self.rate = 0
        #: connections cut so far
        self.cuts = 0
        threading.Thread(target=self._accept, name=f"proxy-{self.port}", daemon=True).start()

    def cut(self) -> None:
        """Break every connection and refuse new ones until `heal`."""
        with self._lock:
            self._cut = True
            sockets = list(self._open)
            self._open = set()
        self.cuts += 1
        for one in sockets:
            _end(one)

    def heal(self) -> None:
        with self._lock:
            self._cut = False

    def point_at(self, port: int) -> None:
        """Who connects from now on comes to another port: the other side was started again
        elsewhere.
        """
        self._to = (self._to[0], port)

    def close(self) -> None:
        self.cut()
        _end(self._server)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            if self._cut:
                _end(client)
                continue
            try:
                target = socket.create_connection(self._to, timeout=5)
                target.settimeout(None)
            except OSError:
                _end(client)
                continue
            with self._lock:
                self._open |= {client, target}
            for source, sink in ((client, target), (target, client)):
                threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if self.delay or self.rate:
                    time.sleep(self.delay + (len(data) / self.rate if self.rate else 0.0))
                sink.sendall(data)
        _end(source)
        _end(sink)
        with self._lock:
            self._open -= {source, sink}


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()

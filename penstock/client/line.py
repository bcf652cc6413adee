"""A WebSocket without a thread of its own: who waits for an answer reads the connection, so that
only one thread has to be woken for it.

One thread reads at a time; any may send. Text and binary messages, answered pings, TLS; nothing
else. Refused: compression.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Sequence
from urllib.parse import urlsplit

from websockets.client import ClientProtocol
from websockets.exceptions import WebSocketException
from websockets.frames import Frame, Opcode
from websockets.protocol import Event
from websockets.uri import parse_uri

_SEND_SECONDS = 30.0
_READ = 1 << 16


class Line:
    """Open until `close`, or until the other end is gone."""

    def __init__(
        self,
        url: str,
        authorization: str,
        *,
        context: ssl.SSLContext | None = None,
        max_size: int = 1 << 20,
        timeout: float = 1.0,
    ) -> None:
        """
        Args:
            url: `http://…` or `https://…`, with path and query.
            authorization: header.
            context: for https; by default as the machine does.
            max_size: most bytes of a message that comes.
            timeout: seconds for connecting.

        Raises:
            OSError, TimeoutError: nobody is there.
            InvalidStatus: the server refuses; `response` says why.
        """
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        raw = socket.create_connection(
            (parts.hostname, parts.port or (443 if secure else 80)), timeout
        )
        try:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket = (
                (context or ssl.create_default_context()).wrap_socket(
                    raw, server_hostname=parts.hostname
                )
                if secure
                else raw
            )
        except BaseException:
            raw.close()
            raise
        self._protocol = ClientProtocol(parse_uri(url.replace("http", "ws", 1)), max_size=max_size)
        #: an SSL object takes one thread at a time, and so does the protocol
        self._lock = threading.Lock()
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self._come: deque[str | bytes] = deque()
        self._parts: list[Frame] = []
        self._gone = False
        try:
            self._shake_hands(authorization, timeout)
        except BaseException:
            self._socket.close()
            raise
        self._socket.settimeout(_SEND_SECONDS)

    def _shake_hands(self, authorization: str, timeout: float) -> None:
        request = self._protocol.connect()
        request.headers["Authorization"] = authorization
        self._protocol.send_request(request)
        self._flush()
        end = time.monotonic() + timeout
        while not (events := self._protocol.events_received()):
            if self._gone or self._protocol.handshake_exc is not None:
                raise self._protocol.handshake_exc or ConnectionResetError(
                    "closed before the handshake"
                )
            if time.monotonic() > end:
                raise TimeoutError("no answer to the handshake")
            self._receive()
        if self._protocol.handshake_exc is not None:
            raise self._protocol.handshake_exc
        self._sort(events)  # the first messages may have come with the answer

    def send(self, data: bytes) -> None:
        """Send a binary message. Raises OSError: the connection is gone."""
        with self._lock:
            if self._gone:
                raise ConnectionResetError("the connection is closed")
            self._protocol.send_binary(data)
            self._flush()

    def recv(self, timeout: float) -> str | bytes:
        """The next message.

        Raises:
            TimeoutError: none came in that time.
            OSError: the connection is gone.
        """
        end = time.monotonic() + timeout
        while not self._come:
            if self._gone:
                raise ConnectionResetError("the connection is closed")
            left = end - time.monotonic()
            pending = isinstance(self._socket, ssl.SSLSocket) and self._socket.pending()
            if not pending and (left <= 0 or not self._poll.poll(left * 1000)):
                if time.monotonic() >= end:
                    raise TimeoutError("no message")
                continue
            with self._lock:
                try:
                    self._receive()
                    self._sort(self._protocol.events_received())
                except WebSocketException as broken:
                    self._gone = True
                    raise ConnectionResetError(str(broken)) from broken
        return self._come.popleft()

    def close(self) -> None:
        """Say good-bye, without waiting for the other end."""
        with self._lock:
            if not self._gone:
                self._gone = True
                try:
                    self._protocol.send_close(1000)
                    self._flush()
                except (OSError, WebSocketException):
                    pass
            try:
                self._socket.shutdown(socket.SHUT_RDWR)  # wakes who reads
            except OSError:
                pass
            self._socket.close()

    # ---------------------------------------------------------------- with the lock held

    def _receive(self) -> None:
        data = self._socket.recv(_READ)
        if data:
            self._protocol.receive_data(data)
        else:
            self._gone = True
            self._protocol.receive_eof()
        self._flush()

    def _sort(self, events: Sequence[Event]) -> None:
        """Messages out of frames. The protocol answers pings by itself."""
        for event in events:
            if not isinstance(event, Frame):
                continue
            if event.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
                self._parts.append(event)
                if event.fin:
                    data = b"".join(bytes(part.data) for part in self._parts)
                    self._come.append(
                        data.decode() if self._parts[0].opcode is Opcode.TEXT else data
                    )
                    self._parts = []
            elif event.opcode is Opcode.CLOSE:
                self._gone = True

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._socket.sendall(data)

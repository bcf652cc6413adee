"""A WebSocket server for NOTIFY: keeps what it is sent, by path, each message once."""

from __future__ import annotations

import json
import threading
from types import TracebackType
from typing import Any, Self

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve


class Listener:
    """Listens on a free loopback port for the length of a `with`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: dict[str, list[dict[str, Any]]] = {}
        self._seen: set[tuple[str, str]] = set()
        self._server = serve(self._take, "127.0.0.1", 0, max_size=64 << 20)
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="listener", daemon=True
        )

    @property
    def address(self) -> str:
        """host:port"""
        return f"127.0.0.1:{self._server.socket.getsockname()[1]}"

    def events(self, path: str) -> list[dict[str, Any]]:
        """All events that came to *path*, in order."""
        with self._lock:
            return list(self._events.get(path, []))

    def _take(self, connection: ServerConnection) -> None:
        path = connection.request.path if connection.request is not None else "/"
        try:
            for text in connection:
                message = json.loads(text)
                with self._lock:
                    if (path, message["messageId"]) in self._seen:
                        continue
                    self._seen.add((path, message["messageId"]))
                    self._events.setdefault(path, []).extend(
                        e for s in message["streams"] for e in s["events"]
                    )
        except ConnectionClosed:
            pass

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join(5)

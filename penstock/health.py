"""Health of a room over HTTP, from a thread of its own: /healthz, /readyz, /metrics.

/healthz answers 200 while the process lives; /readyz answers 200 when every named condition holds and otherwise 503 with the reasons;
/metrics is Prometheus text. Refused here: deciding anything; rooms report conditions, the supervisor and people read them.
"""

from __future__ import annotations

import contextlib
import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from prometheus_client import GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import CollectorRegistry

from penstock.errors import ConfigError

#: bounds of histograms of seconds, from an acknowledgement to what somebody gives up on; states of streams hold counts by them
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
#: how often the server looks whether it is to end
_CLOSING_S = 0.1


@dataclass(frozen=True)
class Condition:
    """One thing that must hold before the room can work; `why` says what it waits for."""

    ready: bool
    why: str = ""


class Health:
    """Conditions and metrics of one room, served on *port* (0: any free one, see `.port`) until `close`."""

    def __init__(self, room: str, port: int = 0, *, host: str = "127.0.0.1", wait_for: tuple[str, ...] = ("start",)) -> None:
        self.room = room
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._lock = threading.Lock()
        self._conditions = {name: Condition(False, "not started yet") for name in wait_for}
        try:
            self._server = ThreadingHTTPServer((host, port), _handler(self))
        except OSError as wrong:
            raise ConfigError(
                f"health port {port} of {room} cannot be used",
                detail=str(wrong.strerror),
                hint=f"set PENSTOCK_{room.upper()}_HEALTH_PORT to a free port, or 0 for any",
            ) from wrong
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_CLOSING_S,), name="health", daemon=True)
        self._thread.start()

    def ready(self, name: str, ready: bool = True, why: str = "") -> None:
        """Report the condition *name*; the room is ready when all reported ones hold."""
        with self._lock:
            self._conditions[name] = Condition(ready, why)

    def conditions(self) -> dict[str, Condition]:
        with self._lock:
            return dict(self._conditions)

    def is_ready(self) -> bool:
        return all(c.ready for c in self.conditions().values())

    def to_dict(self) -> dict[str, Any]:
        """The body of /readyz."""
        conditions = self.conditions()
        waiting = {name: c.why for name, c in conditions.items() if not c.ready}
        return {"room": self.room, "ready": not waiting, "waiting": waiting, "conditions": sorted(conditions)}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _handler(health: Health) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # noqa: N802 - the name http.server calls
            path = self.path.partition("?")[0]
            if path == "/healthz":
                self._answer(200, "application/json", json.dumps({"room": health.room, "alive": True}).encode())
            elif path == "/readyz":
                body = health.to_dict()
                self._answer(200 if body["ready"] else 503, "application/json", json.dumps(body).encode())
            elif path == "/metrics":
                self._answer(200, CONTENT_TYPE_LATEST, generate_latest(health.registry))
            else:
                self._answer(404, "text/plain; charset=utf-8", b"/healthz /readyz /metrics\n")

        def _answer(self, status: int, content_type: str, body: bytes) -> None:
            # an asker who gave up waiting is no news either
            with contextlib.suppress(ConnectionError):
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Polling every second is no news."""

    return Handler

"""Health of a service over HTTP, from a thread of its own: /healthz, /readyz, /metrics.

/healthz answers 200 while the process lives and what must move in it moves; /readyz answers 200
when every named condition holds and otherwise 503; /metrics is Prometheus text. Names and reasons
are told on loopback only, and names in metrics (of topics, streams, views) to who sends the key of
metrics; others read the numbers under pseudonyms. Refused here: deciding anything; services report
conditions, the supervisor and people read them.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import ipaddress
import json
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from prometheus_client import GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector, CollectorRegistry

from penstock.errors import ConfigError

#: bounds of histograms of seconds, from an acknowledgement to what somebody gives up on; states of
#: streams hold counts by them
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
#: how often the server looks whether it is to end
_CLOSING_S = 0.1
#: what is watched and does not move for so long makes the service unready; for so long, dead
_LATE_S = 2.0
_STUCK_S = 10.0
#: connections at a time; beyond, the oldest one is closed, so that who asks now is answered
_CONNECTIONS = 64
#: seconds that a caller may take to send its request
_REQUEST_S = 5.0
#: for so long all who have no key are told the same metrics
_SAME_S = 1.0
#: labels of metrics whose values name nothing that users have made, and no software
_PLAIN = frozenset(("le", "quantile", "generation", "kind", "lease"))


@dataclass(frozen=True)
class Condition:
    """One thing that must hold before the service can work; `why` says what it waits for."""

    ready: bool
    why: str = ""


class Health:
    """Conditions and metrics of one service, served on *port* (0: any free one, see `.port`) until
    `close`.
    """

    def __init__(
        self,
        service: str,
        port: int = 0,
        *,
        host: str = "127.0.0.1",
        wait_for: tuple[str, ...] = ("start",),
        metrics_key: str | None = None,
    ) -> None:
        """*metrics_key*: who sends it (`Authorization: Bearer …`) reads names in the metrics; None:
        nobody does.
        """
        self.service = service
        self.metrics_key = metrics_key
        self.registry = CollectorRegistry()
        #: the same metrics, with pseudonyms that stay as long as the key
        self.veiled = _Veiled(
            self.registry, metrics_key.encode() if metrics_key else secrets.token_bytes()
        )
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._lock = threading.Lock()
        self._conditions = {name: Condition(False, "not started yet") for name in wait_for}
        self._watched: dict[str, tuple[Callable[[], float], bool]] = {}
        try:
            self._server = _Server((host, port), _handler(self))
        except OSError as wrong:
            raise ConfigError(
                f"health port {port} of {service} cannot be used",
                detail=str(wrong.strerror),
                hint=f"set PENSTOCK_{service.upper()}_HEALTH_PORT to a free port, or 0 for any",
            ) from wrong
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_CLOSING_S,), name="health", daemon=True
        )
        self._thread.start()

    def ready(self, name: str, ready: bool = True, why: str = "") -> None:
        """Report the condition *name*; the service is ready when all reported ones hold."""
        with self._lock:
            self._conditions[name] = Condition(ready, why)

    def watch(self, name: str, late: Callable[[], float], *, vital: bool = True) -> None:
        """Ask *late* at each question for how many seconds something that must move has not moved.

        Args:
            vital: whether a new process is the remedy.
        """
        with self._lock:
            self._watched[name] = (late, vital)

    def stuck(self, seconds: float = _LATE_S) -> dict[str, str]:
        """Return what is vital and has not moved for *seconds*, with what there is to say about
        it.
        """
        with self._lock:
            watched = dict(self._watched)
        return {
            name: _stands(late())
            for name, (late, vital) in watched.items()
            if vital and late() > seconds
        }

    def conditions(self) -> dict[str, Condition]:
        with self._lock:
            found = dict(self._conditions)
            watched = dict(self._watched)
        for name, (late, _) in watched.items():
            seconds = late()
            found[name] = (
                Condition(False, _stands(seconds)) if seconds > _LATE_S else Condition(True)
            )
        return found

    def is_ready(self) -> bool:
        return all(c.ready for c in self.conditions().values())

    def to_dict(self) -> dict[str, Any]:
        """The body of /readyz."""
        conditions = self.conditions()
        waiting = {name: c.why for name, c in conditions.items() if not c.ready}
        stuck = sorted(self.stuck())
        return {
            "service": self.service,
            # the former name
            "room": self.service,
            "ready": not waiting,
            "waiting": waiting,
            "remarks": {name: c.why for name, c in conditions.items() if c.ready and c.why},
            "conditions": sorted(conditions),
            "stuck": stuck,
        }

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _stands(seconds: float) -> str:
    return f"has not moved for {seconds:.0f} s" if seconds < float("inf") else "has ended"


class _Veiled(Collector):
    """Metrics of *registry* with pseudonyms in place of names."""

    def __init__(self, registry: CollectorRegistry, key: bytes) -> None:
        self._registry = registry
        self._key = hashlib.blake2b(key, person=b"penstock-metrics").digest()
        self._lock = threading.Lock()
        self._made: tuple[float, bytes] | None = None

    def text(self) -> bytes:
        """What anybody is told; however many ask, it is written once a second."""
        with self._lock:
            if self._made is None or time.monotonic() - self._made[0] > _SAME_S:
                self._made = time.monotonic(), generate_latest(self)
            return self._made[1]

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            shown = Metric(metric.name, metric.documentation, metric.type, metric.unit)
            shown.samples = [s._replace(labels=self._labels(s.labels)) for s in metric.samples]
            yield shown

    def _labels(self, named: dict[str, str]) -> dict[str, str]:
        return {
            label: value if label in _PLAIN else self._pseudonym(value)
            for label, value in named.items()
        }

    def _pseudonym(self, name: str) -> str:
        return "~" + hashlib.blake2b(name.encode(), key=self._key, digest_size=6).hexdigest()


class _Server(ThreadingHTTPServer):
    """Closes the oldest connection when there are too many: one that is asked now must be
    answered.
    """

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._open: dict[socket.socket, None] = {}
        self._lock = threading.Lock()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            oldest = next(iter(self._open)) if len(self._open) >= _CONNECTIONS else None
            if oldest is not None:
                del self._open[oldest]
            self._open[request] = None
        if oldest is not None:
            with contextlib.suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that went away is no news."""


def _handler(health: Health) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _REQUEST_S

        def do_GET(self) -> None:  # noqa: N802 - the name http.server calls
            path = self.path.partition("?")[0]
            if path == "/healthz":
                alive = not health.stuck(_STUCK_S)
                self._tell(alive, {"alive": alive}, {"service": health.service})
            elif path == "/readyz":
                body = health.to_dict()
                self._tell(body["ready"], {"ready": body["ready"]}, body)
            elif path == "/metrics":
                self._tell_metrics()
            else:
                self._answer(404, "text/plain; charset=utf-8", b"/healthz /readyz /metrics\n")

        def _tell_metrics(self) -> None:
            key = health.metrics_key
            given = self.headers.get("Authorization")
            if key is None or given is None:
                self._answer(200, CONTENT_TYPE_LATEST, health.veiled.text())
            elif hmac.compare_digest(given.encode(errors="replace"), f"Bearer {key}".encode()):
                self._answer(200, CONTENT_TYPE_LATEST, generate_latest(health.registry))
            else:
                self._answer(
                    401, "text/plain; charset=utf-8", b"E_AUTH: this is not the key of metrics\n"
                )

        def _tell(self, good: bool, word: dict[str, Any], details: dict[str, Any]) -> None:
            here = ipaddress.ip_address(self.client_address[0].partition("%")[0])
            mapped = getattr(here, "ipv4_mapped", None) or here
            body = {**details, **word} if mapped.is_loopback else word
            self._answer(200 if good else 503, "application/json", json.dumps(body).encode())

        def send_response(self, code: int, message: str | None = None) -> None:
            """Leave out the headers that name Python and its version."""
            self.send_response_only(code, message)

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

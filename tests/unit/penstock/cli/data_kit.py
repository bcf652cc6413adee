"""A gateway and a notifier for commands, over real HTTP and WebSockets."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
from typer.testing import CliRunner, Result
from websockets.sync.server import Server, ServerConnection, serve

from penstock.cli import app
from penstock.client.wire import from_stream, to_stream
from penstock.errors import PenstockError

Answer = Callable[[str], pa.Table]


@dataclass
class Deployment:
    """What was asked of it, and what it answers."""

    answer: Answer
    asked: list[str] = field(default_factory=list)
    #: path, idempotency key and rows of each write
    writes: list[tuple[str, str, pa.Table]] = field(default_factory=list)
    #: raises for a write that is to be refused
    judge: Callable[[pa.Table], None] = lambda rows: None
    #: messages to each subscriber, and what they asked for
    messages: list[dict[str, Any]] = field(default_factory=list)
    subscribed: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""
    notifier_url: str = ""
    password: Path = Path()

    def run(self, *words: str, **more: Any) -> Result:
        """Run a command against it."""
        login = ("--url", self.url, "--password-file", str(self.password))
        return CliRunner().invoke(app, [*words, *login], **more)


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        deployment: Deployment = self.server.deployment  # type: ignore[attr-defined]
        self._send(200, json.dumps({"notifier_url": deployment.notifier_url}).encode())

    def do_POST(self) -> None:
        deployment: Deployment = self.server.deployment  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            if self.path == "/v1/query":
                sql = json.loads(body)["sql"]
                deployment.asked.append(sql)
                self._send(200, bytes(to_stream(deployment.answer(sql))))
                return
            rows = from_stream(body)
            deployment.judge(rows)
            deployment.writes.append((self.path, self.headers["Idempotency-Key"], rows))
            self._send(200, json.dumps({"rows": rows.num_rows}).encode())
        except PenstockError as error:
            told = {"error": {**error.to_dict(), "type": type(error).__name__}}
            self._send(400, json.dumps(told).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def deployment(answer: Answer, directory: Path) -> Iterator[Deployment]:
    """A deployment whose gateway answers statements by *answer*."""
    made = Deployment(answer)
    made.password = directory / "password"
    made.password.write_text("x")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.deployment = made  # type: ignore[attr-defined]
    made.url = f"http://127.0.0.1:{server.server_port}"

    def tell(connection: ServerConnection) -> None:
        made.subscribed.append(json.loads(connection.recv()))
        connection.send(json.dumps({"type": "subscribed", "token": "t0"}))
        for message in made.messages:
            connection.send(json.dumps(message))
        for _ in connection:
            pass

    notifier: Server = serve(tell, "127.0.0.1", 0)
    made.notifier_url = f"ws://127.0.0.1:{notifier.socket.getsockname()[1]}"
    threads = [threading.Thread(target=s.serve_forever) for s in (server, notifier)]
    for thread in threads:
        thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        notifier.shutdown()
        for thread in threads:
            thread.join(5)

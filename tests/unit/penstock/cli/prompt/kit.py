"""A gateway's answers for a prompt, over real HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pyarrow as pa

from penstock.client.connection import Connection
from penstock.client.wire import to_stream
from penstock.sql.vocabulary import vocabulary

ANSWERS: dict[str, dict[str, list[Any]]] = {
    "SELECT name FROM information_schema.ins_databases": {"name": ["power", "plant"]},
    "DESCRIBE `meters`": {"field": ["ts", "voltage", "volume"], "type": ["T", "INT", "INT"]},
    "DESCRIBE meters": {"field": ["ts", "voltage"], "type": ["TIMESTAMP", "INT"]},
    "SELECT 1;": {"1": [1]},
    "SELECT n\nFROM meters;": {"n": [7, 8]},
    "INSERT;": {"affected_rows": [2]},
    "USE power;": {"affected_rows": [0]},
    "USE power": {"affected_rows": [0]},
    "SHOW STREAMS": {"stream": ["s"]},
    "LONG;": {"n": list(range(1_500))},
}


class Handler(BaseHTTPRequestHandler):
    """Answers statements that it knows; others are wrong."""

    def do_GET(self) -> None:
        known = vocabulary() if self.path == "/v1/dialect" else {"notifier_url": "ws://nowhere"}
        self._send(200, json.dumps(known).encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        sql = body["sql"]
        self.server.asked.append((sql, body["database"]))  # type: ignore[attr-defined]
        if "ins_stables" in sql:
            self._send(200, bytes(to_stream(pa.table({"name": ["meters", "meadows"]}))))
        elif sql in ANSWERS:
            self._send(200, bytes(to_stream(pa.table(ANSWERS[sql]))))
        else:
            error = {"code": "E_SYNTAX", "message": "this is no statement", "type": "SqlError"}
            self._send(400, json.dumps({"error": error}).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def gateway() -> Iterator[tuple[Connection, list[tuple[str, str | None]]]]:
    """A client of it, and what it was asked: statement and database."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    asked: list[tuple[str, str | None]] = []
    server.asked = asked  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    client = Connection(f"http://127.0.0.1:{server.server_port}", "root", "x")
    try:
        yield client, asked
    finally:
        client.close()
        server.shutdown()
        server.server_close()
        thread.join(5)

"""A webhook that can be away, and says 503 for a while when it comes back."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.stack.conftest import eventually


@dataclass(frozen=True)
class Post:
    """One request, how it was answered, and when it came, in seconds."""

    headers: dict[str, str]
    body: bytes
    status: int
    at: float

    @property
    def events(self) -> list[dict[str, Any]]:
        found = json.loads(self.body)
        return found if isinstance(found, list) else [found]

    def is_signed(self, key: bytes) -> bool:
        """Tell whether the signature is what Standard Webhooks asks for."""
        signed = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode()
        code = base64.b64encode(hmac.new(key, signed + self.body, hashlib.sha256).digest())
        return self.headers["webhook-signature"] == f"v1,{code.decode()}"


class Webhook:
    """Listens from `up` to `down`, on one port; nobody does before and behind."""

    def __init__(self) -> None:
        self.posts: list[Post] = []
        #: requests that are still to be answered with 503 and Retry-After
        self.busy = 0
        self._port = 0
        self._server: ThreadingHTTPServer | None = None
        # a port that nobody listens on
        self.up()
        self.down()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/hook"

    def up(self) -> None:
        hook = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = hook._status()
                headers = {name.lower(): value for name, value in self.headers.items()}
                hook.posts.append(Post(headers, body, status, time.monotonic()))
                self.send_response(status)
                if status == 503:
                    self.send_header("Retry-After", "1")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = eventually(lambda: ThreadingHTTPServer(("127.0.0.1", self._port), Handler))
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def down(self) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    def _status(self) -> int:
        if not self.busy:
            return 204
        self.busy -= 1
        return 503

    def taken(self) -> dict[str, dict[str, Any]]:
        """Data of the events that were confirmed, by id, in the order of first arrival."""
        found: dict[str, dict[str, Any]] = {}
        for post in list(self.posts):
            for event in post.events if post.status == 204 else []:
                found.setdefault(event["id"], event["data"])
        return found

"""Requests to a gateway, and the errors of its answers, over real HTTP."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from penstock.client.gateway import Gateway, authorization
from penstock.errors import AuthError, CatalogError, RemoteError


class Handler(BaseHTTPRequestHandler):
    """Answers with what it got, or with the status that the path names."""

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, body: bytes) -> None:
        status = int(self.path.rpartition("/")[2]) if self.path.startswith("/status") else 200
        if self.path.startswith("/status/4"):
            text = b"go away" if status == 401 else b'{"error": {"code": "E_NO_TABLE"}}'
        else:
            headers = {k.lower(): v for k, v in self.headers.items()}
            text = json.dumps({"body": body.decode(), "headers": headers}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join(5)


@pytest.fixture
def gateway(url: str) -> Iterator[Gateway]:
    made = Gateway(f"{url}/", authorization("root", "x"), timeout=10.0)
    yield made
    made.close()


def test_a_token_goes_before_user_and_password() -> None:
    assert authorization("root", "x") == "Basic cm9vdDp4"
    assert authorization("root", "x", "t") == "Bearer t"


def test_requests_carry_login_type_and_headers(gateway: Gateway, url: str) -> None:
    assert gateway.url == url and gateway.context is None
    got = gateway.get("/v1/info").json()
    assert got["headers"]["authorization"] == "Basic cm9vdDp4"
    sent = gateway.post("/v1/query", b"{}", "application/json", {"Idempotency-Key": "k"}).json()
    assert sent["body"] == "{}"
    assert sent["headers"]["content-type"] == "application/json"
    assert sent["headers"]["idempotency-key"] == "k"
    assert "content-type" not in gateway.post("/v1/drain").json()["headers"]


def test_errors_are_the_gateways_or_say_its_status(gateway: Gateway) -> None:
    with pytest.raises(CatalogError, match="E_NO_TABLE"):
        gateway.get("/status/404")
    with pytest.raises(AuthError, match="answered with status 401") as refused:
        gateway.post("/status/401")
    assert refused.value.detail == "go away"
    with pytest.raises(RemoteError, match="answered with status 500"):
        gateway.get("/status/500")


def test_a_gateway_that_is_away_is_told() -> None:
    gone = Gateway("http://127.0.0.1:9", "Basic x", timeout=1.0)
    with pytest.raises(RemoteError, match="the gateway at http://127.0.0.1:9 cannot be reached"):
        gone.get("/v1/info")
    gone.close()


def test_an_address_needs_no_scheme(url: str) -> None:
    made = Gateway(url.removeprefix("http://"), authorization("root", "x"), timeout=10.0)
    assert made.get("/v1/info").is_success and made.url == url
    made.close()


def test_nobody_there_is_one_error_with_one_cause() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        made = Gateway(f"127.0.0.1:{free.getsockname()[1]}", authorization("root", "x"), timeout=5)
        with pytest.raises(RemoteError) as raised:
            made.get("/v1/info")
    cause = raised.value.__cause__
    assert isinstance(cause, ConnectionRefusedError)
    assert cause.__cause__ is None and cause.__context__ is None
    made.close()

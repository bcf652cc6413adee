"""Requests over real sockets: what is kept, what goes through a proxy, what fails how."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from urllib3.exceptions import HTTPError, ReadTimeoutError

from penstock.client import http
from penstock.client.http import Http
from tests.certificates import issued


class Server(ThreadingHTTPServer):
    """Remembers connections and requests; `/slow` answers never, `/elsewhere` with a redirect."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.connections: set[int] = set()
        self.requests: list[str] = []
        self.logins: list[str | None] = []
        self.released = threading.Event()

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self.server.connections.add(self.client_address[1])
        self.server.requests.append(self.path)
        self.server.logins.append(self.headers["Proxy-Authorization"])
        if self.path == "/slow":
            self.server.released.wait(20)
        self.send_response(302 if self.path == "/elsewhere" else 200)
        self.send_header("Location", "/")
        self.send_header("Penstock-Notice", "one, two")
        self.send_header("Penstock-Notice", "three")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[Server]:
    server = Server()
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield server
    server.released.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


@pytest.fixture
def client() -> Iterator[Http]:
    made = Http({"Authorization": "Basic x"})
    yield made
    made.close()


def test_one_connection_carries_many_requests(server: Server, client: Http) -> None:
    for _ in range(3):
        answer = client.request("GET", f"http://{server.place}/", timeout=5)
        assert answer.is_success and answer.json() == {}
    assert len(server.connections) == 1


def test_a_connection_that_rested_is_not_used_again(
    server: Server, client: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.request("GET", f"http://{server.place}/", timeout=5)
    monkeypatch.setattr(http, "_IDLE_SECONDS", -1.0)
    client.request("GET", f"http://{server.place}/", timeout=5)
    assert len(server.connections) == 2


def test_values_of_a_header_are_in_lines_or_behind_commas(server: Server, client: Http) -> None:
    answer = client.request("GET", f"http://{server.place}/", timeout=5)
    assert answer.values("penstock-notice") == ("one", "two", "three")
    assert answer.values("Nothing") == ()


def test_a_redirect_is_not_followed(server: Server, client: Http) -> None:
    answer = client.request("GET", f"http://{server.place}/elsewhere", timeout=5)
    assert (answer.status, answer.is_success) == (302, False)
    assert server.requests == ["/elsewhere"]


def test_who_does_not_answer_is_asked_once(server: Server, client: Http) -> None:
    with pytest.raises(ReadTimeoutError):
        client.request("GET", f"http://{server.place}/slow", timeout=0.2)
    assert server.requests == ["/slow"]


@pytest.mark.parametrize("value", ["a\r\nX-Injected: b", "über €"])
def test_a_header_that_is_none_sends_nothing(server: Server, client: Http, value: str) -> None:
    with pytest.raises(HTTPError):
        client.request("GET", f"http://{server.place}/", timeout=5, headers={"X-Key": value})
    assert server.requests == []


def test_the_environments_proxy_is_asked_unless_the_host_is_excepted(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"http://me:s%20cret@{server.place}")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    client = Http({})
    client.request("GET", "http://penstock.invalid:7700/v1/info", timeout=5)
    client.request("GET", f"http://{server.place}/direct", timeout=5)
    client.close()
    assert server.requests == ["http://penstock.invalid:7700/v1/info", "/direct"]
    assert server.logins == ["Basic bWU6cyBjcmV0", None]


def test_a_certificate_is_checked(tmp_path: Path) -> None:
    files = issued(tmp_path / "own")
    other = issued(tmp_path / "other")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.cert, files.key)
    with serving(context) as server:
        trusting = Http({}, ssl.create_default_context(cafile=str(files.ca)))
        url = f"https://{server.place}/"
        assert trusting.request("GET", url, timeout=5).is_success
        trusting.close()
        for doubting in (Http({}, ssl.create_default_context(cafile=str(other.ca))), Http({})):
            with pytest.raises(HTTPError, match="CERTIFICATE_VERIFY_FAILED"):
                doubting.request("GET", url, timeout=5)
            doubting.close()
        assert len(server.requests) == 1

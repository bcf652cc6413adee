"""A WebSocket that its user reads, against a real server."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

from penstock.client.line import Line
from tests.certificates import issued


def endpoint(connection: ServerConnection, request: Request) -> Response | None:
    return (
        None
        if request.headers["Authorization"] == "Basic me"
        else connection.respond(401, '{"error": "who?"}')
    )


def talk(connection: ServerConnection) -> None:
    connection.send('{"hello": true}')
    for message in connection:
        if message == b"bye":
            return
        if message == b"ping":
            connection.ping().wait(5)
        connection.send(message if message != b"large" else b"x" * 300_000)


@pytest.fixture(params=["plain", "tls"])
def open_line(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], Line]]:
    context = None
    trusted = None
    if request.param == "tls":
        files = issued(tmp_path)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files.cert, files.key)
        trusted = ssl.create_default_context(cafile=files.ca)
    with serve(talk, "127.0.0.1", 0, ssl=context, process_request=endpoint) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"{'https' if trusted else 'http'}://127.0.0.1:{server.socket.getsockname()[1]}/v1/append?table=a.b"
        yield lambda user: Line(url, f"Basic {user}", context=trusted, timeout=5.0)
        server.shutdown()


def test_messages_go_both_ways_and_pings_are_answered_by_who_reads(
    open_line: Callable[[str], Line],
) -> None:
    line = open_line("me")
    assert line.recv(5) == '{"hello": true}'
    for message in (b"one", b"ping", b"two"):
        line.send(message)
        assert line.recv(5) == message
    line.send(b"large")
    assert line.recv(5) == b"x" * 300_000
    with pytest.raises(TimeoutError):
        line.recv(0.01)
    line.send(b"bye")
    with pytest.raises(ConnectionError):
        line.recv(5)
    with pytest.raises(ConnectionError):
        line.send(b"more")
    line.close()


def test_closing_wakes_who_reads(open_line: Callable[[str], Line]) -> None:
    line = open_line("me")
    line.recv(5)
    ended = threading.Event()

    def read() -> None:
        with pytest.raises(OSError):
            line.recv(60)
        ended.set()

    reader = threading.Thread(target=read)
    reader.start()
    line.close()
    assert ended.wait(10)
    reader.join()


def test_a_refusal_says_why(open_line: Callable[[str], Line]) -> None:
    with pytest.raises(InvalidStatus) as refused:
        open_line("somebody")
    assert refused.value.response.status_code == 401
    assert b"who?" in (refused.value.response.body or b"")


def test_who_does_not_answer_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        with pytest.raises(TimeoutError):
            Line(f"http://127.0.0.1:{silent.getsockname()[1]}/", "Basic me", timeout=0.2)
        assert time.monotonic() - begun < 5

"""penstock top: rates between two looks."""

from __future__ import annotations

import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console, RenderableType
from typer.testing import CliRunner

from penstock.cli import app, observer
from penstock.cli.activity import (
    ActivitySample,
    ServiceCount,
    StreamCount,
    rate,
    services_table,
    streams_table,
)
from penstock.cli.service_metrics import health_ports, read_metrics, total
from penstock.errors import ConfigError, RemoteError

STATE: dict[str, Any] = {
    "services": {
        "gateway": {"state": "ready", "restarts": 0, "pid": os.getpid()},
        "store": {"state": "starting", "restarts": 2, "pid": None},
    },
    "ports": {"gateway": 1, "gateway-health": 2, "store-health": 3},
}
METRICS = """\
# HELP penstock_gateway_rows Rows
penstock_gateway_rows 100.0
penstock_stream_rows_in{stream="a"} 1.0
penstock_stream_rows_in{stream="b"} 2.5
penstock_stream_rows_in_other 7.0
"""


def lines(shown: RenderableType) -> list[list[str]]:
    console = Console(width=120)
    with console.capture() as taken:
        console.print(shown)
    return [line.split() for line in taken.get().splitlines()]


def test_services_show_what_they_used_meanwhile() -> None:
    before = ActivitySample(10.0, {"gateway": ServiceCount(5.0, 50_000_000, 100.0)}, [])
    after = ActivitySample(12.0, {"gateway": ServiceCount(6.0, 80_000_000, 2100.0)}, [])
    _, gateway, store = lines(services_table(STATE, before, after))
    assert gateway == ["gateway", "ready", "50", "80", "1,000", "0"]
    assert store == ["store", "starting", "0", "0", "2"]


def stream(name: str, rows_in: int, lag: int) -> StreamCount:
    return StreamCount("power", name, "ready", rows_in, rows_in // 2, 1, 0, lag)


def test_streams_with_the_largest_lag_come_first() -> None:
    before = ActivitySample(0.0, {}, [stream("a", 100, 0), stream("b", 0, 0)])
    after = ActivitySample(
        2.0, {}, [stream("a", 300, 0), stream("b", 4000, 12_000), stream("new", 9, 1)]
    )
    _, *shown = lines(streams_table(before, after))
    assert shown == [
        ["power.b", "ready", "2,000", "1,000", "1", "0", "12,000"],
        ["power.new", "ready", "1", "0", "1"],
        ["power.a", "ready", "100", "50", "1", "0", "0"],
    ]


@pytest.mark.parametrize(
    ("before", "after", "seconds", "found"),
    [(1.0, 3.0, 2.0, 1.0), (None, 3.0, 2.0, None), (5.0, 3.0, 2.0, None), (1.0, 3.0, 0.0, None)],
)
def test_a_count_that_began_anew_has_no_rate(
    before: float | None, after: float, seconds: float, found: float | None
) -> None:
    assert rate(before, after, seconds) == found


def test_metrics_are_summed_over_their_labels() -> None:
    assert total(METRICS, "penstock_stream_rows_in") == 3.5
    assert total(METRICS, "penstock_gateway_rows") == 100.0
    assert total(METRICS, "penstock_nothing") is None
    assert health_ports(STATE) == {"gateway": 2, "store": 3}


def test_metrics_are_read_with_the_key() -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f"{self.path} {self.headers['Authorization']}".encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        assert read_metrics(server.server_port, "k") == "/metrics Bearer k"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
    assert read_metrics(server.server_port) == ""


def test_a_pipe_gets_one_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer, "read_state", lambda _: STATE)
    monkeypatch.setattr(observer, "read_metrics", lambda port: METRICS if port == 2 else "")
    rows = [("power", "averages", "ready", 1, 1, 0, 0, 5)]
    client = SimpleNamespace(query=lambda sql: SimpleNamespace(rows=rows), close=lambda: None)
    monkeypatch.setattr(observer, "connection", lambda *given, **more: client)
    done = CliRunner().invoke(app, ["top", "--data-dir", str(tmp_path), "-s", "0.5"])
    assert done.exit_code == 0, done.exception
    assert "power.averages" in done.stdout and "gateway" in done.stdout


def test_a_gateway_that_is_silent_hides_no_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: object, **more: object) -> None:
        raise RemoteError("it is not there")

    monkeypatch.setattr(observer, "read_state", lambda _: STATE)
    monkeypatch.setattr(observer, "read_metrics", lambda port: "")
    monkeypatch.setattr(observer, "connection", refuse)
    done = CliRunner().invoke(app, ["top", "--data-dir", str(tmp_path), "-s", "0.5"])
    assert "says nothing of streams: it is not there" in done.stdout
    assert "gateway" in done.stdout


def test_without_a_mesh_it_is_said(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["top", "--data-dir", str(tmp_path)])
    assert isinstance(done.exception, ConfigError)

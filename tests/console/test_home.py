"""Home: a stream that stopped, a lagging partition and a dead target of NOTIFY are seen on it soon."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import redis
from websockets.sync.server import Server, serve

from penstock import names
from penstock.client.connection import Connection
from penstock.mesh.running import RunningMesh
from tests.console.conftest import Visit
from tests.console.using import Open, client_of, enter

#: from when the mesh knows it until it is on the page
MOST_S = 3.0
DEADLINE_S = 120.0


def check_seen_soon(one: Visit, shown: Any, known: Callable[[], bool]) -> None:
    """Fail if the page shows later than it should what the mesh knows."""
    found: float | None = None
    end = time.monotonic() + DEADLINE_S
    while shown.count() == 0:
        if found is None and known():
            found = time.monotonic()
        assert found is None or time.monotonic() < found + MOST_S, "the page does not show it"
        assert time.monotonic() < end, "the mesh does not know of it"
        one.page.wait_for_timeout(50)


def figure(client: Connection, database: str, column: str) -> Any:
    listed = client.query(
        f"SELECT {column} FROM information_schema.ins_streams WHERE source_db = '{database}'"
    )
    return listed.rows[0][0]


def wait_until_ready(client: Connection, database: str) -> None:
    end = time.monotonic() + DEADLINE_S
    while figure(client, database, "status") != "ready":
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_stream_that_stopped_is_on_home(visit: Open, mesh: RunningMesh) -> None:
    with client_of(mesh) as client:
        client.execute(
            "CREATE DATABASE stops; CREATE TABLE stops.t (ts TIMESTAMP, v INT);"
            " CREATE STABLE stops.small (ts TIMESTAMP, n TINYINT) TAGS (kind VARCHAR(9));"
            " CREATE STREAM stops.s TRIGGER AT_ONCE ON_ERROR STOP INTO stops.small TAGS (kind) AS"
            " SELECT _wstart, sum(v) AS n FROM stops.t PARTITION BY tbname AS kind INTERVAL(10s)"
        )
        wait_until_ready(client, "stops")
        one = enter(visit, mesh)
        stopped = one.page.get_by_text("stream stops.s stopped")
        assert stopped.count() == 0
        client.write("stops.t", [{"ts": "2026-01-01T00:00:00Z", "v": 300}])
        check_seen_soon(one, stopped, lambda: figure(client, "stops", "status") == "failed")


def test_a_dead_target_of_notify_is_on_home(visit: Open, mesh: RunningMesh) -> None:
    target = serve(lambda connection: [None for _ in connection], "127.0.0.1", 0)
    port = target.socket.getsockname()[1]
    with client_of(mesh) as client, running(target):
        client.execute(
            "CREATE DATABASE tells; CREATE TABLE tells.t (ts TIMESTAMP, v INT);"
            " CREATE STREAM tells.s TRIGGER AT_ONCE INTO tells.r AS"
            " SELECT _wstart, sum(v) AS n FROM tells.t INTERVAL(10s)"
            f" NOTIFY ('ws://127.0.0.1:{port}/hook') ON ('WINDOW_CLOSE')"
        )
        wait_until_ready(client, "tells")
        write_windows(client, "tells", 3)
        client.drain("tells")
        one = enter(visit, mesh)
        down = one.page.get_by_text(f"NOTIFY target ws://127.0.0.1:{port}")
        assert down.count() == 0
        target.shutdown()
        write_windows(client, "tells", 6)
        check_seen_soon(one, down, lambda: "is down" in (figure(client, "tells", "message") or ""))


@contextmanager
def running(server: Server) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


def write_windows(client: Connection, database: str, count: int) -> None:
    client.write(
        f"{database}.t",
        [{"ts": f"2026-01-01T00:{minute:02}:00Z", "v": 1} for minute in range(count)],
    )


def test_a_lagging_partition_is_on_home(visit: Open, mesh: RunningMesh) -> None:
    with client_of(mesh) as client:
        client.execute(
            "CREATE DATABASE lags PARTITIONS 2; CREATE TABLE lags.t (ts TIMESTAMP, v INT);"
            " CREATE STREAM lags.s TRIGGER AT_ONCE INTO lags.r AS"
            " SELECT _wstart, sum(v) AS n FROM lags.t INTERVAL(10s)"
        )
        wait_until_ready(client, "lags")
        write_windows(client, "lags", 3)
        client.drain("lags")
        one = enter(visit, mesh)
        behind = one.page.get_by_text("most of them in in.lags:")
        with stuck_workers(mesh, names.ingest_topic("lags"), 2):
            for count in range(1, 40):
                write_windows(client, "lags", count)
            check_seen_soon(one, behind, lambda: figure(client, "lags", "lag_records") > 0)
            one.page.get_by_role("link", name="s", exact=True).wait_for()


@contextmanager
def stuck_workers(mesh: RunningMesh, topic: str, partitions: int) -> Iterator[None]:
    """Have those stand still who work on a topic's partitions, for the length of a `with`."""
    client = redis.from_url(mesh.redis_url, decode_responses=True)

    def pids() -> list[int]:
        fields = client.hgetall(names.query_progress(topic))
        return [json.loads(v)["pid"] for f, v in fields.items() if f.startswith("task:")]

    end = time.monotonic() + DEADLINE_S
    while len(pids()) < partitions:
        assert time.monotonic() < end
        time.sleep(0.1)
    stuck = [psutil.Process(pid) for pid in pids()]
    for process in stuck:
        process.suspend()
    try:
        yield
    finally:
        for process in stuck:
            if process.is_running():
                process.resume()

"""`make demo-federation`: two whole deployments, edge and cloud, with a link between them that is
cut and a cloud that is restarted.

Flights are replayed into the edge. A filtered view sends the late ones to the cloud; a stream in
the cloud computes windows over the edge's table; a process of its own watches the cloud's table by
its URI. At the end all three must say the same as the rows themselves.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import polars as pl

from penstock import uri
from penstock.client.connection import Connection, connect
from penstock.client.connection_options import ConnectionOptions
from penstock.demo import flights
from penstock.errors import PenstockError
from penstock.link.address import Address
from penstock.link.client import Link
from penstock.link.mirror import RemoteTable
from penstock.mesh.layout import Layout
from penstock.mesh.proxy import Proxy
from penstock.mesh.running import RunningMesh, launch, wait_for_start
from penstock.mesh.stop import stop_mesh

ROWS = 60_000
_FRAME = 1_000
_LATE = 15
_PATIENT = {"PENSTOCK_GATEWAY_LIVE_TIMEOUT": "180"}
_DEADLINE = 300.0


class DemoFailed(PenstockError):
    code = "E_DEMO"


class Deployment:
    """A mesh in a directory, which can be stopped and started again on the same ports."""

    def __init__(self, directory: Path, *, tied: bool) -> None:
        """Start it; `wait` returns when it is up. (A tied child dies with the thread that made it:
        this is for the main thread.)
        """
        self._layout = Layout(directory.absolute())
        self._tied = tied
        self._supervisor = launch(directory, environment=_PATIENT, tied=tied)
        self.mesh: RunningMesh

    def wait(self) -> Deployment:
        for state in wait_for_start(self._supervisor, self._layout):
            self.mesh = RunningMesh(self._layout, state["settings"])
        return self

    def restart(self) -> None:
        """Stop all of it, then start it on the same ports."""
        ports = tuple(f"{name}={number}" for name, number in self.mesh.state()["ports"].items())
        self.stop()
        self._supervisor = launch(
            self._layout.root, environment=_PATIENT, ports=ports, tied=self._tied, port_base="7700"
        )
        self.wait()

    def stop(self) -> None:
        if self._supervisor.poll() is None:
            self._supervisor.terminate()
            self._supervisor.wait(90)
        stop_mesh(self._layout)

    @property
    def link_port(self) -> int:
        return int(self.mesh.federation_url.rpartition(":")[2])

    def client(self) -> Connection:
        return connect(
            self.mesh.gateway_url,
            user=self.mesh.user,
            password=self.mesh.password,
            options=ConnectionOptions(timeout=200),
        )

    def address(self) -> Address:
        return Address("127.0.0.1", self.link_port, self.mesh.user, self.mesh.password)


def run(directory: Path, rows: int, *, keep_up: bool) -> str:
    """The demo; its last line.

    Raises:
        DemoFailed: a row was lost, or came twice, or somebody sees other rows.
    """
    started = time.monotonic()
    _say("starting two deployments: edge and cloud")
    shutil.rmtree(directory, ignore_errors=True)
    with ExitStack() as stack:
        edge = Deployment(directory / "edge", tied=not keep_up)
        cloud = Deployment(directory / "cloud", tied=not keep_up)
        if not keep_up:
            stack.callback(edge.stop)
            stack.callback(cloud.stop)
        edge.wait()
        cloud.wait()
        to_cloud = stack.enter_context(Proxy(cloud.link_port))
        to_edge = stack.enter_context(Proxy(edge.link_port))
        line = _play(edge, cloud, to_cloud, to_edge, rows, stack, started)
        if keep_up:
            # what is left goes from room to room, without this process between them
            _direct(edge, cloud)
    if keep_up:
        for name, deployment in (("edge", edge), ("cloud", cloud)):
            secret = deployment.mesh.layout.secret("root")
            _say(f"{name}: {deployment.mesh.gateway_url} user=root password-file={secret}")
        _say(
            f"stop them with: penstock down --data-dir {directory / 'edge'}; penstock down"
            f" --data-dir {directory / 'cloud'}"
        )
    return line


def _play(
    edge: Deployment,
    cloud: Deployment,
    to_cloud: Proxy,
    to_edge: Proxy,
    rows: int,
    stack: ExitStack,
    started: float,
) -> str:
    departures = flights.load().head(rows)
    late = departures.filter(pl.col("dep_delay") > _LATE)
    near = edge.client()
    far = cloud.client()
    for statement in flights.CREATE:
        near.execute(statement)
    far.execute("CREATE DATABASE hub PARTITIONS 4")
    far.execute(
        "CREATE STABLE hub.late (ts TIMESTAMP, dep_delay INT, carrier VARCHAR(2), origin"
        " VARCHAR(3)) TAGS (tailnum VARCHAR(8))"
    )
    near.execute(_external(f"{flights.DATABASE}.in_cloud", to_cloud.port, cloud, "hub", "late"))
    near.execute(
        f"CREATE MATERIALIZED VIEW {flights.DATABASE}.upload INTO {flights.DATABASE}.in_cloud AS"
        f" SELECT ts, dep_delay, carrier, origin, tailnum FROM {flights.DATABASE}.{flights.TABLE}"
        f" WHERE dep_delay > {_LATE}"
    )
    far.execute(_external("hub.at_edge", to_edge.port, edge, flights.DATABASE, flights.TABLE))
    far.execute(
        "CREATE STREAM hub.hourly TRIGGER WINDOW_CLOSE WATERMARK 2h INTO hub.by_hour TAGS (aircraft"
        " VARCHAR(32)) SUBTABLE(aircraft) AS SELECT _wstart, count(*) AS flights, sum(distance) AS"
        " miles FROM hub.at_edge PARTITION BY tbname AS aircraft INTERVAL(1h)"
    )
    watcher = _watcher(cloud)
    stack.callback(watcher.kill)
    _say(
        f"replaying {departures.height} flights into the edge; {late.height} of them are late and"
        " go to the cloud"
    )
    pieces = list(departures.iter_slices(_FRAME))
    for i, piece in enumerate(pieces):
        near.write(f"{flights.DATABASE}.{flights.TABLE}", piece)
        if i == len(pieces) // 4:
            _say("cutting the link")
            to_cloud.cut()
            to_edge.cut()
        if i == len(pieces) // 2:
            _say("healing the link")
            to_cloud.heal()
            to_edge.heal()
        if i == 3 * len(pieces) // 4:
            _say("restarting the cloud")
            far.close()
            cloud.restart()
            far = cloud.client()
    count = late.height
    total = int(late["dep_delay"].sum())
    _until(
        "the cloud has every late flight",
        lambda: far.query("SELECT count(*), sum(dep_delay) FROM hub.late").rows == [(count, total)],
    )
    windows = _windows(far, departures)
    lost, duplicated = _compare(cloud, late)
    seen = _await_watcher(watcher, count, total)
    outcome = (
        f"federation ok: rows={departures.height} sent={count} windows={windows} watched={seen}"
        f" cuts={to_cloud.cuts} restarts=1 seconds={time.monotonic() - started:.0f} lost={lost}"
        f" duplicated={duplicated}"
    )
    near.close()
    far.close()
    if lost or duplicated:
        raise DemoFailed("rows are missing or came twice", detail=outcome)
    return outcome


def _external(name: str, port: int, there: Deployment, database: str, table: str) -> str:
    return (
        f"CREATE EXTERNAL STREAM {name} SETTINGS type='penstock', hosts='127.0.0.1:{port}',"
        f" db='{database}', user='root', password='{there.mesh.password}', stream='{table}'"
    )


def _windows(far: Connection, departures: pl.DataFrame) -> int:
    """All hours, once the mirror has everything and FLUSH has closed the last ones; as many and as
    full as the rows say.
    """
    _until(
        "the mirror has every flight",
        lambda: (
            far.query("SELECT count(*) FROM hub._mirror_at_edge").rows == [(departures.height,)]
        ),
    )
    far.drain("hub")
    far.execute("FLUSH STREAM hub.hourly")
    hours = (
        departures.with_columns(pl.col("ts") // 3_600_000)
        .group_by("tbname", "ts")
        .agg(pl.len(), pl.col("distance").sum())
    )
    wanted = [(hours.height, departures.height, int(departures["distance"].sum()))]
    _until(
        "windows in the cloud",
        lambda: (
            far.query("SELECT count(*), sum(flights), sum(miles) FROM hub.by_hour").rows == wanted
        ),
    )
    return hours.height


def _compare(cloud: Deployment, late: pl.DataFrame) -> tuple[int, int]:
    """Rows missing in the cloud's log, and rows that are there more than once: counted in the log,
    where nothing is merged.
    """
    frames: list[pl.DataFrame] = []
    with Link(cloud.address()) as link:
        channel = link.subscribe("SELECT ts FROM hub.late", start="earliest")
        channel.expect("subscribed", 30)
        while (message := channel.get(3.0)) is not None:
            if message.rows is not None:
                frames.append(
                    pl.DataFrame(message.rows).select(
                        "tbname", pl.col("ts").cast(pl.Datetime("ms")).cast(pl.Int64)
                    )
                )
            elif message.kind == "token" and sum(f.height for f in frames) >= late.height:
                break
    there = (
        pl.concat(frames) if frames else pl.DataFrame(schema={"tbname": pl.String, "ts": pl.Int64})
    )
    once = there.unique()
    return (
        late.select("tbname", "ts").join(once, on=["tbname", "ts"], how="anti").height,
        there.height - once.height,
    )


def _watcher(cloud: Deployment) -> subprocess.Popen[str]:
    """A third process that follows `pq://hub/scope/late`."""
    command = [sys.executable, "-m", "penstock.demo.federation", "--watch", cloud.mesh.gateway_url]
    command += ["--password-file", str(cloud.mesh.layout.secret("root"))]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    if process.stdout.readline().strip() != "watching":
        raise DemoFailed("the third process does not see the cloud's table")
    return process


def _await_watcher(watcher: subprocess.Popen[str], count: int, total: int) -> int:
    """Return what the third process holds, once it holds everything."""
    assert watcher.stdin is not None and watcher.stdout is not None
    watcher.stdin.write(json.dumps({"count": count, "sum": total}) + "\n")
    watcher.stdin.flush()
    said = json.loads(watcher.stdout.readline() or "{}")
    watcher.wait(20)
    if (said.get("count"), said.get("sum")) != (count, total):
        raise DemoFailed("the third process sees other rows", detail=str(said))
    return count


def watch(url: str, password_file: Path) -> None:
    """The third process: follow the table until it is what somebody says on standard input."""
    uri.session(url, user="root", password=password_file.read_text(encoding="utf-8").strip())
    table = uri.resolve("pq://hub/scope/late?onDisconnect=retain&columns=dep_delay")
    assert isinstance(table, RemoteTable)
    print("watching", flush=True)
    wanted = json.loads(sys.stdin.readline())

    def summarize() -> dict[str, int]:
        values = table.to_polars()["dep_delay"]
        return {"count": len(values), "sum": int(values.sum() or 0)}

    deadline = time.monotonic() + 60
    while summarize() != wanted and time.monotonic() < deadline:
        time.sleep(0.1)
    print(json.dumps(summarize()), flush=True)
    table.close()


def _direct(edge: Deployment, cloud: Deployment) -> None:
    """Let the views and mirrors go without the demo's proxies from here on: they have done their
    work and are dropped.
    """
    with edge.client() as near, cloud.client() as far:
        near.execute(f"DROP MATERIALIZED VIEW {flights.DATABASE}.upload")
        far.execute("DROP STREAM hub.hourly")


def _until(what: str, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _DEADLINE
    said: Exception | None = None
    while time.monotonic() < deadline:
        try:
            if holds():
                return
        except PenstockError as error:
            said = error
        time.sleep(0.3)
    raise DemoFailed(f"it did not come to this: {what}", detail=str(said or ""))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m penstock.demo.federation", description="two deployments, one link"
    )
    parser.add_argument("--directory", type=Path, default=Path(".penstock/demo-federation"))
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--keep-up", action="store_true")
    parser.add_argument("--watch", default="")
    parser.add_argument("--password-file", type=Path)
    given = parser.parse_args()
    if given.watch:
        watch(given.watch, given.password_file)
        return
    try:
        print(run(given.directory, min(given.rows, flights.ROWS), keep_up=given.keep_up))
    except PenstockError as error:
        print(error, file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()

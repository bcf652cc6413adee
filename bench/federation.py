"""What the link carries: rows a second of a snapshot, a subscription, appends and a view; how long
an update takes to a remote table.
"""

from __future__ import annotations

import statistics
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pyarrow as pa

from bench.profile import Profile
from bench.report import Line, Recorder, median_line
from penstock import uri
from penstock.client.connection import Connection, connect
from penstock.client.connection_options import ConnectionOptions
from penstock.link.address import Address
from penstock.link.client import Link
from penstock.link.mirror import RemoteTable
from penstock.mesh.running import RunningMesh, running_mesh

SERVICES = ("kafka", "redis", "gateway", "store", "federation")
_ENVIRONMENT = {"PENSTOCK_GATEWAY_WAIT_FOR_JOBS": "false"}
_T0 = 1_767_225_600_000
#: as remote tables ask: in no particular order
_SNAPSHOT = (
    "SELECT tbname, ts, v, w, note, site FROM (SELECT tbname, ts, v, w, note, site FROM src) AS t"
)
#: Deephaven's default: updates no faster than one a second
_PEER_MS = 1000.0


def measure(profile: Profile, record: Recorder, chosen: str = "") -> None:
    """On one mesh, this process being the other deployment; the view goes between two tables of it,
    over the link both times.
    """
    rows = {"full": 4_000_000, "short": 2_000_000, "quick": 400_000}[profile.name]
    with TemporaryDirectory(prefix="penstock-bench-") as directory:
        with running_mesh(Path(directory), services=SERVICES, environment=_ENVIRONMENT) as mesh:
            with connect(
                mesh.gateway_url,
                user=mesh.user,
                password=mesh.password,
                options=ConnectionOptions(timeout=300),
            ) as client:
                _run(mesh, client, rows, profile, record)


def _run(
    mesh: RunningMesh, client: Connection, rows: int, profile: Profile, record: Recorder
) -> None:
    client.execute("CREATE DATABASE b PARTITIONS 4")
    for name in ("src", "dst", "fed"):
        client.execute(
            f"CREATE STABLE b.{name} (ts TIMESTAMP, v INT, w DOUBLE, note VARCHAR(16)) TAGS (site INT)"
        )
    address = Address(
        "127.0.0.1", int(mesh.federation_url.rpartition(":")[2]), mesh.user, mesh.password
    )
    frames = [_rows(first, 50_000) for first in range(0, rows, 50_000)]
    with Link(address, timeout=60) as link:
        record.add(
            Line(
                "federation.append",
                rows / _append(link, frames),
                "rows/s",
                note="50,000 rows a frame, of a producer",
            )
        )
        client.query("SELECT count(*) FROM b.src")
        rates = []
        for _ in range(max(profile.rounds, 1)):
            began = time.perf_counter()
            assert sum(p.num_rows for p in link.stream_query(_SNAPSHOT, "b")) == rows
            rates.append(rows / (time.perf_counter() - began))
        record.add(
            median_line("federation.snapshot", rates, "rows/s", note=f"{rows} rows of 6 columns")
        )
        record.add(
            Line(
                "federation.subscribe",
                rows / _subscribe(link, rows),
                "rows/s",
                note="from the beginning of the log",
            )
        )
    began = time.perf_counter()
    client.execute(
        "CREATE MATERIALIZED VIEW b.pump INTO b.dst AS SELECT * FROM b.src WHERE _tp_time > earliest_ts()"
    )
    while client.query("SELECT count(*) FROM b.dst").rows != [(rows,)]:
        time.sleep(0.2)
    record.add(
        Line(
            "federation.view",
            rows / (time.perf_counter() - began),
            "rows/s",
            note="both ends on this machine, CREATE included",
        )
    )
    client.execute("DROP MATERIALIZED VIEW b.pump")
    _latency(mesh, client, profile, record)


def _rows(first: int, count: int) -> pa.Table:
    at = pl.int_range(first, first + count, eager=True)
    frame = pl.DataFrame(
        {
            "_offset": at // 1000,
            "_row": at % 1000,
            "tbname": "m" + (at % 1000).cast(pl.String),
            "ts": _T0 + at,
            "v": at.cast(pl.Int32),
            "w": at * 0.5,
            "note": "n" + (at % 100).cast(pl.String),
            "site": (at % 7).cast(pl.Int32),
        }
    )
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    return table.set_column(
        table.column_names.index("ts"), "ts", table.column("ts").cast(pa.timestamp("ms", "UTC"))
    )


def _append(link: Link, frames: list[pa.Table]) -> float:
    channel = link.append("src", "b", producer="bench")
    channel.expect("opened", 60)
    began = time.perf_counter()
    sent = acked = 0
    while acked < len(frames):
        if sent < len(frames) and sent - acked < 8:
            channel.send({"seq": sent}, frames[sent])
            sent += 1
            continue
        channel.expect("ack", 120)
        acked += 1
    return time.perf_counter() - began


def _subscribe(link: Link, rows: int) -> float:
    began = time.perf_counter()
    channel = link.subscribe("SELECT * FROM b.src", start="earliest")
    channel.expect("subscribed", 60)
    got = 0
    while got < rows:
        message = channel.get(60)
        assert message is not None
        got += message.rows.num_rows if message.rows is not None else 0
    return time.perf_counter() - began


def _latency(mesh: RunningMesh, client: Connection, profile: Profile, record: Recorder) -> None:
    """From `send` over the writer's WebSocket to the listener of a remote table, one row at a time,
    100 a second.
    """
    uri.session(mesh.gateway_url, user=mesh.user, password=mesh.password, default=True)
    table = uri.resolve("pq://b/scope/fed")
    assert isinstance(table, RemoteTable)
    arrived = threading.Event()
    table.on_update(lambda _: arrived.set())
    times: list[float] = []
    with table, client.writer("b.fed") as writer:
        for i in range({"full": 3000, "short": 1000, "quick": 300}[profile.name]):
            arrived.clear()
            began = time.perf_counter()
            writer.write([{"tbname": f"m{i % 10}", "ts": _T0 + i, "v": i, "site": i % 10}])
            assert arrived.wait(10)
            if i >= 50:
                times.append((time.perf_counter() - began) * 1000)
            time.sleep(0.01)
    times.sort()
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        value = times[int(len(times) * share)]
        record.add(
            Line(
                f"federation.update_latency_{name}",
                value,
                "ms",
                baseline=_PEER_MS,
                note="write to remote table's listener",
            )
        )
    assert statistics.median(times) > 0

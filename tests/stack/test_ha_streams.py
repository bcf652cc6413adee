"""Streams over stream tables, and into them."""

from __future__ import annotations

import pytest

import penstock
from tests.stack.conftest import MeshFactory, eventually

METERS = penstock.table(["ts", "site", "volts"], ["TIMESTAMP", "VARCHAR(8)", "DOUBLE"])
MINUTES = penstock.table(["start", "n", "volts"], ["TIMESTAMP", "BIGINT", "DOUBLE"])


@pytest.mark.long
def test_a_window_stream_reads_one_and_writes_another_through_a_failover(
    own_mesh: MeshFactory,
) -> None:
    mesh = own_mesh(services=("kafka", "redis", "gateway", "spark", "store"), nodes=3)
    with penstock.connect(
        mesh.gateway_url,
        user=mesh.user,
        password=mesh.password,
        database="plant",
        options=penstock.ConnectionOptions(timeout=150),
    ) as client:
        client.execute("CREATE DATABASE plant PARTITIONS 1")
        meters = client.ha.create(11, METERS, "meters", 1000)
        minutes = client.ha.create(11, MINUTES, "minutes", 1000)
        client.execute(
            "CREATE STREAM minutely TRIGGER WINDOW_CLOSE WATERMARK 5s INTO minutes AS "
            "SELECT _wstart, count(*) AS n, avg(volts) AS volts FROM meters INTERVAL(1m)"
        )
        # rows of one time are different rows
        meters.append(
            [{"ts": "2026-03-01T09:00:05Z", "site": "a", "volts": v} for v in (219.0, 221.0)]
        )
        meters.append([{"ts": "2026-03-01T09:01:10Z", "site": "a", "volts": 230.0}])
        eventually(lambda: minutes.rows().table.column("n").to_pylist() == [2], 60)
        mesh.kill(client.ha.leader(11).lower())
        meters.append([{"ts": "2026-03-01T09:02:10Z", "site": "a", "volts": 231.0}])
        eventually(lambda: minutes.rows().table.column("n").to_pylist() == [2, 1], 60)
        pid = mesh.kill("spark")
        mesh.wait_ready("spark", not_pid=pid)
        meters.append([{"ts": "2026-03-01T09:03:10Z", "site": "a", "volts": 232.0}])
        eventually(lambda: minutes.rows().table.column("n").to_pylist() == [2, 1, 1], 90)
        assert minutes.rows().table.column("volts").to_pylist() == [220.0, 230.0, 231.0]
        client.drain()
        assert client.query("SELECT row_id, n FROM minutes ORDER BY row_id").rows == [
            (0, 2),
            (1, 1),
            (2, 1),
        ]

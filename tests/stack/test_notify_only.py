"""Streams without a result table: their windows come to NOTIFY's targets over deaths of stream jobs
and notifier, and no row is written.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import penstock
from penstock.client.connection import Connection
from penstock.client.connection_options import ConnectionOptions
from penstock.errors import PenstockError
from penstock.mesh.running import RunningMesh
from tests.stack.conftest import CONTAINERS, SELF, eventually
from tests.stack.webhook_kit import Webhook

T0 = 1_700_000_000_000
WINDOWS = 30

pytestmark = pytest.mark.skipif(CONTAINERS, reason="containers: targets are on this machine")


def _write(client: Connection, first: int, last: int) -> None:
    for second in range(first, last):
        client.execute(f"INSERT INTO t USING m TAGS (1) VALUES ({T0 + 1000 * second}, {second})")


def _target(client: Connection) -> tuple[object, ...]:
    """What SHOW STREAMS says of the only stream."""
    answer = client.query("SHOW STREAMS")
    listed = dict(zip(answer.columns, answer.rows[0], strict=True))
    return listed["target_db"], listed["target_table"], listed["status"]


def test_windows_are_told_of_and_written_nowhere(own_mesh: Callable[..., RunningMesh]) -> None:
    mesh = own_mesh(environment=SELF)
    with penstock.connect(
        mesh.gateway_url,
        user=mesh.user,
        password=mesh.password,
        database="told",
        options=ConnectionOptions(timeout=150),
    ) as client:
        client.execute("CREATE DATABASE told PARTITIONS 1")
        client.execute("CREATE STABLE m (ts TIMESTAMP, v INT) TAGS (g INT)")
        hook = Webhook()
        text = (
            "CREATE STREAM s AS SELECT count(*) c, max(v) v FROM m PARTITION BY tbname INTERVAL(1s)"
            f" NOTIFY ('{hook.url}') ON ('WINDOW_CLOSE') WHERE v <> 7"
        )
        explained = dict(client.query(f"EXPLAIN {text}").rows)
        assert explained["target"] == "none: results are in the events of NOTIFY only"
        client.execute(text)
        _write(client, 0, WINDOWS // 3)
        mesh.wait_ready("spark", not_pid=mesh.kill("spark"))
        _write(client, WINDOWS // 3, 2 * WINDOWS // 3)
        mesh.wait_ready("notifier", not_pid=mesh.kill("notifier"))
        hook.up()
        _write(client, 2 * WINDOWS // 3, WINDOWS + 1)
        eventually(lambda: len(hook.taken()) == WINDOWS - 1)
        client.drain()
        starts = [data["windowStart"] for data in hook.taken().values()]
        assert starts == [T0 + 1000 * n for n in range(WINDOWS) if n != 7]
        by_id = {(e["id"], e["data"]["windowStart"]) for post in hook.posts for e in post.events}
        assert len(by_id) == WINDOWS - 1, "what came again has the id that it had"
        last = list(hook.taken().values())[-1]
        assert last["result"] == {"_wstart": starts[-1], "c": 1, "v": WINDOWS - 1}
        assert "tableName" not in last and last["tags"] == {"tbname": "t"}

        assert _target(client) == (None, None, "ready")
        assert [row[0] for row in client.query("SHOW STABLES").rows] == ["m"]
        count = client.query("SELECT count(*) FROM m").rows[0][0]
        assert count == WINDOWS + 1, "the topic has no rows but those written"
        assert client.query("SELECT v FROM s OPEN WINDOWS").rows == [(WINDOWS,)]
        with pytest.raises(PenstockError, match="no result table"):
            client.subscribe("told.s", stream=True).open()
        client.execute("FLUSH STREAM s")
        eventually(lambda: len(hook.taken()) == WINDOWS)
        client.execute("PAUSE STREAM s")
        _write(client, WINDOWS + 1, WINDOWS + 3)
        client.execute("RESUME STREAM s")
        eventually(lambda: len(hook.taken()) == WINDOWS + 1)
        client.execute("DROP STREAM s")
        hook.down()

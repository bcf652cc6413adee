"""The store over its life: read your own writes, flushes, kills, dropped and recreated databases,
KEEP.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from penstock.client.connection import Connection, connect
from penstock.errors import SqlError
from penstock.mesh.running import RunningMesh
from tests.stack.conftest import MeshFactory, eventually

_NOW = int(time.time() * 1000)
ENVIRONMENT = {
    "PENSTOCK_STORE_FLUSH_SECONDS": "0.5",
    "PENSTOCK_STORE_SWEEP_SECONDS": "0.5",
    "PENSTOCK_GATEWAY_WAIT_FOR_JOBS": "false",
}
SERVICES = ("kafka", "redis", "gateway", "store")


@pytest.fixture
def small(own_mesh: MeshFactory) -> RunningMesh:
    return own_mesh(services=SERVICES, environment=ENVIRONMENT)


def _client(mesh: RunningMesh) -> Connection:
    return connect(mesh.gateway_url, user=mesh.user, password=mesh.password)


def _segments(mesh: RunningMesh) -> list[Path]:
    return list((mesh.layout.root / "segments").glob("table=*/partition=*/*.parquet"))


def test_a_table_over_flush_update_delete_and_kill(small: RunningMesh) -> None:
    with _client(small) as client:
        client.execute("CREATE DATABASE shop PARTITIONS 2")
        client.execute(
            "CREATE STABLE shop.meters (ts TIMESTAMP, v INT, note VARCHAR(20)) TAGS (place INT)"
        )
        rows = [
            {"tbname": f"m{i % 7}", "ts": _NOW + i, "v": i, "note": "a", "place": i % 7}
            for i in range(700)
        ]
        assert client.write("shop.meters", rows) == 700
        assert client.query("SELECT count(*), sum(v) FROM shop.meters").rows == [
            (700, sum(range(700)))
        ]
        eventually(lambda: _segments(small))
        client.execute(f"INSERT INTO shop.m1 (ts, v) VALUES ({_NOW + 1}, -1)")
        found = client.query(f"SELECT v, note FROM shop.m1 WHERE ts = {_NOW + 1}").rows
        assert found == [(-1, "a")]  # a partial write merges with what is stored
        client.execute(f"DELETE FROM shop.m2 WHERE ts <= {_NOW + 100}")
        left = 700 - len([i for i in range(101) if i % 7 == 2])
        assert client.query("SELECT count(*) FROM shop.meters").rows == [(left,)]
        pid = small.kill("store")
        small.wait_ready("store", not_pid=pid)
        assert client.query("SELECT count(*), min(v) FROM shop.meters").rows == [(left, -1)]
        assert client.query("SELECT count(*) FROM shop.m1").rows == [(100,)]


def test_windows_in_a_query(small: RunningMesh) -> None:
    with _client(small) as client:
        client.execute("CREATE DATABASE q PARTITIONS 1")
        client.execute("CREATE TABLE q.t (ts TIMESTAMP, a INT)")
        client.execute(
            "INSERT INTO q.t VALUES "
            + " ".join(f"({1700006400000 + 1000 * i}, {i // 3})" for i in range(12))
        )
        count = "SELECT _wstart, count(*) AS n FROM q.t"
        assert [r[1] for r in client.query(f"{count} INTERVAL(5s) ORDER BY _wstart").rows] == [
            5,
            5,
            2,
        ]
        assert [r[1] for r in client.query(f"{count} STATE_WINDOW(a)").rows] == [3, 3, 3, 3]
        assert [r[1] for r in client.query(f"{count} COUNT_WINDOW(5)").rows] == [5, 5, 2]
        assert client.query(f"{count} SESSION(ts, 2s)").rows[0][1] == 12
        events = client.query(
            "SELECT _wstart, _wend, count(*) AS n FROM q.t EVENT_WINDOW START WITH a = 1 END WITH a = 2"
        ).rows
        assert [r[2] for r in events] == [4]
        with pytest.raises(SqlError) as wrong:
            client.query("SELECT nothing FROM q.t INTERVAL(1s)")
        assert wrong.value.line == 1


def test_a_database_made_again_is_empty(small: RunningMesh) -> None:
    with _client(small) as client:
        for value in (1, 2):
            client.execute("CREATE DATABASE again PARTITIONS 1")
            client.execute("CREATE TABLE again.t (ts TIMESTAMP, a INT)")
            assert client.query("SELECT count(*) FROM again.t").rows == [(0,)]
            client.execute(f"INSERT INTO again.t VALUES ({_NOW}, {value})")
            assert client.query("SELECT a FROM again.t").rows == [(value,)]
            eventually(lambda: _segments(small))
            client.execute("DROP DATABASE again")
        eventually(lambda: not _segments(small))


def test_rows_over_their_keep_are_not_shown(small: RunningMesh) -> None:
    with _client(small) as client:
        client.execute("CREATE DATABASE old PARTITIONS 1 KEEP 1d")
        client.execute("CREATE TABLE old.t (ts TIMESTAMP, a INT)")
        client.execute(f"INSERT INTO old.t VALUES ({_NOW - 2 * 86_400_000}, 1)")
        assert client.query("SELECT count(*) FROM old.t").rows == [(0,)]
        client.execute(f"INSERT INTO old.t VALUES ({_NOW}, 2)")
        assert client.query("SELECT a FROM old.t").rows == [(2,)]


def test_a_renamed_tag_keeps_its_values_everywhere(small: RunningMesh) -> None:
    with _client(small) as client:
        client.execute("CREATE DATABASE names PARTITIONS 1")
        client.execute(
            "CREATE STABLE names.m (ts TIMESTAMP, v INT) TAGS (zone VARCHAR(8), floor INT)"
        )
        client.execute("CREATE TABLE names.made USING names.m TAGS ('made', 1)")
        rows = [
            {"tbname": n, "ts": _NOW + i, "v": i, "zone": n, "floor": 2}
            for i, n in enumerate(("seen", "tagged"))
        ]
        client.write("names.m", [*rows, {"tbname": "made", "ts": _NOW, "v": 5}])
        client.execute("ALTER TABLE names.tagged SET TAG zone = 'later'")
        eventually(lambda: _segments(small))
        client.execute("ALTER STABLE names.m RENAME TAG zone area")
        client.execute("ALTER STABLE names.m RENAME TAG area site")
        client.execute("ALTER STABLE names.m ADD TAG zone INT")
        ask = "SELECT tbname, count(*), max(site), max(zone), max(floor) FROM names.m GROUP BY tbname ORDER BY 1"
        assert client.query(ask).rows == [
            ("made", 1, "made", None, 1),
            ("seen", 1, "seen", None, 2),
            ("tagged", 1, "later", None, 2),
        ]
        client.write(
            "names.m", [{"tbname": n, "ts": _NOW + 10, "v": 1} for n in ("made", "seen", "tagged")]
        )
        client.execute("ALTER TABLE names.seen SET TAG zone = 9")
        client.execute("ALTER STABLE names.m DROP TAG floor")
        client.execute("ALTER STABLE names.m ADD TAG floor VARCHAR(4)")
        expected = [
            ("made", 2, "made", None, None),
            ("seen", 2, "seen", 9, None),
            ("tagged", 2, "later", None, None),
        ]
        client.drain("names", depth=0)
        assert client.query(ask).rows == expected
        tags = "SELECT DISTINCT tbname, site FROM names.m WHERE site = 'seen'"
        assert client.query(tags).rows == [("seen", "seen")]
        # the latest rows in Redis, too
        last = {
            r["tbname"]: r
            for r in eventually(
                lambda: [r for r in client.last("names.m") if r["ts"] == _NOW + 10] or None
            )
        }
        assert last["seen"]["site"] == "seen" and last["made"].get("floor") is None
        pid = small.kill("store")
        small.wait_ready("store", not_pid=pid)
        assert client.query(ask).rows == expected

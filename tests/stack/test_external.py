"""External streams (features T1 to T17): two deployments without stream jobs."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.mesh.running import RunningMesh
from tests.stack.conftest import eventually
from tests.stack.federation_kit import METERS, T0, clause, client_of, deployment, health_port, link_to, rows, settings_of


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    with deployment(tmp_path_factory.mktemp("cloud"), "CREATE DATABASE far PARTITIONS 2") as mesh:
        with client_of(mesh) as client:
            client.execute(METERS, database="far")
            client.execute("CREATE TABLE far.log (ts TIMESTAMP, http_code INT, path VARCHAR(40))")
            client.execute("CREATE TABLE far.log2 (ts TIMESTAMP, http_code INT, path VARCHAR(40))")
            client.write("far.meters", rows(0, 1000))
            client.write("far.log", [{"ts": T0 + i, "http_code": 200 + 100 * (i % 4), "path": f"/{i}"} for i in range(100)])
            client.write("far.log2", [{"ts": T0 + i, "http_code": 500, "path": f"/{i}"} for i in range(10)])
        yield mesh


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    with deployment(tmp_path_factory.mktemp("edge"), "CREATE DATABASE near PARTITIONS 2") as mesh:
        yield mesh


def _sent(mesh: RunningMesh) -> float:
    """Rows that the other side has sent over links."""
    text = urllib.request.urlopen(f"http://127.0.0.1:{health_port(mesh, 'federation')}/metrics", timeout=5).read().decode()
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith("penstock_federation_sent_rows_total"))


def test_T1_T3_T7_create_finds_the_schema_and_says_what_is_missing(edge: RunningMesh, cloud: RunningMesh) -> None:
    with client_of(edge) as client:
        client.execute(f"CREATE EXTERNAL STREAM near.meters {clause(settings_of(cloud, 'far.meters'))}")
        described = client.query("DESCRIBE near.meters").rows
        assert [(r[0], r[1]) for r in described] == [("ts", "TIMESTAMP"), ("v", "INT"), ("note", "VARCHAR"), ("site", "INT")]
        with pytest.raises(PenstockError, match="exists"):
            client.execute(f"CREATE EXTERNAL STREAM near.meters {clause(settings_of(cloud, 'far.meters'))}")
        client.execute(f"CREATE EXTERNAL STREAM IF NOT EXISTS near.meters {clause(settings_of(cloud, 'far.meters'))}")
        with pytest.raises(PenstockError, match="far.none"):
            client.execute(f"CREATE EXTERNAL STREAM near.x {clause(settings_of(cloud, 'far.none'))}")
        with pytest.raises(PenstockError, match="such table"):
            client.execute(f"CREATE EXTERNAL STREAM near.x {clause(settings_of(cloud, 'nowhere.meters'))}")
        with pytest.raises(PenstockError, match="`stream` cannot be empty"):
            client.execute("CREATE EXTERNAL STREAM near.x SETTINGS type='penstock', hosts='127.0.0.1:1'")
        assert (
            client.query("SHOW near.EXTERNAL STREAMS").rows == [("meters",)] or client.query("SHOW EXTERNAL STREAMS").rows[0][0] == "meters"
        )
        with pytest.raises(PenstockError, match="E_REMOTE_SCHEMA"):
            client.execute(f"CREATE EXTERNAL STREAM near.x (ts TIMESTAMP, v BIGINT) {clause(settings_of(cloud, 'far.meters'))}")
        client.execute(f"CREATE EXTERNAL STREAM near.narrow (ts TIMESTAMP, v INT) {clause(settings_of(cloud, 'far.meters'))}")
        assert client.query("SELECT * FROM near.narrow LIMIT 1").columns == ["ts", "v"]
        client.execute("DROP EXTERNAL STREAM near.narrow")
        with pytest.raises(PenstockError, match="no external stream"):
            client.execute("DROP EXTERNAL STREAM near.narrow")
        client.execute("DROP EXTERNAL STREAM IF EXISTS near.narrow")


def test_T4_T5_T6_secrets_are_never_shown_and_wrong_ones_refused(edge: RunningMesh, cloud: RunningMesh) -> None:
    with client_of(edge) as client:
        with pytest.raises(PenstockError) as refused:
            client.execute(f"CREATE EXTERNAL STREAM near.x {clause({**settings_of(cloud, 'far.log'), 'password': 'not-the-one-98'})}")
        assert "refuses user" in str(refused.value) and "not-the-one-98" not in str(refused.value)
        with pytest.raises(PenstockError) as wrong:
            client.execute(f"CREATE EXTERNAL STREAM near.x {clause({**settings_of(cloud, 'far.log'), 'password': 'hidden-77'})} oops")
        assert "hidden-77" not in str(wrong.value)
        with pytest.raises(PenstockError):  # TLS to a plain port
            client.execute(f"CREATE EXTERNAL STREAM near.x {clause({**settings_of(cloud, 'far.log'), 'secure': 'true'})}")
        client.execute(f"CREATE EXTERNAL STREAM near.log {clause(settings_of(cloud, 'far.log'))}")
        shown = str(client.query("SHOW CREATE EXTERNAL STREAM near.log").rows)
        assert "******" in shown and cloud.password not in shown
        assert client.query("SHOW CREATE STREAM near.log").rows
        for path in [*edge.layout.logs.glob("*.log")]:
            assert cloud.password not in path.read_text(errors="replace"), path
        secrets = set(edge.layout.secrets.glob("external-*.password"))
        client.execute("CREATE DATABASE brief")
        client.execute(f"CREATE EXTERNAL STREAM brief.log {clause(settings_of(cloud, 'far.log'))}")
        assert len(set(edge.layout.secrets.glob("external-*.password")) - secrets) == 1
        client.execute("DROP DATABASE brief")
        assert set(edge.layout.secrets.glob("external-*.password")) == secrets, "it goes with its database"
        in_catalog = [p for p in Path(edge.layout.kafka).rglob("*.log") if cloud.password.encode() in p.read_bytes()]
        assert not in_catalog


def test_T8_T9_queries_compute_where_the_rows_are(edge: RunningMesh, cloud: RunningMesh) -> None:
    with client_of(edge) as client:
        before = _sent(cloud)
        assert client.query("SELECT count(*) AS n, max(v) AS top FROM table(near.meters) WHERE site = 3").rows == [(200, 998)]
        assert client.query("SELECT site, sum(v) AS s FROM near.meters GROUP BY site ORDER BY site").rows[1] == (1, sum(range(1, 1000, 5)))
        assert client.query("SELECT count(*) FROM near.meters INTERVAL(1s)").rows == [(1000,)]
        assert _sent(cloud) - before < 20, "aggregates came, not rows"
        client.execute("CREATE TABLE near.sites (ts TIMESTAMP, id INT, title VARCHAR(10))")
        client.execute(f"INSERT INTO near.sites VALUES ({T0}, 2, 'two') ({T0 + 1}, 4, 'four')")
        before = _sent(cloud)
        joined = client.query(
            "SELECT s.title, count(*) AS n FROM near.meters m JOIN near.sites s ON m.site = s.id WHERE m.v < 100 "
            "GROUP BY s.title ORDER BY 1"
        )
        assert joined.rows == [("four", 20), ("two", 20)]
        assert _sent(cloud) - before == 100, "the filter went along"
        assert client.query("SELECT id AS x FROM near.sites UNION ALL SELECT v AS x FROM near.meters WHERE v > 997 ORDER BY x").rows == [
            (2,),
            (4,),
            (998,),
            (999,),
        ]


def test_T2_shards_and_replicas(edge: RunningMesh, cloud: RunningMesh) -> None:
    port = settings_of(cloud, "far.log")["hosts"].rpartition(":")[2]
    with client_of(edge) as client:
        both = clause({**settings_of(cloud, "far.log"), "hosts": f"localhost:{port},127.0.0.1:1|127.0.0.1:{port}"})
        client.execute(f"CREATE EXTERNAL STREAM near.twice {both}")
        assert client.query("SELECT count(*) AS n FROM near.twice WHERE http_code >= 400").rows == [(100,)], "each of two shards once"
        assert client.query("SELECT count(*) AS n FROM near.twice INTERVAL(1d)").rows[0][0] == 200
        with pytest.raises(PenstockError, match="E_LINK_LOST"):
            client.execute(f"CREATE EXTERNAL STREAM near.y {clause({**settings_of(cloud, 'far.log'), 'hosts': '127.0.0.1:1'})}")


def test_T13_insert_goes_there(edge: RunningMesh, cloud: RunningMesh) -> None:
    with client_of(edge) as client, client_of(cloud) as there:
        client.execute(f"CREATE EXTERNAL STREAM near.out {clause(settings_of(cloud, 'far.log2'))}")
        assert client.execute(f"INSERT INTO near.out VALUES ({T0 + 1000}, 418, '/tea') ({T0 + 1001}, 418, '/pot')") == 2
        assert client.query("SELECT path FROM near.out WHERE http_code = 418 ORDER BY ts").rows == [("/tea",), ("/pot",)]
        eventually(lambda: there.query("SELECT count(*) FROM far.log2").rows == [(12,)])
        client.execute(f"INSERT INTO near.m77 USING near.meters TAGS (7) VALUES ({T0}, 77, 'x')")
        assert client.query("SELECT tbname, v, site FROM near.meters WHERE site = 7").rows == [("m77", 77, 7)]


def test_T19_a_restart_while_the_other_side_is_down_keeps_the_schema(edge: RunningMesh, cloud: RunningMesh) -> None:
    with client_of(edge) as client:
        pid = cloud.kill("federation")
        for room in ("store", "gateway"):
            other = edge.kill(room)
            edge.wait_ready(room, not_pid=other)
        described = eventually(lambda: client.query("DESCRIBE near.log").rows)
        assert [r[0] for r in described] == ["ts", "http_code", "path"]
        cloud.wait_ready("federation", not_pid=pid)
        assert eventually(lambda: client.query("SELECT count(*) FROM near.log").rows) == [(100,)]


def test_T17_virtual_columns(edge: RunningMesh, cloud: RunningMesh) -> None:
    with client_of(edge) as client:
        places = client.query("SELECT v, _tp_sn, _tp_shard FROM near.meters WHERE v < 50 AND _tp_sn >= 0").rows
        assert len(places) == 50 and {p[2] for p in places} <= {0, 1} and all(p[1] >= 0 for p in places)
    with link_to(cloud) as link:
        channel = link.subscribe("SELECT v, _tp_sn, _tp_shard, _tp_append_time FROM far.meters", start="earliest")
        channel.expect("subscribed", 10)
        message = channel.get(10)
        assert message is not None and message.rows is not None
        assert set(message.rows.column("_tp_shard").to_pylist()) <= {0, 1} and message.rows.column("_tp_append_time").null_count == 0


def test_T10_T11_an_unbounded_select_streams_on(edge: RunningMesh, cloud: RunningMesh) -> None:
    port = settings_of(cloud, "far.log")["hosts"].rpartition(":")[2]
    with client_of(edge) as client, client_of(cloud) as there:
        there.execute("CREATE TABLE far.ticks (ts TIMESTAMP, v INT)")
        there.write("far.ticks", [{"ts": T0 + i, "v": i} for i in range(10)])
        client.execute(f"CREATE EXTERNAL STREAM near.ticks {clause(settings_of(cloud, 'far.ticks'))}")
        with client.stream("SELECT v FROM near.ticks WHERE v >= 5", start="earliest") as everything:
            with (
                client.stream("SELECT v, v * 2 AS twice FROM near.ticks").open() as live,
                there.stream("SELECT v FROM far.ticks").open() as near,
            ):
                there.write("far.ticks", [{"ts": T0 + 10, "v": 10}])
                assert next(iter(live)).rows.column("twice").to_pylist() == [20], "live by default"
                assert next(iter(near)).rows.column("v").to_pylist() == [10]
            got: list[int] = []
            for message in everything:
                got += message.rows.column("v").to_pylist()
                if len(got) == 6 and 10 in got:
                    break
            assert got == [5, 6, 7, 8, 9, 10]
            pid = edge.kill("federation")
            there.write("far.ticks", [{"ts": T0 + 11, "v": 11}])
            edge.wait_ready("federation", not_pid=pid)
            assert next(iter(everything)).rows.column("v").to_pylist() == [11]
        both = clause({**settings_of(cloud, "far.ticks"), "hosts": f"localhost:{port},127.0.0.1:{port}"})
        client.execute(f"CREATE EXTERNAL STREAM near.ticks2 {both}")
        with client.stream("SELECT v FROM near.ticks2", start="earliest") as twice:
            count = 0
            for message in twice:
                count += message.rows.num_rows
                if count == 24:
                    break

"""External streams (features T1 to T17): two deployments without stream jobs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from penstock.client.connection import Connection, connect
from penstock.client.connection_options import ConnectionOptions
from penstock.errors import PenstockError
from penstock.mesh.proxy import Proxy
from penstock.mesh.running import RunningMesh, running_mesh
from tests.stack.conftest import eventually
from tests.stack.federation_kit import (
    METERS,
    SELF,
    T0,
    clause,
    client_of,
    deployment,
    link_to,
    rows,
    settings_of,
)
from tests.stack.metrics_kit import lines


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    with deployment(tmp_path_factory.mktemp("cloud"), "CREATE DATABASE far PARTITIONS 2") as mesh:
        with client_of(mesh) as client:
            client.execute(METERS, database="far")
            client.execute("CREATE TABLE far.log (ts TIMESTAMP, http_code INT, path VARCHAR(40))")
            client.execute("CREATE TABLE far.log2 (ts TIMESTAMP, http_code INT, path VARCHAR(40))")
            client.write("far.meters", rows(0, 1000))
            client.write(
                "far.log",
                [
                    {"ts": T0 + i, "http_code": 200 + 100 * (i % 4), "path": f"/{i}"}
                    for i in range(100)
                ],
            )
            client.write(
                "far.log2", [{"ts": T0 + i, "http_code": 500, "path": f"/{i}"} for i in range(10)]
            )
        yield mesh


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    with deployment(tmp_path_factory.mktemp("edge"), "CREATE DATABASE near PARTITIONS 2") as mesh:
        yield mesh


def _sent(mesh: RunningMesh) -> float:
    """Rows that the other side has sent over links."""
    return sum(
        float(line.split()[-1])
        for line in lines(mesh, "federation")
        if line.startswith("penstock_federation_sent_rows_total")
    )


def test_T1_T3_T7_create_finds_the_schema_and_says_what_is_missing(
    edge: RunningMesh, cloud: RunningMesh
) -> None:
    with client_of(edge) as client:
        client.execute(
            f"CREATE EXTERNAL STREAM near.meters {clause(settings_of(cloud, 'far.meters'))}"
        )
        described = client.query("DESCRIBE near.meters").rows
        assert [(r[0], r[1]) for r in described] == [
            ("ts", "TIMESTAMP"),
            ("v", "INT"),
            ("note", "VARCHAR"),
            ("site", "INT"),
        ]
        with pytest.raises(PenstockError, match="exists"):
            client.execute(
                f"CREATE EXTERNAL STREAM near.meters {clause(settings_of(cloud, 'far.meters'))}"
            )
        client.execute(
            f"CREATE EXTERNAL STREAM IF NOT EXISTS near.meters {clause(settings_of(cloud, 'far.meters'))}"
        )
        with pytest.raises(PenstockError, match="far.none"):
            client.execute(
                f"CREATE EXTERNAL STREAM near.x {clause(settings_of(cloud, 'far.none'))}"
            )
        with pytest.raises(PenstockError, match="such table"):
            client.execute(
                f"CREATE EXTERNAL STREAM near.x {clause(settings_of(cloud, 'nowhere.meters'))}"
            )
        with pytest.raises(PenstockError, match="`stream` cannot be empty"):
            client.execute(
                "CREATE EXTERNAL STREAM near.x SETTINGS type='penstock', hosts='127.0.0.1:1'"
            )
        assert (
            client.query("SHOW near.EXTERNAL STREAMS").rows == [("meters",)]
            or client.query("SHOW EXTERNAL STREAMS").rows[0][0] == "meters"
        )
        with pytest.raises(PenstockError, match="E_REMOTE_SCHEMA"):
            client.execute(
                f"CREATE EXTERNAL STREAM near.x (ts TIMESTAMP, v BIGINT) {clause(settings_of(cloud, 'far.meters'))}"
            )
        client.execute(
            f"CREATE EXTERNAL STREAM near.narrow (ts TIMESTAMP, v INT) {clause(settings_of(cloud, 'far.meters'))}"
        )
        assert client.query("SELECT * FROM near.narrow LIMIT 1").columns == ["ts", "v"]
        client.execute("DROP EXTERNAL STREAM near.narrow")
        client.execute(
            f"CREATE EXTERNAL STREAM near.narrow (ts datetime64(3), v int32, note string) {clause(settings_of(cloud, 'far.meters'))}"
        )
        assert [r[1:3] for r in client.query("DESCRIBE near.narrow").rows] == [
            ("TIMESTAMP", 8),
            ("INT", 4),
            ("VARCHAR", 20),
        ]
        client.execute("DROP EXTERNAL STREAM near.narrow")
        with pytest.raises(PenstockError, match="no external stream"):
            client.execute("DROP EXTERNAL STREAM near.narrow")
        client.execute("DROP EXTERNAL STREAM IF EXISTS near.narrow")


def test_T4_T5_T6_secrets_are_never_shown_and_wrong_ones_refused(
    edge: RunningMesh, cloud: RunningMesh
) -> None:
    with client_of(edge) as client:
        with pytest.raises(PenstockError) as refused:
            client.execute(
                f"CREATE EXTERNAL STREAM near.x {clause({**settings_of(cloud, 'far.log'), 'password': 'not-the-one-98'})}"
            )
        assert "refuses user" in str(refused.value) and "not-the-one-98" not in str(refused.value)
        with pytest.raises(PenstockError) as wrong:
            client.execute(
                f"CREATE EXTERNAL STREAM near.x {clause({**settings_of(cloud, 'far.log'), 'password': 'hidden-77'})} oops"
            )
        assert "hidden-77" not in str(wrong.value)
        with pytest.raises(PenstockError):  # TLS to a plain port
            client.execute(
                f"CREATE EXTERNAL STREAM near.x {clause({**settings_of(cloud, 'far.log'), 'secure': 'true'})}"
            )
        client.execute(f"CREATE EXTERNAL STREAM near.log {clause(settings_of(cloud, 'far.log'))}")
        shown = str(client.query("SHOW CREATE EXTERNAL STREAM near.log").rows)
        assert "******" in shown and cloud.password not in shown
        assert client.query("SHOW CREATE STREAM near.log").rows
        assert str(client.query("SHOW CREATE TABLE near.log").rows) == shown
        for path in [*edge.layout.logs.glob("*.log")]:
            assert cloud.password not in path.read_text(errors="replace"), path
        secrets = set(edge.layout.secrets.glob("external-*.password"))
        client.execute("CREATE DATABASE brief")
        client.execute(f"CREATE EXTERNAL STREAM brief.log {clause(settings_of(cloud, 'far.log'))}")
        assert len(set(edge.layout.secrets.glob("external-*.password")) - secrets) == 1
        client.execute("DROP DATABASE brief")
        assert set(edge.layout.secrets.glob("external-*.password")) == secrets, (
            "it goes with its database"
        )
        in_catalog = [
            p
            for p in Path(edge.layout.kafka).rglob("*.log")
            if cloud.password.encode() in p.read_bytes()
        ]
        assert not in_catalog


def test_T8_T9_queries_compute_where_the_rows_are(edge: RunningMesh, cloud: RunningMesh) -> None:
    with client_of(edge) as client:
        before = _sent(cloud)
        assert client.query(
            "SELECT count(*) AS n, max(v) AS top FROM table(near.meters) WHERE site = 3"
        ).rows == [(200, 998)]
        assert client.query(
            "SELECT site, sum(v) AS s FROM near.meters GROUP BY site ORDER BY site"
        ).rows[1] == (1, sum(range(1, 1000, 5)))
        assert client.query("SELECT count(*) FROM near.meters INTERVAL(1s)").rows == [(1000,)]
        assert _sent(cloud) - before < 20, "aggregates came, not rows"
        said = dict(
            client.query("EXPLAIN SELECT site, sum(v) AS s FROM near.meters GROUP BY site").rows
        )
        assert (
            said["pushed down"]
            == "SELECT site, sum(v) AS s FROM far.meters AS meters GROUP BY site"
        )
        client.execute("CREATE TABLE near.sites (ts TIMESTAMP, id INT, title VARCHAR(10))")
        client.execute(f"INSERT INTO near.sites VALUES ({T0}, 2, 'two') ({T0 + 1}, 4, 'four')")
        before = _sent(cloud)
        joined = client.query(
            "SELECT s.title, count(*) AS n FROM near.meters m JOIN near.sites s ON m.site = s.id WHERE m.v < 100 "
            "GROUP BY s.title ORDER BY 1"
        )
        assert joined.rows == [("four", 20), ("two", 20)]
        assert _sent(cloud) - before == 100, "the filter went along"
        assert client.query(
            "SELECT id AS x FROM near.sites UNION ALL SELECT v AS x FROM near.meters WHERE v > 997 ORDER BY x"
        ).rows == [
            (2,),
            (4,),
            (998,),
            (999,),
        ]


def test_T1_a_child_table_that_only_rows_made_is_a_table_to_others(
    edge: RunningMesh, cloud: RunningMesh
) -> None:
    with client_of(edge) as client:
        client.execute(f"CREATE EXTERNAL STREAM near.m3 {clause(settings_of(cloud, 'far.m3'))}")
        assert client.query("SELECT count(*) AS n, max(v) AS top FROM near.m3").rows == [(200, 998)]
        with client.stream("SELECT v FROM near.m3", start="earliest") as followed:
            assert next(iter(followed)).rows.column("v").to_pylist()[:2] == [3, 8]
        with pytest.raises(PenstockError, match="such table"):
            client.execute(
                f"CREATE EXTERNAL STREAM near.m99 {clause(settings_of(cloud, 'far.m99'))}"
            )


def test_T2_shards_and_replicas(edge: RunningMesh, cloud: RunningMesh) -> None:
    port = settings_of(cloud, "far.log")["hosts"].rpartition(":")[2]
    with client_of(edge) as client:
        both = clause(
            {
                **settings_of(cloud, "far.log"),
                "hosts": f"localhost:{port},127.0.0.1:1|127.0.0.1:{port}",
            }
        )
        client.execute(f"CREATE EXTERNAL STREAM near.twice {both}")
        assert client.query("SELECT count(*) AS n FROM near.twice WHERE http_code >= 400").rows == [
            (100,)
        ], "each of two shards once"
        assert client.query("SELECT count(*) AS n FROM near.twice INTERVAL(1d)").rows[0][0] == 200
        with pytest.raises(PenstockError, match="E_LINK_LOST"):
            client.execute(
                f"CREATE EXTERNAL STREAM near.y {clause({**settings_of(cloud, 'far.log'), 'hosts': '127.0.0.1:1'})}"
            )


def test_T2_a_replica_that_dies_while_it_answers_costs_nothing(
    edge: RunningMesh, cloud: RunningMesh
) -> None:
    settings = settings_of(cloud, "far.long")
    with (
        client_of(edge) as client,
        client_of(cloud) as there,
        Proxy(int(settings["hosts"].rpartition(":")[2])) as dying,
    ):
        there.execute("CREATE TABLE far.long (ts TIMESTAMP, v INT, noise VARCHAR(40))")
        chance = random.Random(7)
        there.write(
            "far.long",
            [
                {"ts": T0 + i, "v": i, "noise": f"{chance.getrandbits(128):032x}"}
                for i in range(5000)
            ],
        )
        both = clause({**settings, "hosts": f"127.0.0.1:{dying.port}|{settings['hosts']}"})
        client.execute(f"CREATE EXTERNAL STREAM near.long {both}")
        # the answer needs seconds, and not one of it has passed when the replica is gone
        dying.rate = 50_000
        before = _sent(cloud)
        with (
            ThreadPoolExecutor(1) as pool,
            client.stream("SELECT v FROM near.long", start="earliest") as followed,
        ):
            answer = pool.submit(client.query, "SELECT v, noise FROM near.long ORDER BY v")
            eventually(lambda: _sent(cloud) > before)
            dying.cut()
            assert [v for v, _ in answer.result(60).rows] == list(range(5000))
            got: list[int] = []
            for message in followed:
                got += message.rows.column("v").to_pylist()
                if len(got) == 5000:
                    break
            assert got == list(range(5000)), "an unbounded SELECT goes to the other one as well"


def test_T12_T13_insert_select_copies_either_way(edge: RunningMesh, cloud: RunningMesh) -> None:
    with client_of(edge) as client, client_of(cloud) as there:
        client.execute(
            "CREATE STREAM near.log_copy (ts TIMESTAMP, http_code INT, path VARCHAR(40))"
        )
        assert (
            client.execute(
                "INSERT INTO near.log_copy SELECT * FROM near.log WHERE _tp_time > earliest_ts()"
            )
            == 100
        )
        wanted = client.query("SELECT * FROM near.log ORDER BY ts").rows
        assert client.query("SELECT * FROM near.log_copy ORDER BY ts").rows == wanted
        client.execute(METERS.replace("meters", "meters_copy"), database="near")
        assert (
            client.execute(
                "INSERT INTO near.meters_copy SELECT tbname, * FROM table(near.meters) WHERE v < 50"
            )
            == 50
        )
        question = "SELECT tbname, v, note, site FROM {} WHERE v < 50 ORDER BY v"
        assert (
            client.query(question.format("near.meters_copy")).rows
            == client.query(question.format("near.meters")).rows
        )
        there.execute("CREATE TABLE far.back (ts TIMESTAMP, code BIGINT)")
        client.execute(f"CREATE EXTERNAL STREAM near.back {clause(settings_of(cloud, 'far.back'))}")
        assert (
            client.execute(
                "INSERT INTO near.back (code, ts) SELECT http_code, ts FROM near.log_copy WHERE http_code >= 400"
            )
            == 50
        )
        eventually(
            lambda: there.query("SELECT count(*), min(code) FROM far.back").rows == [(50, 400)]
        )
        with pytest.raises(PenstockError, match="SELECT gives 3 columns for 2"):
            client.execute("INSERT INTO near.back SELECT * FROM near.log_copy")
        with pytest.raises(PenstockError, match="tbname"):
            client.execute("INSERT INTO near.meters_copy SELECT * FROM near.meters")


def test_T7_a_child_table_is_a_stream_of_its_own(edge: RunningMesh, cloud: RunningMesh) -> None:
    with client_of(edge) as client, client_of(cloud) as there:
        there.execute("CREATE STABLE far.parents (ts TIMESTAMP, v INT) TAGS (site INT)")
        there.execute(
            "CREATE TABLE far.one USING far.parents TAGS (1), far.two USING far.parents TAGS (2)"
        )
        there.write(
            "far.parents",
            [{"tbname": ("one", "two")[i % 2], "ts": T0 + i, "v": i} for i in range(10)],
        )
        client.execute(
            f"CREATE EXTERNAL STREAM near.only_two {clause(settings_of(cloud, 'far.two'))}"
        )
        assert client.query("SELECT count(*), min(v), max(site) FROM near.only_two").rows == [
            (5, 1, 2)
        ]
        with client.stream("SELECT v FROM near.only_two", start="earliest") as followed:
            assert set(next(iter(followed)).rows.column("tbname").to_pylist()) == {"two"}


def test_T13_insert_goes_there(edge: RunningMesh, cloud: RunningMesh) -> None:
    with client_of(edge) as client, client_of(cloud) as there:
        client.execute(f"CREATE EXTERNAL STREAM near.out {clause(settings_of(cloud, 'far.log2'))}")
        assert (
            client.execute(
                f"INSERT INTO near.out VALUES ({T0 + 1000}, 418, '/tea') ({T0 + 1001}, 418, '/pot')"
            )
            == 2
        )
        assert client.query("SELECT path FROM near.out WHERE http_code = 418 ORDER BY ts").rows == [
            ("/tea",),
            ("/pot",),
        ]
        eventually(lambda: there.query("SELECT count(*) FROM far.log2").rows == [(12,)])
        client.execute(f"INSERT INTO near.m77 USING near.meters TAGS (7) VALUES ({T0}, 77, 'x')")
        assert client.query("SELECT tbname, v, site FROM near.meters WHERE site = 7").rows == [
            ("m77", 77, 7)
        ]


def test_T19_a_restart_while_the_other_side_is_down_keeps_the_schema(
    edge: RunningMesh, cloud: RunningMesh
) -> None:
    with client_of(edge) as client:
        pid = cloud.kill("federation")
        for service in ("store", "gateway"):
            other = edge.kill(service)
            edge.wait_ready(service, not_pid=other)
        described = eventually(lambda: client.query("DESCRIBE near.log").rows)
        assert [r[0] for r in described] == ["ts", "http_code", "path"]
        cloud.wait_ready("federation", not_pid=pid)
        assert eventually(lambda: client.query("SELECT count(*) FROM near.log").rows) == [(100,)]


def test_T17_virtual_columns(edge: RunningMesh, cloud: RunningMesh) -> None:
    with client_of(edge) as client:
        places = client.query(
            "SELECT v, _tp_sn, _tp_shard FROM near.meters WHERE v < 50 AND _tp_sn >= 0"
        ).rows
        assert (
            len(places) == 50
            and {p[2] for p in places} <= {0, 1}
            and all(p[1] >= 0 for p in places)
        )
        port = settings_of(cloud, "far.log")["hosts"].rpartition(":")[2]
        both = clause(
            {**settings_of(cloud, "far.log"), "hosts": f"localhost:{port},127.0.0.1:{port}"}
        )
        client.execute(f"CREATE EXTERNAL STREAM near.placed {both}")
        placed = client.query(
            "SELECT path, _tp_sn, _tp_shard, _tp_time FROM near.placed WHERE http_code = 500"
        ).rows
        assert len(placed) == 50 and len(set(placed)) == 25, (
            "of two shards, which are the same table here"
        )
        with (
            client_of(cloud) as there
        ):  # its rows have a number of their own, called as the place in the log is elsewhere
            there.execute(
                "CREATE STREAM far.stamped (v INT); INSERT INTO far.stamped VALUES (1) (2)"
            )
        client.execute(
            f"CREATE EXTERNAL STREAM near.stamped {clause(settings_of(cloud, 'far.stamped'))}"
        )
        stamped = client.query("SELECT v, _tp_sn, _tp_shard FROM near.stamped ORDER BY v").rows
        assert (
            [v for v, _, _ in stamped] == [1, 2]
            and stamped[0][1] + 1 == stamped[1][1]
            and stamped[0][2] in (0, 1)
        )
    with link_to(cloud) as link:
        channel = link.subscribe(
            "SELECT v, _tp_sn, _tp_shard, _tp_append_time FROM far.meters", start="earliest"
        )
        channel.expect("subscribed", 10)
        message = channel.get(10)
        assert message is not None and message.rows is not None
        assert (
            set(message.rows.column("_tp_shard").to_pylist()) <= {0, 1}
            and message.rows.column("_tp_append_time").null_count == 0
        )


def test_T10_T11_an_unbounded_select_streams_on(edge: RunningMesh, cloud: RunningMesh) -> None:
    port = settings_of(cloud, "far.log")["hosts"].rpartition(":")[2]
    with client_of(edge) as client, client_of(cloud) as there:
        there.execute("CREATE TABLE far.ticks (ts TIMESTAMP, v INT)")
        there.write("far.ticks", [{"ts": T0 + i, "v": i} for i in range(10)])
        client.execute(
            f"CREATE EXTERNAL STREAM near.ticks {clause(settings_of(cloud, 'far.ticks'))}"
        )
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
        both = clause(
            {**settings_of(cloud, "far.ticks"), "hosts": f"localhost:{port},127.0.0.1:{port}"}
        )
        client.execute(f"CREATE EXTERNAL STREAM near.ticks2 {both}")
        with client.stream("SELECT v FROM near.ticks2", start="earliest") as twice:
            count = 0
            for message in twice:
                count += message.rows.num_rows
                if count == 24:
                    break


@pytest.mark.long
def test_a_narrowed_allow_list_ends_what_was_made_before(tmp_path: Path) -> None:
    """Views, reads, writes and topics of another Kafka: whatever the services were about to connect to
    when they started anew.

    What a user with ADMIN has made goes on.
    """
    wide = {"PENSTOCK_EXTERNAL_ALLOW": '["127.0.0.0/8"]', **SELF}
    narrow = {"PENSTOCK_EXTERNAL_ALLOW": '["10.0.0.0/8", "*.example.com"]', **SELF}
    tables = ("CREATE DATABASE d PARTITIONS 1", "CREATE TABLE d.t (ts TIMESTAMP, v INT)")
    people = (
        "CREATE USER ann PASS 'correct horse battery'",
        "GRANT READ, WRITE, CREATE ON d.* TO ann",
    )

    def ann(mesh: RunningMesh) -> Connection:
        return connect(
            mesh.gateway_url,
            user="ann",
            password="correct horse battery",
            options=ConnectionOptions(timeout=60),
        )

    with (
        running_mesh(tmp_path / "elsewhere", services=("kafka",), open_kafka=True) as elsewhere,
        deployment(tmp_path / "here", *tables, *people, environment=wide) as mesh,
        client_of(mesh) as root,
        ann(mesh) as client,
    ):
        root.execute(f"CREATE EXTERNAL STREAM d.roots {clause(settings_of(mesh, 'd.t'))}")
        client.execute(f"CREATE EXTERNAL STREAM d.ext {clause(settings_of(mesh, 'd.t'))}")
        client.execute("CREATE MATERIALIZED VIEW d.v AS SELECT * FROM d.ext")
        kafka = AdminClient({"bootstrap.servers": elsewhere.kafka_bootstrap})
        kafka.create_topics([NewTopic("orders", 1, 1)])["orders"].result(20)
        topic = clause(
            {
                "type": "kafka",
                "brokers": elsewhere.kafka_bootstrap,
                "topic": "orders",
                "data_format": "JSONEachRow",
            }
        )
        client.execute(f"CREATE EXTERNAL STREAM d.orders (ts TIMESTAMP, v INT) {topic}")
        client.execute(f"INSERT INTO d.ext VALUES ({T0}, 1); INSERT INTO d.orders VALUES ({T0}, 1)")
        eventually(lambda: client.query("SELECT count(*) FROM d.orders").rows == [(1,)])
    with (
        deployment(tmp_path / "here", environment=narrow) as mesh,
        client_of(mesh) as root,
        ann(mesh) as client,
    ):
        for statement in (
            "SELECT * FROM d.ext",
            f"INSERT INTO d.ext VALUES ({T0}, 2)",
            f"INSERT INTO d.orders VALUES ({T0}, 2)",
            f"CREATE EXTERNAL STREAM d.more {clause(settings_of(mesh, 'd.t'))}",
            f"CREATE EXTERNAL STREAM d.more (ts TIMESTAMP, v INT) {topic}",
        ):
            with pytest.raises(PenstockError, match="127.0.0.1 may not be connected to"):
                client.execute(statement)
        with pytest.raises(PenstockError, match="may not be connected to"):
            client.stream("SELECT * FROM d.ext").open()
        errors = (
            "SELECT last_error FROM information_schema.{} WHERE last_error LIKE 'E_EXTERNAL_HOST%'"
        )
        eventually(lambda: len(client.query(errors.format("ins_views")).rows) == 1)
        eventually(lambda: len(client.query(errors.format("ins_external_streams")).rows) == 1)
        assert client.query("SELECT count(*) FROM d.orders").rows == [(1,)], "what was read stays"
        assert (
            root.query("SELECT count(*) FROM d.roots").rows
            == client.query("SELECT count(*) FROM d.t").rows
        )
        root.execute(f"CREATE EXTERNAL STREAM d.more {clause(settings_of(mesh, 'd.t'))}")

"""InfluxDB's Python client and raw line protocol against the gateway."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from datetime import UTC, datetime

import pyarrow as pa
import pytest
import requests
from influxdb_client import InfluxDBClient, Point, WritePrecision
from influxdb_client.client.write_api import SYNCHRONOUS
from influxdb_client.rest import ApiException

import penstock
from penstock.mesh.running import RunningMesh
from tests.fuzz.endpoints import SERIES
from tests.stack.names import unique


@pytest.fixture
def db(mesh: RunningMesh) -> Iterator[penstock.Connection]:
    with penstock.connect(
        mesh.gateway_url, password=mesh.password, database=unique("influx")
    ) as connection:
        connection.execute(f"CREATE DATABASE {connection.database} PARTITIONS 2")
        yield connection


def test_influxdb_client_writes_points_and_lines(
    mesh: RunningMesh, db: penstock.Connection
) -> None:
    assert db.database is not None
    with InfluxDBClient(mesh.gateway_url, token=f"{mesh.user}:{mesh.password}", org="-") as client:
        assert client.ping()
        api = client.write_api(write_options=SYNCHRONOUS)
        at = datetime(2024, 1, 1, tzinfo=UTC)
        point = (
            Point("weather")
            .tag("city", "Köln am Rhein")
            .tag("kind", "a,b")
            .field("temp", 3.5)
            .field("hot", False)
            .time(at, WritePrecision.MS)
        )
        api.write(
            db.database,
            record=[
                point,
                Point("weather")
                .tag("city", "Bonn")
                .field("temp", 4)
                .field("note", "x y")
                .time(at, WritePrecision.MS),
            ],
        )
        api.write(
            db.database,
            record="weather,city=Bonn humidity=80i,temp=5 1704067201000",
            write_precision=WritePrecision.MS,
        )
        with pytest.raises(ApiException) as refused:
            api.write(db.database, record='weather,city=Bonn temp="warm" 1704067201000000000')
        assert refused.value.status == 400
        with pytest.raises(ApiException) as nowhere:
            api.write("nodatabase", record="weather temp=1")
        assert nowhere.value.status == 404
    rows = db.query("SELECT city, temp, hot, note, humidity FROM weather ORDER BY city, _ts").rows
    assert rows == [
        ("Bonn", 4.0, None, "x y", None),
        ("Bonn", 5.0, None, None, 80),
        ("Köln am Rhein", 3.5, False, None, None),
    ]
    described = {name: kind for name, kind, *_ in db.query("DESCRIBE weather").rows}
    assert (
        described["temp"] == "DOUBLE"
        and described["humidity"] == "BIGINT"
        and described["hot"] == "BOOL"
        and described["_ts"] == "TIMESTAMP"
    )
    assert len(db.query("SELECT DISTINCT tbname FROM weather")) == 2


def test_bad_names_cost_their_lines_and_dots_become_underscores_where_that_is_asked_for(
    mesh: RunningMesh, db: penstock.Connection
) -> None:
    def write(text: str) -> requests.Response:
        return requests.post(
            f"{mesh.gateway_url}/api/v2/write",
            params={"bucket": db.database or "", "precision": "s"},
            data=text,
            timeout=30,
            headers={"Authorization": f"Token {mesh.user}:{mesh.password}"},
        )

    text = f"sys.cpu,host=a v=1 1\nmem v=1 1\nmem {'x' * 80}=1,v=2 2\nmem,op=1 v=3 3"
    answer = write(text)
    assert (answer.status_code, answer.json()["code"], answer.json()["line"]) == (400, "invalid", 1)
    assert [e["line"] for e in answer.json()["error"]["lines"]] == [
        1,
        3,
        4,
    ] and "dots" in answer.json()["message"]
    assert db.query("SELECT v FROM mem").rows == [(1.0,)]
    db.execute(f"ALTER DATABASE {db.database} DOT_TO_UNDERSCORE 1")
    assert write("sys.cpu,host=a v=1 1\nsys_cpu,host=a v=2 2").status_code == 204
    assert db.query("SELECT host, v FROM sys_cpu ORDER BY v").rows == [("a", 1.0), ("a", 2.0)]
    assert "DOT_TO_UNDERSCORE 1" in str(db.query(f"SHOW CREATE DATABASE {db.database}").rows)


def test_version_1_path_with_gzip_and_longer_text(
    mesh: RunningMesh, db: penstock.Connection
) -> None:
    def write(text: str, **query: str) -> requests.Response:
        return requests.post(
            f"{mesh.gateway_url}/influxdb/v1/write",
            params={"db": db.database or "", "u": mesh.user, "p": mesh.password, **query},
            data=gzip.compress(text.encode()),
            headers={"Content-Encoding": "gzip"},
            timeout=30,
        )

    assert write('log,host=a line="short" 1', precision="s").status_code == 204
    assert (
        write(
            f'log,host=a line="{"x" * 500}" 2\nlog,host=b,zone=z other=1u 3', precision="s"
        ).status_code
        == 204
    )
    assert db.query("SELECT length(line) FROM log WHERE line IS NOT NULL ORDER BY _ts").rows == [
        (5,),
        (500,),
    ]
    assert db.query("SELECT zone FROM log WHERE host = 'b'").rows == [("z",)]
    bad = write(
        'log,host=a line="ok" 4\nlog,host=a line=oops 5\nlog,host=a line=6i 6\nother v=1 7',
        precision="s",
    )
    assert bad.status_code == 400 and bad.json()["error"].startswith("partial write: line 2: ")
    assert "line 3: 6 is not VARCHAR" in bad.json()["error"] and bad.json()["error"].endswith(
        " dropped=2"
    )
    assert write("log line=1 1", precision="fortnight").status_code == 400
    assert db.query("SELECT count(*) FROM log").rows == [(4,)], "a bad line costs only itself"
    assert db.query("SELECT v FROM other").rows == [(1.0,)]


def test_what_clients_of_others_ask_and_send(mesh: RunningMesh, db: penstock.Connection) -> None:
    name = db.database or ""
    with InfluxDBClient(mesh.gateway_url, token=f"{mesh.user}:{mesh.password}", org="o") as client:
        assert client.ready().status == "ready" and client.health().status == "pass"
        assert client.buckets_api().find_bucket_by_name(name).name == name
        assert client.buckets_api().find_bucket_by_name(f"{name}x") is None
        assert [o.name for o in client.organizations_api().find_organizations(org="o")] == ["o"]

    def post(path: str, data: str | bytes | dict[str, str], **query: str) -> requests.Response:
        return requests.post(
            mesh.gateway_url + path,
            params=query,
            data=data,
            auth=(mesh.user, mesh.password),
            timeout=30,
        )

    made = unique("telegraf")
    answer = post("/query", {"q": f'CREATE DATABASE "{made}"'})
    assert answer.json() == {"results": [{"statement_id": 0}]}
    assert "database not found" in post("/write", "m v=1", db=f"{made}x").json()["error"]
    assert post("/write", "cpu,host=a v=1 1\ncpu,host=a v=3 61", db=made, precision="s").ok
    assert post(f"/opentsdb/v1/put/telnet/{made}", "put load 1 0.5 host=a").status_code == 204
    series = pa.Codec("snappy").compress(SERIES, asbytes=True)
    assert post("/api/v1/write", series, db=made).status_code == 204
    query = (
        'SELECT mean("v") FROM "cpu" WHERE time < 120s GROUP BY time(1m), host; SHOW MEASUREMENTS'
    )
    mean, names = post("/query", {"q": query, "db": made, "epoch": "s"}).json()["results"]
    assert mean["series"] == [
        {
            "name": "cpu",
            "tags": {"host": "a"},
            "columns": ["time", "mean"],
            "values": [[0, 1.0], [60, 3.0]],
        }
    ]
    assert names["series"][0]["values"] == [["cpu"], ["load"], ["up"]]
    assert db.query(f"SELECT job, _value FROM {made}.up").rows == [("a", 1.0)]
    assert post("/query", {"q": f"DROP DATABASE {made}"}).json() == answer.json()

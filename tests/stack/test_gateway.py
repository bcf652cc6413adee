"""Rows and statements through the gateway, with real Kafka, Redis and store behind it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import redis
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect as connect_websocket

import penstock
from penstock import names
from penstock.bus import Admin, Reader
from penstock.catalog.reader import CatalogReader
from penstock.codec import TableCodec, schema_ids
from penstock.errors import AuthError, CatalogError, SchemaError, SqlSemanticError, SqlSyntaxError
from penstock.mesh.running import RunningMesh
from penstock.rows.partition import partition
from tests.stack.conftest import eventually
from tests.stack.names import unique

T0 = 1_700_000_000_000


@pytest.fixture
def db(mesh: RunningMesh) -> Iterator[penstock.Connection]:
    """A connection with a database of its own: a supertable `m` and a plain table `p`."""
    with penstock.connect(
        mesh.gateway_url, password=mesh.password, database=unique("gw")
    ) as connection:
        connection.execute(f"CREATE DATABASE {connection.database} PARTITIONS 3")
        connection.execute(
            "CREATE STABLE m (ts TIMESTAMP, v DOUBLE, n INT, s VARCHAR(8)) TAGS (site VARCHAR(8), level INT)"
        )
        connection.execute("CREATE TABLE p (ts TIMESTAMP, v DOUBLE)")
        yield connection


def post(mesh: RunningMesh, path: str, body: bytes, kind: str, **headers: str) -> httpx.Response:
    auth = (mesh.user, mesh.password)
    return httpx.post(
        mesh.gateway_url + path,
        content=body,
        headers={"Content-Type": kind, **headers},
        auth=auth,
        timeout=30,
    )


def records(
    mesh: RunningMesh, database: str | None, table: str
) -> list[tuple[int, list[dict[str, Any]], list[int]]]:
    """Every record of a table on its topic: partition, rows, and row counts of its writes."""
    assert database is not None
    with CatalogReader(mesh.kafka_bootstrap, client_id=unique("test")) as catalog:
        found = catalog.catalog.table(database, table)
        assert found is not None
        ends = Admin(mesh.kafka_bootstrap).end_offsets(
            [(found.topic, p) for p in range(found.partitions)]
        )
        todo = {at for at, end in ends.items() if end > 0}
        made = []
        with Reader(
            mesh.kafka_bootstrap, {at: 0 for at in todo}, client_id=unique("test")
        ) as reader:
            while todo:
                for batch in reader.read():
                    for value, schema in zip(
                        batch.values, schema_ids(batch.values).tolist(), strict=True
                    ):
                        if schema in found.schema_ids:
                            decoded = TableCodec(found, schema).decode([value])
                            counts = (
                                decoded.rows.group_by("_write", maintain_order=True)
                                .len()["len"]
                                .to_list()
                            )
                            made.append((batch.partition, decoded.rows.to_dicts(), counts))
                    if batch.next_offset >= ends[batch.topic, batch.partition]:
                        todo.discard((batch.topic, batch.partition))
    return made


def test_json_ndjson_and_arrow_bodies(mesh: RunningMesh, db: penstock.Connection) -> None:
    path = f"/v1/tables/{db.database}/m/rows"
    one = {"tbname": "d1", "ts": T0, "v": 1.5, "n": 1, "s": "a", "site": "x", "level": 1}
    assert post(mesh, path, json.dumps(one).encode(), "application/json").json() == {"rows": 1}
    lines = b'{"tbname":"d1","ts":"2023-11-14T22:13:21Z","v":2}\n\n{"tbname":"d2","ts":1700000002000,"site":"y"}\n'
    assert post(mesh, path, lines, "application/x-ndjson").json() == {"rows": 2}
    assert (
        db.write(
            "d2",
            pa.table(
                {"ts": pa.array([T0 + 3000], pa.timestamp("ms")), "n": pa.array([7], pa.int64())}
            ),
        )
        == 1
    )
    assert db.write("p", [{"ts": T0, "v": 9}]) == 1
    rows = db.query("SELECT tbname, ts, v, n, site FROM m ORDER BY ts").rows
    assert [(r[0], int(r[1].timestamp() * 1000) - T0, *r[2:]) for r in rows] == [
        ("d1", 0, 1.5, 1, "x"),
        ("d1", 1000, 2.0, None, "x"),
        ("d2", 2000, None, None, "y"),
        ("d2", 3000, None, 7, "y"),
    ]
    assert db.query("SELECT v FROM p").rows == [(9.0,)]


def test_every_form_of_rows_of_the_client(db: penstock.Connection) -> None:
    frame = pl.DataFrame(
        {"tbname": ["a", "b"], "ts": [T0, T0 + 1], "v": [1.0, 2.0], "site": ["s", "s"]}
    )
    assert db.write("m", frame) == 2
    assert (
        db.write(
            "m",
            pd.DataFrame({"tbname": ["a"], "ts": [pd.Timestamp(T0 + 2, unit="ms")], "v": [3.0]}),
        )
        == 1
    )
    assert db.write("m", frame.to_arrow().to_batches()[0]) == 2
    result = db.query("SELECT tbname, v FROM m ORDER BY ts")
    assert result.columns == ["tbname", "v"]
    assert result.to_polars()["v"].to_list() == [1.0, 2.0, 3.0]
    assert result.to_pandas()["tbname"].tolist() == ["a", "b", "a"]
    assert list(result) == result.rows
    assert len(result) == result.to_arrow().num_rows == 3


@pytest.mark.parametrize(
    ("rows", "column", "index", "words"),
    [
        (
            [{"tbname": "d", "ts": T0}, {"tbname": "d", "ts": T0, "vv": 1}],
            "vv",
            None,
            "has no column",
        ),
        ([{"tbname": "d", "ts": T0}, {"tbname": "d", "ts": T0, "n": "1"}], "n", 1, "is not INT"),
        (
            [{"tbname": "d", "ts": T0}, {"tbname": "d", "ts": T0, "s": "123456789"}],
            "s",
            1,
            "longer than 8",
        ),
        ([{"tbname": "d", "ts": T0}, {"tbname": "d", "ts": 99 * T0}], "ts", 1, "MAX_AHEAD"),
        ([{"ts": T0}], "tbname", 0, "missing"),
        ([{"tbname": "p", "ts": T0}], "tbname", None, "table of its own"),
    ],
)
def test_a_bad_row_is_named_and_nothing_of_its_request_is_written(
    mesh: RunningMesh,
    db: penstock.Connection,
    rows: list[dict[str, Any]],
    column: str,
    index: int | None,
    words: str,
) -> None:
    answer = post(
        mesh, f"/v1/tables/{db.database}/m/rows", json.dumps(rows).encode(), "application/json"
    )
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["column"]) == (400, "E_ROW", column)
    assert words in error["message"]
    assert index is None or error["row"] == index
    with pytest.raises(SchemaError, match=words):
        db.write("m", rows)
    assert db.query("SELECT count(*) FROM m").rows == [(0,)]


@pytest.mark.parametrize(
    ("path", "body", "kind", "status", "code"),
    [
        ("m", b"{", "application/json", 400, "E_BODY"),
        ("m", b"[]", "application/json", 400, "E_ROW"),
        ("m", b'{"tbname":"d","ts":1,"v":NaN}', "application/json", 400, "E_BODY"),
        ("m", b"\xff\xfe", "application/json", 400, "E_BODY"),
        ("m", b"x", "application/vnd.apache.arrow.stream", 400, "E_BODY"),
        ("m", b"a,b", "text/csv", 415, "E_MEDIA_TYPE"),
        ("metres", b"{}", "application/json", 404, "E_NO_TABLE"),
        ("m", b"[" + b" " * (17 << 20) + b"]", "application/json", 413, "E_TOO_LARGE"),
    ],
)
def test_bodies_that_are_no_rows(
    mesh: RunningMesh,
    db: penstock.Connection,
    path: str,
    body: bytes,
    kind: str,
    status: int,
    code: str,
) -> None:
    answer = post(mesh, f"/v1/tables/{db.database}/{path}/rows", body, kind)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_rows_of_many_requests_share_records_and_keep_order(
    mesh: RunningMesh, db: penstock.Connection
) -> None:
    def client(number: int) -> None:
        with penstock.connect(
            mesh.gateway_url, password=mesh.password, database=db.database
        ) as own:
            for i in range(25):
                own.write(
                    "m",
                    [
                        {"tbname": f"c{number}", "ts": T0 + i, "n": i},
                        {"tbname": f"e{number}", "ts": T0 + i, "n": i},
                    ],
                )

    threads = [threading.Thread(target=client, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = records(mesh, db.database, "m")
    order: dict[str, list[int]] = {}
    for place, rows, writes in found:
        assert sum(writes) == len(rows)
        for row in rows:
            assert partition(row["tbname"], 3) == place
            order.setdefault(row["tbname"], []).append(row["n"])
    assert order == {f"{kind}{n}": list(range(25)) for kind in "ce" for n in range(8)}
    assert len(found) < 400, "writes that came together left together"


def test_websocket_acks_after_kafka_and_refuses_frame_by_frame(
    mesh: RunningMesh, db: penstock.Connection
) -> None:
    with db.writer("m") as writer:
        for i in range(300):
            writer.write(
                pl.DataFrame(
                    {
                        "tbname": [f"w{i % 7}"] * 20,
                        "ts": [T0 + 20 * i + k for k in range(20)],
                        "n": [i] * 20,
                    }
                )
            )
        writer.write([{"tbname": "json", "ts": T0, "v": 1}])
        assert writer.flush() == 6001
        with pytest.raises(SchemaError, match="is not INT"):
            writer.write([{"tbname": "w", "ts": T0, "n": "x"}])
            writer.flush()
        writer.write([{"tbname": "json", "ts": T0 + 1, "v": 2}])
        assert writer.flush() == 6002
    assert db.query("SELECT count(*) FROM m").rows == [(6002,)]


def test_websocket_protocol(mesh: RunningMesh, db: penstock.Connection) -> None:
    url = mesh.gateway_url.replace("http", "ws", 1) + "/v1/ingest"
    headers = {"Authorization": f"Token {mesh.user}:{mesh.password}"}
    with connect_websocket(f"{url}?table={db.database}.m", additional_headers=headers) as socket:
        assert json.loads(socket.recv())["window"] > 1
        socket.send(json.dumps({"seq": 1, "rows": [{"tbname": "a", "ts": T0}]}))
        assert json.loads(socket.recv()) == {"ack": 1, "rows": 1}
        for frame in ("{", '{"seq": 2, "rows": 1}', b"arrow?"):
            socket.send(frame)
            assert json.loads(socket.recv())["error"]["code"] == "E_BODY"
        socket.send(json.dumps({"seq": 3, "table": f"{db.database}.none", "rows": [{}]}))
        answer = json.loads(socket.recv())
        assert (answer["nack"], answer["error"]["code"]) == (3, "E_NO_TABLE")
    for wrong in ({}, {**headers, "Origin": "http://elsewhere.example"}):
        with pytest.raises(InvalidStatus) as refused:
            connect_websocket(url, additional_headers=wrong)
        assert refused.value.response.status_code in (401, 403)


def test_notices_in_every_form_of_answer(mesh: RunningMesh, db: penstock.Connection) -> None:
    shared = "2 of 3 rows share their key; the later replaced the earlier; a key column or a supertable keeps both"
    early = "1 of 1 times are before 1990 (1700000000 is 1970-01-20T16:13:20Z); numbers count milliseconds here"
    insert = f"INSERT INTO p VALUES ({T0}, 1) ({T0}, 2) ({T0 + 1}, 3)"
    assert db.query(insert).notices == (shared,)
    assert (
        count := db.execute(f"{insert}; INSERT INTO p VALUES (1700000000, 1)")
    ) == 1 and count.notices == (shared, early)
    for path in (f"/rest/sql/{db.database}", f"/v1/query?db={db.database}"):
        answer = post(mesh, path, insert.encode(), "text/plain")
        assert answer.json()["notices"] == [shared] and answer.headers["Penstock-Notice"] == shared
    rows = [{"ts": T0, "v": 1}, {"ts": T0, "v": 2}, {"ts": T0 + 1}]
    answer = post(
        mesh, f"/v1/tables/{db.database}/p/rows", json.dumps(rows).encode(), "application/json"
    )
    assert (
        answer.json() == {"rows": 3, "notices": [shared]}
        and answer.headers["Penstock-Notice"] == shared
    )
    for form in (rows, pl.DataFrame(rows)):
        assert db.write("p", form).notices == (shared,)
    lines = f"/influxdb/v1/write?db={db.database}&precision=s"
    assert (
        post(mesh, lines, b"weather,city=oslo t=1 1700000000", "text/plain").headers.get(
            "Penstock-Notice"
        )
        is None
    )
    assert (
        "before 1990"
        in post(mesh, lines, b"weather,city=oslo t=1 1700000", "text/plain").headers[
            "Penstock-Notice"
        ]
    )
    assert db.query("SELECT count(*) FROM p").notices == ()


def test_an_idempotency_key_counts_once(mesh: RunningMesh, db: penstock.Connection) -> None:
    rows = [{"tbname": f"t{i}", "ts": T0, "n": i} for i in range(30)]
    key = unique("key")
    for _ in range(3):
        assert db.write("m", rows, idempotency_key=key) == 30
    assert db.execute("INSERT INTO p VALUES (NOW, 1)", idempotency_key=key + "sql") == 1
    assert db.execute("INSERT INTO p VALUES (NOW, 1)", idempotency_key=key + "sql") == 1
    with pytest.raises(SchemaError, match="another request"):
        db.write("m", rows[:5], idempotency_key=key)
    assert sum(len(r) for _, r, _ in records(mesh, db.database, "m")) == 30
    assert sum(len(r) for _, r, _ in records(mesh, db.database, "p")) == 1


def test_a_retry_after_a_gateway_died_looks_into_the_log(
    mesh: RunningMesh, db: penstock.Connection
) -> None:
    """As if the process had died between Kafka's answer and its own note of it, with some of the
    records written.
    """
    rows = [{"tbname": f"t{i}", "ts": T0, "n": i} for i in range(30)]
    client = redis.from_url(mesh.redis_url)
    key = unique("key")
    db.write("m", rows, idempotency_key=key)
    before = records(mesh, db.database, "m")
    marker = json.loads(client.get(names.idempotency(key)) or b"{}")  # type: ignore[arg-type]
    pending = {
        "state": "pending",
        "digest": marker["digest"],
        "gateway": "dead",
        "topic": f"in.{db.database}",
        "offsets": {"0": 0, "1": 0, "2": 0},
    }
    client.set(names.idempotency(key), json.dumps(pending))
    assert db.write("m", rows, idempotency_key=key) == 30
    assert records(mesh, db.database, "m") == before
    half = unique("key")
    digest = json.dumps(
        {**pending, "offsets": {p: 10**6 for p in "012"}}
    )  # a first try that wrote nothing
    client.set(names.idempotency(half), digest)
    assert db.write("m", rows, idempotency_key=half) == 30
    assert sum(len(r) for _, r, _ in records(mesh, db.database, "m")) == 60
    client.set(names.idempotency(half), json.dumps({**pending, "gateway": "alive"}))
    client.set(names.gateway_heartbeat("alive"), "1", ex=30)
    with pytest.raises(CatalogError, match="another gateway"):
        db.write("m", rows, idempotency_key=half)


def test_statements_and_their_errors(db: penstock.Connection) -> None:
    home = db.database
    assert db.execute("CREATE TABLE c1 USING m TAGS ('x', 1) c2 USING m (level) TAGS (2)") == 0
    assert (
        db.execute(
            "INSERT INTO c1 VALUES (NOW, 1, 2, 'x') c2 (ts, n) VALUES ('2024-01-01', 5) ('2024-01-02', 6)"
        )
        == 3
    )
    assert sorted(db.query("SELECT tbname, site, level FROM m WHERE n > 4").rows) == [
        ("c2", None, 2),
        ("c2", None, 2),
    ]
    db.execute("ALTER TABLE c2 SET TAG site = 'new'")
    db.execute("INSERT INTO c2 (ts, n) VALUES ('2024-01-03', 7)")
    assert db.query("SELECT DISTINCT site FROM m WHERE tbname = 'c2'").rows == [("new",)]
    db.execute("DELETE FROM m WHERE tbname = 'c2' AND ts < '2024-01-02'")
    assert db.query("SELECT n FROM c2 ORDER BY ts").rows == [(6,), (7,)]
    assert sorted(db.query("SHOW TABLES").rows) == [("c1",), ("c2",), ("p",)]
    assert db.query("SHOW STABLES LIKE 'M%'").rows == [("m",)]
    assert (home,) in db.query("SHOW DATABASES").rows
    assert db.query(
        f"SELECT ntables FROM information_schema.ins_databases WHERE name = '{home}'"
    ).rows == [(3,)]
    assert db.query("SHOW CREATE TABLE p").rows == [
        ("p", "CREATE TABLE `p` (`ts` TIMESTAMP, `v` DOUBLE)")
    ]
    with pytest.raises(SqlSyntaxError) as syntax:
        db.execute("SELECT FROM WHERE")
    assert (syntax.value.line, bool(syntax.value.snippet)) == (1, True)
    with pytest.raises(SqlSemanticError, match="exists already"):
        db.execute("CREATE TABLE p (ts TIMESTAMP, w INT)")
    with pytest.raises(SqlSemanticError) as row:
        db.execute("INSERT INTO p VALUES (1, 1.0) (2, 'x')")
    assert row.value.column == 31
    with pytest.raises(SqlSemanticError, match="does not exist"):
        db.query("SELECT * FROM nothing_here")
    db.execute("DROP TABLE c1; DROP TABLE IF EXISTS c1; DROP TABLE p")
    assert db.query("SHOW TABLES").rows == [("c2",)]
    assert db.query("SELECT count(*) FROM m").rows == [(2,)], "a dropped child's rows are gone"


def test_a_named_null_overwrites_and_a_column_left_out_stays(db: penstock.Connection) -> None:
    db.execute("CREATE TABLE w (ts TIMESTAMP, a INT, b VARCHAR(8), c DOUBLE)")
    db.execute(
        "CREATE STREAM s TRIGGER AT_ONCE IGNORE UPDATE 0 INTO o AS SELECT ts, a, b, c FROM w"
    )
    whole = [{"ts": T0 + i, "a": i, "b": "x", "c": 0.5} for i in range(4)]
    assert db.write("w", whole) == 4
    assert db.execute(f"INSERT INTO w (ts, a) VALUES ({T0}, NULL)") == 1
    assert db.write("w", [{"ts": T0 + 1, "b": None}, {"ts": T0 + 2, "c": None, "a": 7}]) == 2
    partial = pl.DataFrame(
        {"ts": [T0 + 3], "a": [9], "b": [None]}, schema_overrides={"b": pl.String}
    )
    assert db.write("w", partial) == 1
    expected = [
        (None, "x", 0.5),
        (1, None, 0.5),
        (7, "x", None),
        (9, None, 0.5),
    ]
    for table in ("w", "o"):
        query = f"SELECT a, b, c FROM {table} ORDER BY ts"
        eventually(lambda query=query: db.query(query).rows == expected)


def test_a_dropped_child_is_gone_at_once_and_its_name_is_free(db: penstock.Connection) -> None:
    for turn in range(5):
        db.write("m", [{"tbname": "c", "ts": T0 + turn, "n": turn, "site": f"site {turn}"}])
        assert db.query("SELECT n, site FROM m").rows == [(turn, f"site {turn}")], (
            "tags of the child that was dropped do not come back"
        )
        db.execute("DROP TABLE c")
        assert db.query("SHOW TABLES").rows == [("p",)]
        assert db.query("SELECT count(*) FROM m").rows == [(0,)]
    assert db.last("m") == []
    with pytest.raises(SqlSemanticError, match="there is no table"):
        db.execute("DROP TABLE c")


def test_who_may_come_in(mesh: RunningMesh) -> None:
    with pytest.raises(AuthError):
        penstock.connect(mesh.gateway_url, password="guess")
    assert httpx.post(f"{mesh.gateway_url}/v1/query", content="SELECT 1").status_code == 401
    foreign = {"Origin": "http://elsewhere.example"}
    answer = httpx.post(
        f"{mesh.gateway_url}/v1/query",
        content="SELECT 1",
        headers=foreign,
        auth=(mesh.user, mesh.password),
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "E_FORBIDDEN")
    assert httpx.post(f"{mesh.gateway_url}/internal/ddl", json={}).status_code == 403
    page = httpx.get(mesh.gateway_url)
    assert (
        page.status_code == 200 and "default-src 'none'" in page.headers["Content-Security-Policy"]
    )


def test_latest_rows_from_redis(db: penstock.Connection) -> None:
    db.write("m", [{"tbname": f"t{i % 3}", "ts": T0 + i, "n": i, "site": "x"} for i in range(9)])
    db.write("p", [{"ts": T0, "v": 1.5}])
    latest = eventually(lambda: (rows := db.last("m")) and len(rows) == 3 and rows)
    assert sorted((r["tbname"], r["ts"] - T0, r["n"]) for r in latest) == [
        ("t0", 6, 6),
        ("t1", 7, 7),
        ("t2", 8, 8),
    ]
    assert [r["n"] for r in db.last("m", ["t1", "none"])] == [7]
    assert [r["n"] for r in db.last("t2")] == [8]
    assert eventually(lambda: db.last("p"))[0]["v"] == 1.5

"""External streams of type='kafka': a topic of another Kafka read, queried, windowed and written,
while the reader dies.
"""

from __future__ import annotations

import base64
import io
import json
import struct
from collections.abc import Iterator
from typing import Any

import fastavro
import pytest

import penstock
from penstock.errors import PenstockError
from penstock.mesh.running import RunningMesh, running_mesh
from penstock.protobuf import bytes_field, number_field
from tests.answering import answering
from tests.stack.conftest import eventually
from tests.stack.foreign_kit import Foreign
from tests.stack.names import unique

#: 2026-01-01
T0 = 1_767_225_600_000


@pytest.fixture
def db(mesh: RunningMesh) -> Iterator[penstock.Connection]:
    with penstock.connect(
        mesh.gateway_url, password=mesh.password, database=unique("fk")
    ) as connection:
        connection.execute(f"CREATE DATABASE {connection.database}")
        yield connection


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    """Another Kafka: the mesh's own is refused."""
    with running_mesh(
        tmp_path_factory.mktemp("elsewhere"), services=("kafka",), open_kafka=True
    ) as running:
        yield running


def order(i: int) -> bytes:
    return json.dumps(
        {"ts": T0 + 1000 * (i // 4), "id": i, "price": i / 2, "who": f"w{i % 3}"}
    ).encode()


COLUMNS = "(ts TIMESTAMP, id INT, price DOUBLE, who VARCHAR(10))"


def test_a_topic_is_read_windowed_and_written(
    mesh: RunningMesh, elsewhere: RunningMesh, db: penstock.Connection
) -> None:
    topic = Foreign(elsewhere)
    topic.produce(*(order(i) for i in range(0, 20, 2)))
    topic.produce(*(order(i) for i in range(1, 20, 2)), partition=1)
    db.execute(f"CREATE EXTERNAL STREAM orders {COLUMNS} {topic.clause()}")
    db.execute(f"CREATE EXTERNAL STREAM IF NOT EXISTS orders {COLUMNS} {topic.clause()}")
    eventually(
        lambda: db.query("SELECT count(*), sum(id) FROM orders").rows == [(20, sum(range(20)))]
    )
    assert db.query("SELECT ts, id, price, who FROM orders WHERE id = 7").to_arrow().column(
        "price"
    ).to_pylist() == [3.5]
    # four orders of one time are four rows
    counted = "SELECT _wstart, count(*) AS n FROM orders INTERVAL(1s)"
    assert [n for _, n in db.query(counted).rows] == [4] * 5
    db.execute("CREATE STREAM per_second TRIGGER AT_ONCE INTO seconds AS " + counted)
    topic.produce(b"no json", None, b'{"ts":"noon"}', *(order(i) for i in range(20, 24)))
    eventually(lambda: db.query("SELECT n FROM seconds").rows == [(4,)])
    assert (
        db.execute(
            f"INSERT INTO orders (ts, id, who) VALUES ({T0 + 9000}, 100, 'we') ({T0 + 9001}, 101, NULL)"
        )
        == 2
    )
    assert db.write("orders", [{"ts": T0 + 9002, "id": 102, "price": 0.5}]) == 1
    eventually(
        lambda: (
            db.query("SELECT id, price, who FROM orders WHERE id >= 100 ORDER BY id").rows
            == [
                (100, None, "we"),
                (101, None, None),
                (102, 0.5, None),
            ]
        )
    )
    sent = [json.loads(v) for v in topic.consume(30) if b":09." in v]
    assert {
        "ts": "2026-01-01T00:00:09.000Z",
        "id": 100,
        "price": None,
        "who": "we",
    } in sent and len(sent) == 3
    said = db.query("SHOW EXTERNAL STREAMS")
    row = dict(zip(said.columns, said.rows[0], strict=True))
    assert (row["type"], row["remote_stream"]) == ("kafka", topic.name)
    figures = f"SELECT rows_read, last_error FROM information_schema.ins_external_streams WHERE db_name = '{db.database}'"
    eventually(lambda: db.query(figures).rows == [(27, None)])
    # a column more: messages from now on are read with it
    db.execute("ALTER TABLE orders ADD COLUMN note VARCHAR(10)")
    topic.produce(b'{"ts":1767225700000,"id":200,"note":"new"}')
    eventually(lambda: db.query("SELECT note FROM orders WHERE id = 200").rows == [("new",)])
    db.execute("DROP STREAM per_second; DROP EXTERNAL STREAM orders")
    with pytest.raises(PenstockError, match="does not exist"):
        db.query("SELECT * FROM orders")


def test_a_killed_reader_repeats_and_loses_nothing(
    mesh: RunningMesh, elsewhere: RunningMesh, db: penstock.Connection
) -> None:
    topic = Foreign(elsewhere)
    db.execute(f"CREATE EXTERNAL STREAM orders {COLUMNS} {topic.clause()}")
    total = 3000
    pid = None
    for first in range(0, total, 300):
        topic.produce(*(order(i) for i in range(first, first + 300)), partition=first // 300 % 2)
        if first in (600, 1500, 2400):
            if pid is not None:
                mesh.wait_ready("federation", not_pid=pid)
            pid = mesh.kill("federation")
    eventually(lambda: db.query("SELECT count(*) FROM orders").rows == [(total,)])
    assert db.query("SELECT count(DISTINCT id), sum(id) FROM orders").rows == [
        (total, sum(range(total)))
    ]
    with penstock.connect(mesh.gateway_url, password=mesh.password, database=db.database) as other:
        ids = [row["id"] for message, row in zip(range(total), rows_of(other), strict=False)]
    assert sorted(ids) == list(range(total)), "in the log, too, each message is once"


def rows_of(client: penstock.Connection) -> Iterator[dict[str, Any]]:
    with client.subscribe("orders", start="earliest") as subscription:
        for message in subscription:
            yield from message.items


def test_latest_begins_with_what_comes(
    mesh: RunningMesh, elsewhere: RunningMesh, db: penstock.Connection
) -> None:
    topic = Foreign(elsewhere, 1)
    topic.produce(order(1))
    db.execute(f"CREATE EXTERNAL STREAM late {COLUMNS} {topic.clause(start='latest')}")
    topic.produce(order(2))
    eventually(lambda: db.query("SELECT id FROM late").rows == [(2,)])


def test_what_is_refused_and_what_is_not_shown(
    mesh: RunningMesh, elsewhere: RunningMesh, db: penstock.Connection
) -> None:
    topic = Foreign(elsewhere, 1)
    for statement, words in (
        (f"CREATE EXTERNAL STREAM x {topic.clause()}", "name those that are wanted"),
        (f"CREATE EXTERNAL STREAM x (v INT) {topic.clause()}", "must be a TIMESTAMP"),
        (
            f"CREATE EXTERNAL STREAM x {COLUMNS} {topic.clause(topic='nothing_here')}",
            "there is no topic nothing_here",
        ),
        (
            f"CREATE EXTERNAL STREAM x {COLUMNS} {topic.clause(brokers='169.254.169.254:9092')}",
            "may not be connected to",
        ),
    ):
        with pytest.raises(PenstockError, match=words):
            db.execute(statement)
    db.execute(
        f"CREATE EXTERNAL STREAM x {COLUMNS} {topic.clause(username='me', password='hidden-42')}"
    )
    assert "hidden-42" not in str(db.query("SHOW CREATE EXTERNAL STREAM x").rows)
    assert any(
        p.read_text() == "hidden-42\n" for p in mesh.layout.secrets.glob("external-*.password")
    )
    db.execute("CREATE TABLE t (ts TIMESTAMP, id INT, price DOUBLE, who VARCHAR(10))")
    for statement in (
        "CREATE STREAM s INTO x AS SELECT ts, id FROM t",
        "CREATE MATERIALIZED VIEW v INTO x AS SELECT * FROM t",
    ):
        with pytest.raises(PenstockError, match="E_NO_LOG"):
            db.execute(statement)
    with pytest.raises(PenstockError, match="E_ROW"):
        db.execute(f"INSERT INTO x (ts, who) VALUES ({T0}, 'longer than ten')")
    db.execute("DROP TABLE x")
    assert not any(
        p.read_text() == "hidden-42\n" for p in mesh.layout.secrets.glob("external-*.password")
    )


SCHEMA = fastavro.parse_schema(
    {
        "type": "record",
        "name": "o",
        "fields": [
            {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "id", "type": "int"},
            {"name": "price", "type": ["null", "double"], "default": None},
            {"name": "who", "type": ["null", "string"], "default": None},
        ],
    }
)


@pytest.fixture
def registry() -> Iterator[str]:
    """The two answers of a Schema Registry that readers and writers ask for."""

    def answer(path: str) -> tuple[int, Any]:
        known = path == "/schemas/ids/5" or path.endswith("-value/versions/latest")
        return (
            (200, {"id": 5, "schema": json.dumps(SCHEMA, default=str)})
            if known
            else (404, {"error_code": 40403})
        )

    with answering(answer) as url:
        yield url


def test_avro_with_a_schema_registry(
    mesh: RunningMesh, elsewhere: RunningMesh, db: penstock.Connection, registry: str
) -> None:
    topic = Foreign(elsewhere, 1)

    def avro(schema_id: int, row: dict[str, Any]) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, SCHEMA, row)
        return struct.pack(">bI", 0, schema_id) + out.getvalue()

    topic.produce(
        avro(5, {"ts": T0, "id": 1, "price": 2.5}),
        avro(6, {"ts": T0, "id": 9}),
        avro(5, {"ts": T0 + 1, "id": 2, "who": "w"}),
    )
    settings = topic.clause(data_format="Avro", kafka_schema_registry_url=registry)
    db.execute(f"CREATE EXTERNAL STREAM orders {COLUMNS} {settings}")
    eventually(
        lambda: (
            db.query("SELECT id, price, who FROM orders ORDER BY id").rows
            == [(1, 2.5, None), (2, None, "w")]
        )
    )
    db.execute(f"INSERT INTO orders (ts, id, who) VALUES ({T0 + 2}, 3, 'us')")
    eventually(lambda: db.query("SELECT id, who FROM orders WHERE id = 3").rows == [(3, "us")])
    value = topic.consume(4)[-1]
    assert value[:5] == struct.pack(">bI", 0, 5)
    assert fastavro.schemaless_reader(io.BytesIO(value[5:]), SCHEMA, None)["who"] == "us"


def test_protobuf_with_a_schema_registry(
    mesh: RunningMesh, elsewhere: RunningMesh, db: penstock.Connection
) -> None:
    """A registry gives what protoc would make of `message Order { int64 ts = 1; int32 id = 2;
    optional string who = 3; }`.
    """

    def field(name: str, number: int, kind: int) -> bytes:
        told = bytes_field(1, name.encode()) + number_field(3, number)
        return told + number_field(4, 1) + number_field(5, kind)

    optional = field("who", 3, 9) + b"\x48\x00"
    fields = (field("ts", 1, 3), field("id", 2, 5), optional)
    order_type = bytes_field(1, b"Order") + b"".join(bytes_field(2, f) for f in fields)
    file = bytes_field(4, order_type) + bytes_field(12, b"proto3")

    def answer(path: str) -> tuple[int, Any]:
        if path == "/schemas/ids/5?format=serialized":
            return 200, {"schemaType": "PROTOBUF", "schema": base64.b64encode(file).decode()}
        return 404, {"error_code": 40403}

    def message(number: int, who: bytes) -> bytes:
        told = number_field(1, T0) + number_field(2, number) + bytes_field(3, who)
        return struct.pack(">bI", 0, 5) + b"\0" + told

    topic = Foreign(elsewhere, 1)
    topic.produce(message(0, b"ann"), message(1, b"\xff"), message(2, b""), b"{}")
    with answering(answer) as url:
        settings = topic.clause(data_format="Protobuf", kafka_schema_registry_url=url)
        db.execute(f"CREATE EXTERNAL STREAM orders {COLUMNS} {settings}")
        shown = "SELECT id, price, who FROM orders ORDER BY id"
        eventually(lambda: db.query(shown).rows == [(0, None, "ann"), (2, None, None)])
    letters = f"SELECT code FROM information_schema.ins_dead_letters WHERE topic = '{topic.name}'"
    eventually(lambda: db.query(letters).rows == [("E_MALFORMED",)] * 2)
    with pytest.raises(PenstockError, match="only read"):
        db.execute(f"INSERT INTO orders (ts, id) VALUES ({T0}, 9)")

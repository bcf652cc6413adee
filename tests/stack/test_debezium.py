"""A table that follows a table of a database by Debezium's messages: through updates, moves and
deletes, while the reader dies.
"""

from __future__ import annotations

import io
import json
import random
import struct
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import fastavro
import pytest

import penstock
from penstock.errors import PenstockError
from penstock.mesh.running import RunningMesh, running_mesh
from tests.answering import answering
from tests.stack.conftest import eventually
from tests.stack.foreign_kit import Foreign
from tests.stack.names import unique

#: 2026-01-01
T0 = 1_767_225_600_000
COLUMNS = "(placed TIMESTAMP, id BIGINT PRIMARY KEY, who VARCHAR(20), price DECIMAL(9,2))"
Row = dict[str, Any]


@pytest.fixture
def db(mesh: RunningMesh) -> Iterator[penstock.Connection]:
    with penstock.connect(
        mesh.gateway_url, password=mesh.password, database=unique("dbz")
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


class Source:
    """A table of a database, and the messages that Debezium would write of it: rows of one key go
    to one partition, and a tombstone follows a delete.
    """

    def __init__(self, topic: Foreign, partitions: int) -> None:
        self.rows: dict[int, Row] = {}
        self._topic = topic
        self._partitions = partitions

    def put(self, row: Row, op: str = "c") -> None:
        before = self.rows.get(row["id"])
        self.rows[row["id"]] = row
        self._tell(row["id"], "u" if before is not None else op, before, row)

    def remove(self, number: int) -> None:
        self._tell(number, "d", self.rows.pop(number), None)
        self._send(number, None)

    def shown(self) -> list[tuple[Any, ...]]:
        """Return the rows of our table, in order of the key."""
        found = sorted(self.rows.items())
        return [(i, row["placed"], row["who"], str(row["price"])) for i, row in found]

    def _tell(self, number: int, op: str, before: Row | None, after: Row | None) -> None:
        payload = {"op": op, "before": before, "after": after, "source": {"table": "orders"}}
        self._send(number, json.dumps(payload).encode())

    def _send(self, number: int, value: bytes | None) -> None:
        key = json.dumps({"id": number}).encode()
        self._topic.produce(value, key=key, partition=number % self._partitions)


def order(number: int, placed: int = 0, who: str = "ann", price: str = "1.50") -> Row:
    return {"id": number, "placed": T0 + 1000 * placed, "who": who, "price": price}


def shown(db: penstock.Connection, table: str = "orders") -> list[tuple[Any, ...]]:
    rows = db.query(f"SELECT id, placed, who, price FROM {table} ORDER BY id").rows
    return [(i, round(at.timestamp() * 1000), who, str(price)) for i, at, who, price in rows]


def test_a_table_follows_a_history_while_its_reader_dies(
    mesh: RunningMesh, elsewhere: RunningMesh, db: penstock.Connection
) -> None:
    topic = Foreign(elsewhere, 3)
    source = Source(topic, 3)
    clause = topic.clause(data_format="DebeziumJSON")
    db.execute(f"CREATE EXTERNAL STREAM orders {COLUMNS} {clause}")
    # windows that rows move into or out of late are computed again
    exact = "TRIGGER AT_ONCE IGNORE EXPIRED 0 IGNORE UPDATE 0"
    windows = "SELECT _wstart, count(*) AS n, sum(price) AS price FROM orders INTERVAL(10s)"
    db.execute(f"CREATE STREAM per_ten {exact} INTO tens AS {windows}")
    for number in range(20):
        source.put(order(number, number), op="r")
    eventually(lambda: shown(db) == source.shown())
    chance = random.Random(32)
    pid = mesh.kill("federation")
    for step in range(300):
        number = chance.randrange(60)
        if number in source.rows and chance.random() < 0.4:
            source.remove(number)
        else:
            placed = chance.randrange(40)
            price = f"{chance.randrange(100)}.{chance.randrange(10)}5"
            source.put(order(number, placed, chance.choice(("ann", "bob")), price))
        if step == 150:
            mesh.wait_ready("federation", not_pid=pid)
            mesh.kill("federation")
    eventually(lambda: shown(db) == source.shown())
    asked = db.query(windows).rows
    eventually(
        lambda: (
            db.query("SELECT _wstart, n, price FROM tens WHERE n > 0 ORDER BY _wstart").rows
            == asked
        )
    )


def test_what_cannot_be_followed_is_a_dead_letter_and_nothing_is_written_there(
    mesh: RunningMesh, elsewhere: RunningMesh, db: penstock.Connection
) -> None:
    topic = Foreign(elsewhere, 1)
    clause = topic.clause(data_format="debezium-json")
    for columns, words in (
        ("(placed TIMESTAMP, who VARCHAR(20))", "key column"),
        ("(placed TIMESTAMP, who VARCHAR(20), id INT PRIMARY KEY)", "cannot be part"),
    ):
        with pytest.raises(PenstockError, match=words):
            db.execute(f"CREATE EXTERNAL STREAM orders {columns} {clause}")
    with pytest.raises(PenstockError, match="told apart by their place"):
        db.execute(f"CREATE EXTERNAL STREAM orders {COLUMNS} {topic.clause()}")
    db.execute(f"CREATE EXTERNAL STREAM orders {COLUMNS} {clause}")
    source = Source(topic, 1)
    source.put(order(1))
    # an update and a delete of PostgreSQL without REPLICA IDENTITY FULL, and a broken message
    blind = {"op": "u", "before": None, "after": order(1, 5)}
    dropped = {"op": "d", "before": {"id": 1, "placed": 0}, "after": None}
    topic.produce(json.dumps(blind).encode(), json.dumps(dropped).encode(), b"{")
    source.put(order(2))
    eventually(lambda: shown(db) == source.shown())
    letters = (
        "SELECT topic, `partition`, `offset`, code, reason FROM information_schema.ins_dead_letters "
        f"WHERE topic = '{topic.name}' ORDER BY `offset`"
    )
    eventually(lambda: len(db.query(letters).rows) == 3)
    found = db.query(letters).rows
    assert [row[1:4] for row in found] == [(0, offset, "E_MALFORMED") for offset in (1, 2, 3)]
    assert "REPLICA IDENTITY FULL" in found[0][4] and "REPLICA IDENTITY FULL" in found[1][4]
    with pytest.raises(PenstockError, match="change the row in that database"):
        db.execute(f"INSERT INTO orders (placed, id) VALUES ({T0}, 9)")
    (said,) = db.query("SHOW CREATE EXTERNAL STREAM orders").rows
    assert "PRIMARY KEY" in said[1] and "DebeziumJSON" in said[1]


VALUE = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "who", "type": ["null", "string"], "default": None},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
    ],
}
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "namespace": "server.shop.orders",
    "fields": [
        {"name": "before", "type": ["null", VALUE], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "op", "type": "string"},
    ],
}
KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}


@pytest.fixture
def registry() -> Iterator[str]:
    """A Schema Registry that knows two schemas."""
    known = {"/schemas/ids/1": KEY, "/schemas/ids/2": ENVELOPE}

    def answer(path: str) -> tuple[int, Any]:
        if path in known:
            return 200, {"schema": json.dumps(known[path])}
        return 404, {"error_code": 40403}

    with answering(answer) as url:
        yield url


def test_a_table_without_times_follows_by_its_key_in_avro(
    mesh: RunningMesh, elsewhere: RunningMesh, db: penstock.Connection, registry: str
) -> None:
    """As PostgreSQL tells it by default: `before` has the key at most."""

    def avro(schema_id: int, schema: Any, value: Row) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
        return struct.pack(">bI", 0, schema_id) + out.getvalue()

    topic = Foreign(elsewhere, 1)

    def tell(number: int, op: str, **after: Any) -> None:
        price = Decimal(after.pop("price", "0.50"))
        row = {"id": number, "price": price, "who": None} | after if op != "d" else None
        value = avro(2, ENVELOPE, {"op": op, "before": None, "after": row})
        topic.produce(value, key=avro(1, KEY, {"id": number}))

    tell(1, "r", who="ann")
    tell(2, "c", who="bob")
    tell(3, "c", who="eve")
    tell(1, "u", who="__debezium_unavailable_value", price="2.25")
    tell(2, "d")
    topic.produce(None, key=avro(1, KEY, {"id": 3}))
    tell(4, "c", price="9.99")
    settings = topic.clause(
        data_format="DebeziumAvro", kafka_schema_registry_url=registry, fixed_time="true"
    )
    db.execute(f"CREATE EXTERNAL STREAM orders {COLUMNS} {settings}")
    eventually(lambda: shown(db) == [(1, 0, "ann", "2.25"), (4, 0, None, "9.99")])

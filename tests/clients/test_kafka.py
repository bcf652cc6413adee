"""Clients of Kafka with clients of schema registries: publish rows, and read the topic."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import fastavro
import httpx
import pytest

import penstock
from penstock.mesh.running import RunningMesh
from tests.clients.conftest import Start
from tests.clients.program import ClientError
from tests.stack.conftest import eventually
from tests.stack.names import unique

CLIENTS = ("kafkajs", "franz-go")


@pytest.fixture
def sql(mesh: RunningMesh) -> Iterator[penstock.Connection]:
    database = unique("kafka")
    with penstock.connect(
        mesh.gateway_url, user=mesh.user, password=mesh.password, database=database
    ) as client:
        client.execute(f"CREATE DATABASE {database} PARTITIONS 3")
        client.execute("CREATE STABLE meters (ts TIMESTAMP, power DOUBLE) TAGS (site VARCHAR(16))")
        yield client
        client.execute(f"DROP DATABASE {database}")


def _row_batch(mesh: RunningMesh, id_of_schema: int, rows: list[dict[str, Any]]) -> str:
    """Return a record's value as hexadecimal digits."""
    found = httpx.get(
        f"{mesh.gateway_url}/schemas/ids/{id_of_schema}", auth=(mesh.user, mesh.password)
    ).json()
    body = io.BytesIO()
    schema = fastavro.parse_schema(json.loads(found["schema"]))
    fastavro.schemaless_writer(body, schema, {"rows": rows})
    return (b"\0" + id_of_schema.to_bytes(4, "big") + body.getvalue()).hex()


def _rows(table: str, number: int) -> list[dict[str, Any]]:
    return [
        {
            "tbname": table,
            "ts": 1_700_000_000_000 + n,
            "op": 0,
            "power": 0.5 * n,
            "site": "north",
        }
        for n in range(number)
    ]


@pytest.mark.parametrize("name", CLIENTS)
def test_rows_are_published_and_read(
    name: str, mesh: RunningMesh, start: Start, sql: penstock.Connection
) -> None:
    topic = f"in.{sql.database}"
    client = start(name, group=f"{mesh.user}:{unique('g')}")
    assert topic in client.ask("topics")
    number, *_ = client.ask("schema", f"{topic}-meters")
    # each client's default partitioner puts a child table where the mesh looks for it
    for table in ("d1", "d2", "d3", "d4", "d5", "d6"):
        value = _row_batch(mesh, number, _rows(table, 10))
        assert client.ask("publish", topic, table, value) == 1
    counted = "SELECT count(*), count(DISTINCT tbname), sum(power) FROM meters"
    assert eventually(lambda: sql.query(counted).rows == [(60, 6, 135.0)])
    assert sql.query("SELECT * FROM information_schema.ins_dead_letters").rows == []
    values = client.ask("group", topic, "6")
    assert len(values) >= 6


def test_kafkajs_with_its_registry(
    mesh: RunningMesh, start: Start, sql: penstock.Connection
) -> None:
    topic = f"in.{sql.database}"
    client = start("kafkajs", group=f"{mesh.user}:{unique('g')}")
    batch = {"rows": _rows("d1", 3), "writes": [3]}
    number = client.ask("rows", topic, f"{topic}-meters", "d1", json.dumps(batch))
    asked = "SELECT power, site FROM meters ORDER BY ts"
    assert eventually(
        lambda: sql.query(asked).rows == [(0.0, "north"), (0.5, "north"), (1.0, "north")]
    )
    value = _row_batch(mesh, number, _rows("d1", 3))
    decoded = client.ask("decode", value)
    assert [row["power"] for row in decoded["rows"]] == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("name", CLIENTS)
def test_errors(name: str, mesh: RunningMesh, start: Start) -> None:
    client = start(name, group=f"{mesh.user}:{unique('g')}")
    with pytest.raises(ClientError):
        client.ask("schema", "in.nowhere-meters")
    with pytest.raises(ClientError):
        client.ask("publish", "in.nowhere", "d1", "00")
    with pytest.raises(ClientError, match=r"(?i)sasl|auth"):
        start(name, password="wrong")

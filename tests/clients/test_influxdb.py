"""InfluxDB's clients of 1.x and 2.x, each doing a user's work."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import penstock
from penstock.mesh.running import RunningMesh
from tests.clients.conftest import Start
from tests.clients.program import ClientError
from tests.stack.conftest import eventually
from tests.stack.names import unique

NOON = 1_704_110_400_000


@pytest.fixture
def sql(mesh: RunningMesh) -> Iterator[penstock.Connection]:
    with penstock.connect(mesh.gateway_url, user=mesh.user, password=mesh.password) as client:
        yield client


def test_a_client_of_version_1(start: Start) -> None:
    database = unique("influx")
    client = start("influxdb")
    assert client.server
    assert database in client.ask("create", database)
    points = [
        {
            "measurement": "doors",
            "tags": {"hall": hall},
            "time": NOON + 1000 * n,
            "fields": {"opened": float(n), "count": n, "wide": n % 2 == 0, "note": f'it\'s "{n}"'},
        }
        for n in range(5)
        for hall in ("east", "west")
    ]
    assert client.ask("write", json.dumps(points)) is True
    assert client.ask("lines", f"lifts,hall=east floor=3i {NOON}|lifts floor=4i {NOON}") is True
    assert client.ask("measurements") == ["doors", "lifts"]
    means = client.ask(
        "query",
        f'SELECT mean("opened"), count("note") FROM "doors" WHERE time >= {NOON}ms'
        f' AND time < {NOON + 4000}ms GROUP BY time(2s), "hall"',
    )
    assert means == [
        [
            hall,
            [
                {"time": NOON, "mean": 0.5, "count": 2},
                {"time": NOON + 2000, "mean": 2.5, "count": 2},
            ],
        ]
        for hall in ("east", "west")
    ]
    ((latest,),) = client.ask(
        "query", "SELECT opened, wide, note, hall FROM doors WHERE hall = 'west' AND count = 3"
    )
    assert latest == [
        {"time": NOON + 3000, "opened": 3.0, "wide": False, "note": 'it\'s "3"', "hall": "west"}
    ]
    with pytest.raises(ClientError, match="parsing query"):
        client.ask("query", "SELEC 1")
    with pytest.raises(ClientError) as partial:
        client.ask("lines", f"doors,hall=east opened=true {NOON}|doors,hall=up opened=9 {NOON}")
    assert partial.value.code == "400"
    found = client.ask("query", "SELECT opened FROM doors WHERE hall = 'up'")
    assert found == [[[{"time": NOON, "opened": 9.0}]]]
    client.ask("drop", database)


def test_parameters_of_version_1(start: Start) -> None:
    database = unique("influx")
    client = start("influxdb")
    client.ask("create", database)
    client.ask("lines", f"doors,hall=east opened=3 {NOON}|doors,hall=west opened=4 {NOON}")
    asked = "SELECT opened FROM doors WHERE hall = $hall AND opened > $least"
    found = client.ask("bound", asked, json.dumps({"hall": "west", "least": 1}))
    assert [row["opened"] for row in found] == [4.0]
    assert client.ask("bound", asked, json.dumps({"hall": "x' OR 1 = 1", "least": 1})) == []
    client.ask("drop", database)


def test_a_wrong_password_of_version_1(start: Start) -> None:
    client = start("influxdb", password="wrong")
    with pytest.raises(ClientError) as refused:
        client.ask("create", unique("influx"))
    assert refused.value.code == "401"


def test_a_client_of_version_2(start: Start, sql: penstock.Connection) -> None:
    bucket = unique("bucket")
    client = start("influxdb-client")
    assert client.server == "ready True"
    assert bucket in client.ask("create", bucket)
    assert client.ask("find", bucket) == bucket
    assert client.ask("find", "nothing") is None
    assert client.ask("organizations")
    client.ask("write", bucket)
    row: Any = eventually(
        lambda: sql.query(f"SELECT opened, share, wide, note, hall FROM {bucket}.doors").rows
    )
    assert row == [(3, 0.25, True, 'it\'s "so" \\ ä', "east wing, 1")]
    client.ask("batches", bucket, "1000")
    counted = sql.query(f"SELECT count(*), sum(n) FROM {bucket}.beats").rows
    assert counted == [(1000, 499_500)]
    with pytest.raises(ClientError) as refused:
        client.ask("line", bucket, f"doors,hall=x opened=true {NOON}")
    assert refused.value.code == "400"
    with pytest.raises(ClientError):
        client.ask("flux", bucket)
    sql.execute(f"DROP DATABASE {bucket}")


def test_a_wrong_token_of_version_2(start: Start) -> None:
    client = start("influxdb-client", password="wrong")
    with pytest.raises(ClientError) as refused:
        client.ask("buckets")
    assert refused.value.code == "401"

"""A whole mesh from outside, as its users have it: plain Kafka, HTTP and WebSocket; and whatever
dies under load, nothing acked is lost.

The same tests run against the embedded mesh and against the stack in containers.
"""

from __future__ import annotations

import base64
import io
import json
import secrets
import time
from collections.abc import Callable, Iterator

import fastavro
import httpx
import pytest
from confluent_kafka import Producer
from websockets.sync.client import connect as websocket

from penstock.client.connection import Connection, connect
from penstock.client.connection_options import ConnectionOptions
from penstock.mesh.running import RunningMesh
from tests.backends import RunningStack
from tests.integration.load import Load

Mesh = RunningMesh | RunningStack
#: what can die, in the embedded mesh and in containers
SERVICES = {
    "local": ("gateway", "notifier", "store", "spark", "kafka", "redis"),
    "containers": (
        "gateway",
        "notifier",
        "store",
        "jobs",
        "spark-worker",
        "spark-master",
        "kafka",
        "redis",
        "edge",
        "federation",
        "snode",
        "tables-1",
    ),
}


@pytest.fixture
def client(mesh: Mesh) -> Iterator[Connection]:
    with connect(
        mesh.gateway_url,
        user=mesh.user,
        password=mesh.password,
        options=ConnectionOptions(timeout=180),
    ) as connection:
        yield connection


@pytest.fixture
def name() -> str:
    return f"db{secrets.token_hex(4)}"


def test_plain_clients_of_everything(mesh: Mesh, name: str) -> None:
    """DDL over REST, rows by a plain Kafka producer, windows by SELECT, notifications by a plain
    WebSocket.
    """
    with httpx.Client(
        base_url=mesh.gateway_url, auth=(mesh.user, mesh.password), timeout=180
    ) as http:

        def sql(text: str) -> list[list[object]]:
            answer = http.post("/rest/sql", content=text).json()
            assert answer["code"] == 0, answer
            rows: list[list[object]] = answer["data"]
            return rows

        sql(f"CREATE DATABASE {name} PARTITIONS 2")
        sql(f"CREATE STABLE {name}.meters (ts TIMESTAMP, volts DOUBLE) TAGS (site VARCHAR(16))")
        sql(
            f"CREATE STREAM {name}.minutely TRIGGER WINDOW_CLOSE INTO {name}.by_minute TAGS (meter VARCHAR(32)) AS "
            f"SELECT _wstart, count(*) AS n, avg(volts) AS volts FROM {name}.meters PARTITION BY tbname AS meter INTERVAL(1m)"
        )
        login = base64.b64encode(f"{mesh.user}:{mesh.password}".encode()).decode()
        with websocket(
            f"{mesh.notifier_url}/ws", additional_headers={"Authorization": f"Basic {login}"}
        ) as subscriber:
            subscriber.send(
                json.dumps(
                    {
                        "action": "subscribe",
                        "id": "a",
                        "stream": f"{name}.minutely",
                        "what": "rows",
                        "from": "latest",
                    }
                )
            )
            assert json.loads(subscriber.recv(60))["type"] == "subscribed"
            registered = http.get(f"/subjects/in.{name}-meters/versions/latest").json()
            schema = fastavro.parse_schema(json.loads(registered["schema"]))
            producer = Producer(
                {**mesh.kafka_client, "partitioner": "murmur2_random", "acks": "all"}
            )
            failures: list[object] = []
            for seconds, volts in ((5, 220.0), (35, 222.0), (65, 100.0)):
                row = {
                    "tbname": "m1",
                    "ts": 1772355600000 + seconds * 1000,
                    "volts": volts,
                    "site": "south",
                }
                body = io.BytesIO()
                fastavro.schemaless_writer(body, schema, {"rows": [row]})
                value = b"\0" + registered["id"].to_bytes(4, "big") + body.getvalue()
                producer.produce(
                    f"in.{name}",
                    key="m1",
                    value=value,
                    on_delivery=lambda error, _: failures.append(error),
                )
            assert producer.flush(60) == 0 and failures == [None] * 3
            update = json.loads(subscriber.recv(60))
            assert [(r["meter"], r["n"], r["volts"]) for r in update["rows"]] == [("m1", 2, 221.0)]
        http.post(f"/v1/drain?db={name}").raise_for_status()
        assert sql(f"SELECT n, volts, meter FROM {name}.by_minute") == [[2, 221.0, "m1"]]
        assert sql(f"SELECT count(*), min(site) FROM {name}.meters") == [[3, "south"]]
        sql(f"DROP STREAM {name}.minutely")
        sql(f"DROP DATABASE {name}")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("service", sorted({r for services in SERVICES.values() for r in services}))
def test_any_one_may_die_under_load(
    mesh: Mesh, client: Connection, name: str, service: str, record_property: Callable[..., None]
) -> None:
    backend = "containers" if isinstance(mesh, RunningStack) else "local"
    if service not in SERVICES[backend]:
        pytest.skip(f"{backend}: there is no {service}")
    with Load(client, name) as load:
        load.wait(lambda: load.newest > 2)
        killed = mesh.kill(service)
        began = time.monotonic()
        acked, told = load.recovery()
        mesh.wait_ready(service, not_pid=killed)
        ready = time.monotonic() - began
        load.recovery()
        load.check()
    record_property("service", service)
    print(
        f"\nkilled {service} ({backend}): acks after {acked:.1f} s, new windows after {told:.1f} s, ready after {ready:.1f} s"
    )
    load.drop()

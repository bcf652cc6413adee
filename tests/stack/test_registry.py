"""confluent-kafka's schema registry client and Avro deserializer, on `in.<db>`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient, SchemaRegistryError
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

import penstock
from penstock.mesh.running import RunningMesh
from tests.stack.conftest import eventually
from tests.stack.names import unique


@pytest.fixture
def registry(mesh: RunningMesh) -> SchemaRegistryClient:
    return SchemaRegistryClient(
        {"url": mesh.gateway_url, "basic.auth.user.info": f"{mesh.user}:{mesh.password}"}
    )


def test_topics_decode_with_the_registry(mesh: RunningMesh, registry: SchemaRegistryClient) -> None:
    name = unique("reg")
    with penstock.connect(mesh.gateway_url, password=mesh.password, database=name) as db:
        check_topic(mesh, registry, db, name)


def check_topic(
    mesh: RunningMesh, registry: SchemaRegistryClient, db: penstock.Connection, name: str
) -> None:
    db.execute(f"CREATE DATABASE {name} PARTITIONS 1")
    db.execute("CREATE STABLE m (ts TIMESTAMP, v DOUBLE, `odd name` INT) TAGS (site VARCHAR(8))")
    subject = f"in.{name}-m"
    assert subject in registry.get_subjects()
    first = registry.get_latest_version(subject)
    assert first.version == 1
    assert registry.get_schema(first.schema_id).schema_type == "AVRO"
    db.write("m", [{"tbname": "d1", "ts": 1_700_000_000_000, "v": 1.5, "odd name": 7, "site": "a"}])
    db.execute("ALTER STABLE m ADD COLUMN w BIGINT")
    assert registry.get_versions(subject) == [1, 2]
    assert registry.get_version(subject, 2).schema_id != first.schema_id
    db.write(
        "m",
        [
            {"tbname": "d1", "ts": 1_700_000_000_001, "v": 2.5, "odd name": None, "w": 2**40},
            {"tbname": "d2", "ts": 5, "v": None},
        ],
    )

    deserialize = AvroDeserializer(registry)
    consumer = Consumer({**mesh.kafka_client, "group.id": unique("g"), "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(f"in.{name}", 0, 0)])
        batches: list[Any] = []
        while sum(len(b["rows"]) for b in batches) < 3:
            (message,) = consumer.consume(1, 20.0)
            value = message.value()
            assert value is not None
            if int.from_bytes(value[1:5], "big") >= 100:
                batches.append(
                    deserialize(value, SerializationContext(f"in.{name}", MessageField.VALUE))
                )
    finally:
        consumer.close()
    # the NULL that the last write names goes ahead of its row
    assert [r["op"] for batch in batches for r in batch["rows"]] == [0, 0, 3, 2]
    rows = [row for batch in batches for row in batch["rows"] if row["op"] != 3]
    odd = "x_" + b"odd name".hex()
    assert [(r["tbname"], r["v"], r[odd], r.get("w"), r["site"]) for r in rows] == [
        ("d1", 1.5, 7, None, "a"),
        ("d1", 2.5, None, 2**40, "a"),
        ("d2", None, None, None, None),
    ]
    assert [sum(b["writes"]) for b in batches] == [len(b["rows"]) for b in batches]


def test_what_is_not_there(registry: SchemaRegistryClient) -> None:
    with pytest.raises(SchemaRegistryError) as missing:
        registry.get_schema(99_999_999)
    assert (missing.value.http_status_code, missing.value.error_code) == (404, 40403)
    with pytest.raises(SchemaRegistryError) as subject:
        registry.get_latest_version("nothing")
    assert subject.value.error_code == 40401


def test_built_in_schemas_and_credentials(
    mesh: RunningMesh, registry: SchemaRegistryClient
) -> None:
    assert json.loads(registry.get_schema(1).schema_str or "")["name"] == "Control"
    with pytest.raises(SchemaRegistryError) as refused:
        SchemaRegistryClient({"url": mesh.gateway_url}).get_subjects()
    assert refused.value.http_status_code == 401


def test_a_publisher_with_confluents_own_serializer(
    mesh: RunningMesh, registry: SchemaRegistryClient
) -> None:
    name = unique("pub")
    with penstock.connect(mesh.gateway_url, password=mesh.password, database=name) as db:
        db.execute(f"CREATE DATABASE {name} PARTITIONS 3")
        db.execute("CREATE STABLE meters (ts TIMESTAMP, power DOUBLE) TAGS (site VARCHAR(16))")
        latest = {
            "auto.register.schemas": False,
            "use.latest.version": True,
            "subject.name.strategy": lambda *_: f"in.{name}-meters",
        }
        encode = AvroSerializer(registry, conf=latest)
        producer = Producer(
            {**mesh.kafka_client, "partitioner": "murmur2_random", "enable.idempotence": True}
        )
        rows = [
            {
                "tbname": "d1",
                "ts": 1_700_000_000_000 + i,
                "op": 0,
                "power": 0.5 * i,
                "site": "north",
            }
            for i in range(100)
        ]
        value = encode(
            {"rows": rows, "writes": [len(rows)]},
            SerializationContext(f"in.{name}", MessageField.VALUE),
        )
        producer.produce(f"in.{name}", key="d1", value=value)
        assert producer.flush(30) == 0
        assert eventually(
            lambda: (
                db.query("SELECT count(*), sum(power), min(site) FROM meters").rows
                == [(100, 2475.0, "north")]
            )
        )
        assert eventually(lambda: db.execute("INSERT INTO d1 (ts, power) VALUES (NOW, 1)")) == 1, (
            "rows made the child known"
        )
        assert db.query("SELECT DISTINCT site FROM meters").rows == [("north",)]

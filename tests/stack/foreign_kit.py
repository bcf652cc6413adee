"""Topics of a Kafka that is not the mesh's."""

from __future__ import annotations

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from penstock.mesh.running import RunningMesh
from tests.stack.names import unique


class Foreign:
    """A topic as somebody else has it: a plain client's view."""

    def __init__(self, mesh: RunningMesh, partitions: int = 2) -> None:
        self.servers = mesh.kafka_bootstrap
        self.name = unique("orders")
        admin = AdminClient({"bootstrap.servers": self.servers})
        admin.create_topics([NewTopic(self.name, partitions, 1)])[self.name].result(20)
        self._producer = Producer({"bootstrap.servers": self.servers})

    def produce(self, *values: bytes | None, partition: int = 0, key: bytes | None = None) -> None:
        for value in values:
            self._producer.produce(self.name, value, key, partition=partition)
        assert self._producer.flush(20) == 0

    def consume(self, count: int) -> list[bytes]:
        """Return that many messages from the beginning; tombstones are empty."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": self.name,
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe([self.name])
        found: list[bytes] = []
        while len(found) < count:
            (message,) = consumer.consume(1, 20)
            found.append(message.value() or b"")
        consumer.close()
        return found

    def clause(self, **more: str) -> str:
        settings = {
            "type": "kafka",
            "brokers": self.servers,
            "topic": self.name,
            "data_format": "JSONEachRow",
            **more,
        }
        return "SETTINGS " + ", ".join(f"{k}='{v}'" for k, v in settings.items())

"""Kafka, typed and small: with `kafka_users` the only part of the shared package that calls
confluent_kafka.

`Publisher` is idempotent, waits for all replicas and hands deliveries back from a thread of its
own. `Reader` reads given partitions from given offsets; consumer groups and commits do not exist
here, because positions are kept beside the state they belong to. `Admin` makes topics, tells where
they end and deletes records. Every failure is a `BusError`.
"""

from penstock.bus.admin import Admin, Cluster, topic_config
from penstock.bus.client_log import LOGGER
from penstock.bus.publisher import Publisher
from penstock.bus.reader import REST_MS, Reader
from penstock.bus.records import (
    BEGINNING,
    END,
    MAX_MESSAGE_BYTES,
    Batch,
    Delivery,
    Offsets,
)
from penstock.bus.security import login, secure

__all__ = [
    "BEGINNING",
    "END",
    "LOGGER",
    "MAX_MESSAGE_BYTES",
    "REST_MS",
    "Admin",
    "Batch",
    "Cluster",
    "Delivery",
    "Offsets",
    "Publisher",
    "Reader",
    "login",
    "secure",
    "topic_config",
]

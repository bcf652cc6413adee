"""`Admin`: topics, their settings and ends, and deletion of old records."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

import tenacity
from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.cimpl import NewTopic

from penstock import names
from penstock.bus.client_log import LOGGER
from penstock.bus.errors import bus_error
from penstock.bus.records import MAX_MESSAGE_BYTES, Offsets
from penstock.bus.security import login
from penstock.errors import BusError

T = TypeVar("T")
_specs: Any = OffsetSpec  # its constructors carry no types
_LATEST = _specs.latest()
_EARLIEST = _specs.earliest()
_RETRY_SECONDS = 0.2
_WEEK_MS = 7 * 86_400_000


@dataclass(frozen=True)
class Cluster:
    """A Kafka: the id that all of its brokers share, and host and port of each."""

    id: str
    brokers: tuple[tuple[str, int], ...]


class Admin:
    """Topics, their ends, and deletion of old records.

    A question that fails for a reason that passes (leaders move; the first answer after a broker
    was away is that its connection broke) is asked again until *timeout* seconds are over.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str = "penstock-admin",
        timeout: float = 15.0,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self._config: dict[str, Any] = {
            **login(bootstrap, options),
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "reconnect.backoff.max.ms": 1000,
            "logger": LOGGER,
        }
        self._admin = AdminClient(self._config)
        self._timeout = timeout

    def topics(self) -> dict[str, int]:
        """Return every topic and its number of partitions."""
        return {name: len(topic.partitions) for name, topic in self._again(self._topics).items()}

    def leader_of(self, topic: str) -> str:
        """Return `host:port` of the broker that leads the topic's first partition. Raises
        BusError.
        """
        return self._again(lambda: self._leader_of(topic))

    def _leader_of(self, topic: str) -> str:
        found = self._metadata("cannot ask for a topic's leader", topic)
        try:
            broker = found.brokers[found.topics[topic].partitions[0].leader]
        except KeyError:
            raise BusError(
                "the topic has no leader at the moment", topic=topic, partition=0, retryable=True
            ) from None
        return f"{broker.host}:{broker.port}"

    def brokers(self) -> int:
        """Count the brokers."""
        return self._again(lambda: len(self._metadata("cannot list brokers").brokers))

    def cluster(self) -> Cluster:
        """Ask for the id of the cluster, and where its brokers say they are. Raises BusError."""
        found = self._again(lambda: self._metadata("cannot ask for the cluster"))
        return Cluster(
            str(found.cluster_id or ""),
            tuple((str(b.host), int(b.port)) for b in found.brokers.values()),
        )

    def _topics(self) -> dict[str, Any]:
        return {
            name: topic
            for name, topic in self._metadata("cannot list topics").topics.items()
            if topic.error is None
        }

    def _metadata(self, message: str, topic: str = "") -> Any:
        """Ask for the brokers and topics as one broker knows them. Raises BusError with
        *message*.
        """
        try:
            return self._admin.list_topics(topic or None, timeout=self._timeout)
        except KafkaException as error:
            raise bus_error(error, message, topic=topic) from None

    def _again(self, ask: Callable[[], T]) -> T:
        """Call *ask* until it returns or *timeout* seconds are over. Raises what it raised last.

        librdkafka may have forgotten the only broker for good, when that was fenced for a moment;
        so whoever asks next does it with a new client.
        """
        attempts = tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda e: isinstance(e, BusError) and e.retryable),
            wait=tenacity.wait_fixed(_RETRY_SECONDS),
            stop=tenacity.stop_after_delay(self._timeout),
            reraise=True,
        )
        try:
            return attempts(ask)
        except BusError as error:
            if error.retryable:
                self._admin = AdminClient(self._config)
            raise

    def ensure_topics(self, topics: Mapping[str, int], replication: int = -1) -> None:
        """Make the topics that do not exist yet, with the settings their names call for, and wait
        until they can be used.

        Raises:
            BusError: Kafka refuses, or one exists with another number of partitions.
        """
        known = self.topics()
        missing = {t: n for t, n in topics.items() if t not in known}
        if missing:
            created = self._admin.create_topics(
                [NewTopic(t, n, replication, config=topic_config(t)) for t, n in missing.items()],
                operation_timeout=self._timeout,
            )
            for topic, future in created.items():
                self._wait(
                    future,
                    "cannot create the topic",
                    topic,
                    allow=(KafkaError.TOPIC_ALREADY_EXISTS,),
                )
            self._wait_usable(missing)
            known = self.topics()
        for topic, partitions in topics.items():
            if known.get(topic) != partitions:
                raise BusError(
                    f"topic {topic} has {known.get(topic)} partitions, not {partitions}",
                    code="E_TOPIC_PARTITIONS",
                    topic=topic,
                )

    def set_flush(self, topic: str, records: int | None) -> None:
        """Have the broker sync a topic's log to disk each so many records, before it acks them,
        or (None) as it does by itself.
        """
        way = AlterConfigOpType.DELETE if records is None else AlterConfigOpType.SET
        entry = ConfigEntry("flush.messages", str(records or ""), incremental_operation=way)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        for future in self._admin.incremental_alter_configs(
            [resource], request_timeout=self._timeout
        ).values():
            self._wait(future, "cannot set how the topic is synced", topic)

    def _wait_usable(self, topics: Mapping[str, int]) -> None:
        """Wait until each partition answers where it ends: a new topic is known before it has
        leaders.
        """
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                found = self._topics()
                if all(t in found and _has_leaders(found[t]) for t in topics):
                    self.end_offsets((t, p) for t, n in topics.items() for p in range(n))
                    return
            except BusError as error:
                LOGGER.debug("a new topic is not ready yet: %s", error)
            if time.monotonic() > deadline:
                raise BusError(
                    "new topics do not get ready", detail=", ".join(sorted(topics)), retryable=True
                )
            self._admin.poll(0.02)

    def delete_topics(self, topics: Iterable[str]) -> None:
        """Delete topics and wait until they are gone; one that does not exist is no error."""
        if not (wanted := list(topics)):
            return
        for topic, future in self._admin.delete_topics(
            wanted, operation_timeout=self._timeout
        ).items():
            self._wait(
                future, "cannot delete the topic", topic, allow=(KafkaError.UNKNOWN_TOPIC_OR_PART,)
            )
        deadline = time.monotonic() + self._timeout
        while left := self.topics().keys() & set(wanted):
            if time.monotonic() > deadline:
                raise BusError(
                    "deleted topics are still there", detail=", ".join(sorted(left)), retryable=True
                )
            self._admin.poll(_RETRY_SECONDS)

    def delete_records(self, before: Offsets) -> None:
        """Delete the records of each partition below the offset given."""
        if not before:
            return
        for at, future in self._admin.delete_records(
            [TopicPartition(t, p, o) for (t, p), o in before.items()]
        ).items():
            self._wait(future, "cannot delete records", at.topic, at.partition)

    def end_offsets(
        self, partitions: Iterable[tuple[str, int]], *, committed: bool = False
    ) -> dict[tuple[str, int], int]:
        """Return the offset the next record of each partition gets (with *committed*, up to where
        transactions are decided).
        """
        return self._list(partitions, _LATEST, committed)

    def start_offsets(self, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """Return the oldest offset each partition still has."""
        return self._list(partitions, _EARLIEST, False)

    def offsets_at(
        self, partitions: Iterable[tuple[str, int]], timestamp: int
    ) -> dict[tuple[str, int], int]:
        """Return the offset of the first record appended at or after *timestamp* (ms) in each
        partition; -1 where there is none.
        """
        return self._list(partitions, OffsetSpec.for_timestamp(timestamp), False)

    def _list(
        self, partitions: Iterable[tuple[str, int]], spec: Any, committed: bool
    ) -> dict[tuple[str, int], int]:
        wanted = {TopicPartition(t, p): spec for t, p in partitions}
        if not wanted:
            return {}
        return self._again(lambda: self._list_once(wanted, committed))

    def _list_once(
        self, wanted: dict[TopicPartition, Any], committed: bool
    ) -> dict[tuple[str, int], int]:
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        found = self._admin.list_offsets(
            wanted, isolation_level=level, request_timeout=self._timeout
        )
        try:
            return {
                (a.topic, a.partition): self._wait(
                    f, "cannot ask for offsets", a.topic, a.partition
                ).offset
                for a, f in found.items()
            }
        except BusError:
            # librdkafka asks with the leader epoch it knows, and would not learn the new one from a
            # refusal
            with contextlib.suppress(BusError):
                self._topics()
            raise

    def _wait(
        self,
        future: Future[Any],
        message: str,
        topic: str,
        partition: int = -1,
        allow: tuple[int, ...] = (),
    ) -> Any:
        try:
            return future.result(self._timeout + 5)
        except KafkaException as error:
            if error.args[0].code() in allow:
                return None
            raise bus_error(error, message, topic=topic, partition=partition) from None
        except TimeoutError as error:
            raise BusError(
                message, detail="no answer in time", topic=topic, retryable=True
            ) from error


def _has_leaders(topic: Any) -> bool:
    return all(partition.leader >= 0 for partition in topic.partitions.values())


def topic_config(topic: str) -> dict[str, str]:
    """Return the settings of a topic of ours by its name. Kafka itself never deletes rows: the
    store does it when they are safe.
    """
    config = {"compression.type": "producer", "max.message.bytes": str(MAX_MESSAGE_BYTES)}
    if topic in (names.CATALOG, names.NOTIFIER_CURSORS):
        return config | {"cleanup.policy": "compact"}
    keep = -1 if names.is_ingest_topic(topic) or topic == names.EPOCHS else _WEEK_MS
    config |= {"cleanup.policy": "delete", "retention.ms": str(keep), "retention.bytes": "-1"}
    return config | {"message.timestamp.type": "LogAppendTime"}

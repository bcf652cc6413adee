"""Kafka, typed and small: with `kafka_users` the only file of the shared package that calls
confluent_kafka.

`Publisher` is idempotent, waits for all replicas and hands deliveries back from a thread of its
own. `Reader` reads given partitions from given offsets; consumer groups and commits do not exist
here, because positions are kept beside the state they belong to. `Admin` makes topics, tells where
they end and deletes records. Every failure is a `BusError`.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import tenacity
from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.cimpl import NewTopic

from penstock import names, vital
from penstock.errors import BusError

#: where librdkafka's own lines go instead of stderr
LOGGER = logging.getLogger("penstock.kafka")
T = TypeVar("T")
#: (topic, partition) → offset
Offsets = Mapping[tuple[str, int], int]
BEGINNING = -2
END = -1
MAX_MESSAGE_BYTES = 8 << 20
_specs: Any = OffsetSpec  # its constructors carry no types
_LATEST = _specs.latest()
_EARLIEST = _specs.earliest()
_RETRY_SECONDS = 0.2
#: how long brokers may differ about a topic that was just made
_PROPAGATION_SECONDS = 5
_WEEK_MS = 7 * 86_400_000


#: how this process speaks to brokers, by the addresses given to clients; "": to all others. See
#: `secure`
_security: dict[str, Mapping[str, str]] = {}


def secure(options: Mapping[str, str], bootstrap: str = "") -> None:
    """Have every client that this process makes from now on use *options*
    (`Settings.kafka_options`): one mesh has one Kafka.

    Args:
        bootstrap: only clients of these brokers: for a process that speaks to several meshes.
    """
    _security[bootstrap] = dict(options)


def login(bootstrap: str, options: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Return how to speak to the brokers at *bootstrap*: *options* of a client of another Kafka,
    else what `secure` was told.
    """
    return options if options is not None else _security.get(bootstrap, _security.get("", {}))


@dataclass(frozen=True)
class Delivery:
    """Where a record was written. `timestamp` is milliseconds, the broker's append time where the
    topic says so.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int


@dataclass(frozen=True)
class Batch:
    """Consecutive records of one partition as they were read; the four lists are of one length."""

    topic: str
    partition: int
    offsets: npt.NDArray[np.int64]
    timestamps: npt.NDArray[np.int64]
    keys: list[bytes | None]
    values: list[bytes | None]

    def __len__(self) -> int:
        return len(self.values)

    @property
    def next_offset(self) -> int:
        return int(self.offsets[-1]) + 1


def _error(
    error: KafkaError | BaseException,
    message: str,
    *,
    topic: str = "",
    partition: int = -1,
    offset: int = -1,
) -> BusError:
    if isinstance(error, KafkaException) and error.args:
        error = error.args[0]
    if not isinstance(error, KafkaError):
        return BusError(message, detail=str(error), topic=topic, partition=partition, offset=offset)
    fenced = error.name() in ("_FENCED", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED")
    code = "E_FENCED" if fenced else "E_BUS"
    retryable = not fenced and (error.retriable() or error.name() in _TRANSIENT)
    return BusError(
        message,
        code=code,
        detail=f"{error.name()}: {error.str()}",
        topic=topic,
        partition=partition,
        offset=offset,
        retryable=retryable,
    )


#: librdkafka's names of what befalls records that wait when the producer fails for good
_PURGED = {"_PURGE_QUEUE", "_PURGE_INFLIGHT", "_FATAL"}
#: librdkafka's names of errors that pass
_TRANSIENT = {
    "_TRANSPORT",
    "_ALL_BROKERS_DOWN",
    "_TIMED_OUT",
    "_MSG_TIMED_OUT",
    "_QUEUE_FULL",
    "_RESOLVE",
    "_NOENT",
    "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_FOR_PARTITION",
    "REQUEST_TIMED_OUT",
    "FENCED_LEADER_EPOCH",
    "UNKNOWN_LEADER_EPOCH",
    "OFFSET_NOT_AVAILABLE",
    "BROKER_NOT_AVAILABLE",
}


@dataclass(frozen=True)
class Cluster:
    """A Kafka: the id that all of its brokers share, and host and port of each."""

    id: str
    brokers: tuple[tuple[str, int], ...]


class Publisher:
    """An idempotent producer; safe to call from many threads.

    Deliveries (callbacks and futures) come from the publisher's own thread: they must not block it.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str,
        linger_ms: float = 0.0,
        told_ms: float = 0.0,
        timeout: float = 30.0,
        compression: str = "lz4",
        transactional_id: str | None = None,
        max_bytes: int = MAX_MESSAGE_BYTES,
        queue_bytes: int = 256 << 20,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """
        Arguments that need a word:
            linger_ms: how long a record may wait for others to share its request.
            told_ms: how far apart deliveries are told, all that there are at once: each telling
                wakes a thread.
            timeout: seconds after which a record that is not acknowledged has failed, and how long
                `send` waits for room.
            transactional_id: makes `fence` and `transaction` possible.
            queue_bytes: most bytes waiting to be sent; then `send` blocks (back-pressure).
        """
        config: dict[str, Any] = {
            **login(bootstrap, options),
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "enable.idempotence": True,
            "acks": "all",
            "compression.type": compression,
            "linger.ms": linger_ms,
            "partitioner": "murmur2_random",
            "message.max.bytes": max_bytes,
            "delivery.timeout.ms": int(timeout * 1000),
            "queue.buffering.max.kbytes": queue_bytes >> 10,
            "queue.buffering.max.messages": 2_000_000,
            "topic.metadata.propagation.max.ms": _PROPAGATION_SECONDS * 1000,
            "socket.nagle.disable": True,
            "reconnect.backoff.max.ms": 1000,
            "error_cb": self._on_error,
            "logger": LOGGER,
        }
        if transactional_id is not None:
            config |= {
                "transactional.id": transactional_id,
                "transaction.timeout.ms": 10_000,
                "delivery.timeout.ms": 10_000,
            }
        self._timeout = timeout
        self._apart = told_ms / 1000
        self._fatal: BusError | None = None
        self._producer = Producer(config)
        self._closing = threading.Event()
        self._thread = threading.Thread(
            target=self._poll, name=f"publisher-{client_id}", daemon=True
        )
        self._thread.start()

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int = -1,
        on_delivery: Callable[[Delivery | BusError], None] | None = None,
    ) -> None:
        """Queue one record; waits while the queue is full.

        Arguments that need a word:
            partition: -1: by murmur2 of *key*.
            on_delivery: told in the end where the record went or why it did not.

        Raises:
            BusError: the queue stayed full, the record is too large, or the producer is dead.
        """

        def report(error: KafkaError | None, message: Message) -> None:
            assert on_delivery is not None
            result = _delivery(error, message)
            if error is not None and error.name() in _PURGED and self._fatal is not None:
                result = BusError(
                    "the record was not written",
                    code=self._fatal.code,
                    detail=self._fatal.detail,
                    topic=result.topic,
                    partition=result.partition,
                )
            on_delivery(result)

        begun = time.monotonic()
        while True:
            if self._fatal is not None:
                raise self._fatal
            try:
                self._producer.produce(
                    topic, value, key, partition, report if on_delivery is not None else None
                )
                return
            except BufferError as full:
                if time.monotonic() > begun + self._timeout:
                    raise BusError(
                        "the queue to Kafka stays full",
                        detail=str(full),
                        topic=topic,
                        retryable=True,
                    ) from None
                self._serve(self._producer.poll, 0.05)
            except KafkaException as error:
                if error.args[0].name() == "_FATAL":
                    self._serve(self._producer.poll, 0.0)
                    if self._fatal is not None:
                        continue
                if (
                    error.args[0].name() != "_UNKNOWN_PARTITION"
                    or time.monotonic() > begun + _PROPAGATION_SECONDS
                ):
                    raise _error(
                        error, "Kafka refuses the record", topic=topic, partition=partition
                    ) from None
                # the topic was made again with more partitions than it had when the producer last
                # asked
                self._ask_for(topic)

    def _ask_for(self, topic: str) -> None:
        try:
            self._producer.list_topics(topic, self._timeout)
        except KafkaException as error:
            raise _error(error, "cannot ask for the topic", topic=topic) from None
        self._serve(self._producer.poll, _RETRY_SECONDS)

    def publish(
        self, topic: str, value: bytes | None, *, key: bytes | None = None, partition: int = -1
    ) -> Future[Delivery]:
        """Like `send`, with a future that holds the delivery or raises its BusError."""
        future: Future[Delivery] = Future()

        def report(result: Delivery | BusError) -> None:
            if not future.set_running_or_notify_cancel():
                return  # nobody waits any more
            if isinstance(result, BusError):
                future.set_exception(result)
            else:
                future.set_result(result)

        self.send(topic, value, key=key, partition=partition, on_delivery=report)
        return future

    def flush(self, timeout: float = 30.0) -> None:
        """Wait until all that was sent is acknowledged or failed.

        Raises:
            BusError: records are still under way after *timeout* seconds.
        """
        if left := self._serve(self._producer.flush, timeout):
            raise BusError(
                f"{left} records are not acknowledged after {timeout:g} s", retryable=True
            )

    def fence(self) -> None:
        """Shut out every earlier producer of the same transactional id."""
        try:
            self._producer.init_transactions(self._timeout)
        except KafkaException as error:
            raise self._broken(error, "cannot begin as a transactional producer") from None

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """What is sent inside is readable for `committed` readers wholly or not at all.

        Raises:
            BusError: it was not committed (`E_FENCED`: another producer has taken over).
        """
        try:
            self._producer.begin_transaction()
            yield
            self._producer.commit_transaction(self._timeout)
        except BaseException as error:
            with contextlib.suppress(KafkaException):
                self._producer.abort_transaction(self._timeout)
            if isinstance(error, KafkaException):
                raise self._broken(error, "the transaction was not committed") from None
            raise

    def _broken(self, error: KafkaException, message: str) -> BusError:
        found = _error(error, message)
        if found.code == "E_FENCED":
            self._fatal = found
        return found

    def close(self, timeout: float = 10.0) -> None:
        """Send what is queued (at most *timeout* seconds) and stop."""
        if self._closing.is_set():
            return
        self._serve(self._producer.flush, timeout)
        self._closing.set()
        self._thread.join()
        if self._fatal is None:
            self._producer.close()

    def __enter__(self) -> Publisher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @vital.run
    def _poll(self) -> None:
        while not self._closing.is_set():
            if self._serve(self._producer.poll, 0.1) and self._apart:
                self._closing.wait(self._apart)

    def _serve(self, call: Callable[[float], int], seconds: float) -> int:
        """Tell deliveries by *call*, which polls or flushes, and return its count.

        The first call after a fatal error raises it, once. What waited is told to have failed by
        the next one.
        """
        try:
            return call(seconds)
        except KafkaException as error:
            self._fatal = _error(error, "the producer cannot go on")
            return call(seconds)

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self._fatal = _error(error, "the producer cannot go on")


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Without Python's garbage collector: it would look through the messages that are there for
    every 700 more, which takes as long as all the rest of reading. They are gone by the end,
    without it.
    """
    if not gc.isenabled():  # another thread is reading
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _where(message: Message) -> tuple[str, int]:
    partition = message.partition()
    return message.topic() or "", -1 if partition is None else partition


def _delivery(error: KafkaError | None, message: Message) -> Delivery | BusError:
    topic, partition = _where(message)
    if error is not None:
        return _error(error, "the record was not written", topic=topic, partition=partition)
    offset = message.offset()
    assert offset is not None
    return Delivery(topic, partition, offset, message.timestamp()[1])


class Reader:
    """Reads the partitions it was given, from the offsets it was given. One thread at a time."""

    def __init__(
        self,
        bootstrap: str,
        offsets: Offsets,
        *,
        client_id: str,
        committed: bool = False,
        ends: bool = False,
        max_wait_ms: int = 100,
        queue_bytes: int = 64 << 20,
        queue_records: int = 100_000,
        max_bytes: int = MAX_MESSAGE_BYTES,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """
        Arguments that need a word:
            queue_records: with that many of a partition waiting to be read it fetches no more of
                it.
            offsets: where to begin; `BEGINNING` and `END` are allowed.
            committed: skip records of transactions that were not committed.
            ends: keep `at_end` up to date; `read` then also returns, with nothing, when an end is
                reached.
            max_wait_ms: how long the broker may hold a fetch that finds nothing (new records end
                the wait at once).
        """
        config: dict[str, Any] = {
            **login(bootstrap, options),
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "group.id": client_id,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": max_wait_ms,
            "fetch.min.bytes": 1,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "queued.max.messages.kbytes": queue_bytes >> 10,
            "queued.min.messages": queue_records,
            "fetch.max.bytes": max(50 << 20, max_bytes),
            "message.max.bytes": max_bytes,
            "fetch.error.backoff.ms": 50,
            "fetch.queue.backoff.ms": 10,
            "socket.nagle.disable": True,
            "reconnect.backoff.max.ms": 1000,
            "check.crcs": True,
            "enable.partition.eof": ends,
            "error_cb": self._on_error,
            "logger": LOGGER,
        }
        self._fatal: BusError | None = None
        #: partitions read to the end they had when their last record was read, and that end
        self.at_end: dict[tuple[str, int], int] = {}
        self._consumer = Consumer(config)
        self.add(offsets)

    def add(self, offsets: Offsets) -> None:
        """Read these partitions too."""
        if offsets:
            self._consumer.incremental_assign(
                [TopicPartition(t, p, o) for (t, p), o in offsets.items()]
            )

    def remove(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Read these partitions no longer."""
        self._consumer.incremental_unassign([TopicPartition(t, p) for t, p in partitions])

    def pause(self, partitions: Iterable[tuple[str, int]]) -> None:
        self._consumer.pause([TopicPartition(t, p) for t, p in partitions])

    def resume(self, partitions: Iterable[tuple[str, int]]) -> None:
        self._consumer.resume([TopicPartition(t, p) for t, p in partitions])

    def seek(self, topic: str, partition: int, offset: int) -> None:
        try:
            self._consumer.seek(TopicPartition(topic, partition, offset))
        except KafkaException as error:
            raise _error(
                error, "cannot seek", topic=topic, partition=partition, offset=offset
            ) from None

    def read(self, max_records: int = 10_000, timeout: float = 1.0) -> list[Batch]:
        """What has arrived, one batch a partition; waits at most *timeout* seconds for the first
        record and never for more.

        Raises:
            BusError: `E_OFFSET_GONE` when an offset asked for no longer exists, else when a
                partition cannot be read.
        """
        if self._fatal is not None:
            raise self._fatal
        first = self._consumer.poll(timeout)
        if first is None:
            return []
        with _uncollected():
            return self._batches(first, max_records - 1)

    def _batches(self, first: Message, more: int) -> list[Batch]:
        """*first*, and *more* at most of what is there, by partition; over the records only C
        loops.
        """
        messages = [first, *self._consumer.consume(more, 0)] if more else [first]
        errors = list(map(Message.error, messages))
        told = (
            [
                (error, message)
                for error, message in zip(errors, messages, strict=True)
                if error is not None
            ]
            if any(errors)
            else []
        )
        if told:
            messages = [m for m, error in zip(messages, errors, strict=True) if error is None]
        found: dict[tuple[str | None, int | None], list[Message]] = {}
        start = 0
        for where, run in groupby(
            zip(map(Message.topic, messages), map(Message.partition, messages), strict=True)
        ):
            stop = start + len(list(run))
            found.setdefault(where, []).extend(messages[start:stop])
            start = stop
        batches = [
            Batch(
                *_where(part[0]),
                np.fromiter(map(Message.offset, part), np.int64, len(part)),
                np.fromiter(map(itemgetter(1), map(Message.timestamp, part)), np.int64, len(part)),
                list(map(Message.key, part)),
                list(map(Message.value, part)),
            )
            for part in found.values()
        ]
        for batch in batches:
            self.at_end.pop((batch.topic, batch.partition), None)
        for error, message in told:
            self._refuse(error, message)
        for batch in batches:  # more came behind an end
            if (
                self.at_end.get((batch.topic, batch.partition), batch.next_offset)
                < batch.next_offset
            ):
                del self.at_end[batch.topic, batch.partition]
        return batches

    def _refuse(self, error: KafkaError, message: Message) -> None:
        topic, partition = _where(message)
        if error.name() == "_PARTITION_EOF":
            self.at_end[topic, partition] = int(message.offset() or 0)
            return
        if error.retriable() or error.name() in _TRANSIENT:
            return  # librdkafka tries again by itself
        if error.name() in ("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"):
            raise BusError(
                "the offset asked for is not in the log",
                code="E_OFFSET_GONE",
                detail=error.str(),
                topic=topic,
                partition=partition,
            )
        raise _error(error, "cannot read", topic=topic, partition=partition)

    def close(self) -> None:
        self._consumer.close()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self._fatal = _error(error, "the reader cannot go on")


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
        config: dict[str, Any] = {
            **login(bootstrap, options),
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "reconnect.backoff.max.ms": 1000,
            "logger": LOGGER,
        }
        self._admin = AdminClient(config)
        self._timeout = timeout

    def topics(self) -> dict[str, int]:
        """Every topic and its number of partitions."""
        return {name: len(topic.partitions) for name, topic in self._again(self._topics).items()}

    def leader_of(self, topic: str) -> str:
        """`host:port` of the broker that leads the topic's first partition. Raises BusError."""
        return self._again(lambda: self._leader_of(topic))

    def _leader_of(self, topic: str) -> str:
        found = self._described("cannot ask for a topic's leader", topic)
        try:
            broker = found.brokers[found.topics[topic].partitions[0].leader]
        except KeyError:
            raise BusError(
                "the topic has no leader at the moment", topic=topic, partition=0, retryable=True
            ) from None
        return f"{broker.host}:{broker.port}"

    def brokers(self) -> int:
        """How many brokers there are."""
        return self._again(lambda: len(self._described("cannot list brokers").brokers))

    def cluster(self) -> Cluster:
        """The id of the cluster, and where its brokers say they are. Raises BusError."""
        found = self._again(lambda: self._described("cannot ask for the cluster"))
        return Cluster(
            str(found.cluster_id or ""),
            tuple((str(b.host), int(b.port)) for b in found.brokers.values()),
        )

    def _topics(self) -> dict[str, Any]:
        return {
            name: topic
            for name, topic in self._described("cannot list topics").topics.items()
            if topic.error is None
        }

    def _described(self, message: str, topic: str = "") -> Any:
        """The brokers and topics as one broker knows them. Raises BusError with *message*."""
        try:
            return self._admin.list_topics(topic or None, timeout=self._timeout)
        except KafkaException as error:
            raise _error(error, message, topic=topic) from None

    def _again(self, ask: Callable[[], T]) -> T:
        """What *ask* returns, asked until it does or *timeout* seconds are over. Raises what it
        raised last.
        """
        attempts = tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda e: isinstance(e, BusError) and e.retryable),
            wait=tenacity.wait_fixed(_RETRY_SECONDS),
            stop=tenacity.stop_after_delay(self._timeout),
            reraise=True,
        )
        return attempts(ask)

    def ensure_topics(self, topics: Mapping[str, int], replication: int = -1) -> None:
        """Make the topics that do not exist yet, with the settings their names call for, and wait
        until they can be used.

        Raises:
            BusError: Kafka refuses, or one exists with another number of partitions.
        """
        known = self.topics()
        missing = {t: n for t, n in topics.items() if t not in known}
        if missing:
            made = self._admin.create_topics(
                [NewTopic(t, n, replication, config=topic_config(t)) for t, n in missing.items()],
                operation_timeout=self._timeout,
            )
            for topic, future in made.items():
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
        """Have the broker sync a topic's log to disk each so many records, before it acks them;
        None: as the broker does by itself.
        """
        way = AlterConfigOpType.DELETE if records is None else AlterConfigOpType.SET
        entry = ConfigEntry("flush.messages", str(records or ""), incremental_operation=way)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        for future in self._admin.incremental_alter_configs(
            [resource], request_timeout=self._timeout
        ).values():
            self._wait(future, "cannot set how the topic is synced", topic)

    def _wait_usable(self, topics: Mapping[str, int]) -> None:
        """A new topic is known before it has leaders; wait until each partition answers where it
        ends.
        """
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                found = self._topics()
                if all(
                    t in found and all(p.leader >= 0 for p in found[t].partitions.values())
                    for t in topics
                ):
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
        """The offset the next record of each partition gets (with *committed*, up to where
        transactions are decided).
        """
        return self._list(partitions, _LATEST, committed)

    def start_offsets(self, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """The oldest offset each partition still has."""
        return self._list(partitions, _EARLIEST, False)

    def offsets_at(
        self, partitions: Iterable[tuple[str, int]], timestamp: int
    ) -> dict[tuple[str, int], int]:
        """The offset of the first record appended at or after *timestamp* (ms) in each partition;
        -1 where there is none.
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
            raise _error(error, message, topic=topic, partition=partition) from None
        except TimeoutError as error:
            raise BusError(
                message, detail="no answer in time", topic=topic, retryable=True
            ) from error


def topic_config(topic: str) -> dict[str, str]:
    """Settings of a topic of ours by its name. Rows are never deleted by Kafka itself: the store
    does it when they are safe.
    """
    config = {"compression.type": "producer", "max.message.bytes": str(MAX_MESSAGE_BYTES)}
    if topic in (names.CATALOG, names.NOTIFIER_CURSORS):
        return config | {"cleanup.policy": "compact"}
    keep = -1 if names.is_ingest_topic(topic) or topic == names.EPOCHS else _WEEK_MS
    config |= {"cleanup.policy": "delete", "retention.ms": str(keep), "retention.bytes": "-1"}
    return config | {"message.timestamp.type": "LogAppendTime"}

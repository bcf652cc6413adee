"""`Publisher`: records into Kafka."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeAlias

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from penstock.bus.client_log import LOGGER
from penstock.bus.errors import bus_error
from penstock.bus.records import MAX_MESSAGE_BYTES, Delivery, topic_partition
from penstock.bus.security import login
from penstock.errors import BusError
from penstock.runtime import vital

Headers: TypeAlias = Sequence[tuple[str, bytes]]
#: seconds for which brokers may differ about a topic that was just made
_PROPAGATION_SECONDS = 5
_RETRY_SECONDS = 0.2
#: while no record is under way nobody waits for a delivery, and what befalls the connection is
#: heard of so late
_IDLE_SECONDS = 5.0
#: librdkafka's names of what befalls records that wait when the producer fails for good
_PURGED = {"_PURGE_QUEUE", "_PURGE_INFLIGHT", "_FATAL"}
#: after a record was given up, how long to wait for an answer before a new client is made
_LOOK_SECONDS = 1.0


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
            told_ms: how far apart deliveries are reported, all that there are at once: each report
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
        self._config = config
        #: topic of a record that was given up since the client was looked after
        self._given_up = ""
        self._clients = 0
        self._producer = self._new_client()
        #: clients that found no broker any more, and when they are let go
        self._retired: list[tuple[Producer, float]] = []
        self._closing = threading.Event()
        self._sent = threading.Event()
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
        headers: Headers = (),
        on_delivery: Callable[[Delivery | BusError], None] | None = None,
    ) -> None:
        """Queue one record; waits while the queue is full.

        Arguments that need a word:
            partition: by default chosen by murmur2 of *key*.
            headers: names and values that go with it.
            on_delivery: called in the end with where the record went or why it did not.

        Raises:
            BusError: the queue stayed full, the record is too large, or the producer is dead.
        """

        def report(error: KafkaError | None, message: Message) -> None:
            assert on_delivery is not None
            result = _delivery(error, message)
            if isinstance(result, BusError):
                result = self._failure(error, result)
            on_delivery(result)

        more: dict[str, Any] = {"headers": list(headers)} if headers else {}
        start = time.monotonic()
        while True:
            if self._fatal is not None:
                raise self._fatal
            try:
                self._producer.produce(
                    topic,
                    value,
                    key,
                    partition,
                    report if on_delivery is not None else None,
                    **more,
                )
                if not self._sent.is_set():
                    self._sent.set()
                return
            except BufferError as full:
                if time.monotonic() > start + self._timeout:
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
                    or time.monotonic() > start + _PROPAGATION_SECONDS
                ):
                    raise bus_error(
                        error, "Kafka refuses the record", topic=topic, partition=partition
                    ) from None
                # the topic was made again with more partitions than it had when the producer last
                # asked
                self._ask_for(topic)

    def _failure(self, error: KafkaError | None, found: BusError) -> BusError:
        """Return what is told of a record that failed with *error*, and remember what follows."""
        name = "" if error is None else error.name()
        if name == "_MSG_TIMED_OUT":
            self._given_up = found.topic
        if name not in _PURGED:
            return found
        fatal = self._fatal
        return BusError(
            "the record was not written",
            code="E_BUS" if fatal is None else fatal.code,
            detail="Kafka did not answer" if fatal is None else fatal.detail,
            topic=found.topic,
            partition=found.partition,
            retryable=fatal is None,
        )

    def _ask_for(self, topic: str) -> None:
        try:
            self._producer.list_topics(topic, self._timeout)
        except KafkaException as error:
            raise bus_error(error, "cannot ask for the topic", topic=topic) from None
        self._serve(self._producer.poll, _RETRY_SECONDS)

    def publish(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int = -1,
        headers: Headers = (),
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

        self.send(topic, value, key=key, partition=partition, headers=headers, on_delivery=report)
        return future

    def flush(self, timeout: float = 30.0) -> None:
        """Wait until all that was sent is acknowledged or failed.

        Raises:
            BusError: records are still under way after *timeout* seconds.
        """
        if left := self._flush(timeout):
            raise BusError(
                f"{left} records are not acknowledged after {timeout:g} s", retryable=True
            )

    def _flush(self, timeout: float) -> int:
        until = time.monotonic() + timeout
        left = 0
        # the retired first: a client is among them before another takes its place
        for client, _ in self._retired:
            left += _tell(client.flush, max(until - time.monotonic(), 0.0))
        return left + self._serve(self._producer.flush, max(until - time.monotonic(), 0.0))

    def fence(self) -> None:
        """Shut out every earlier producer of the same transactional id."""
        try:
            self._producer.init_transactions(self._timeout)
        except KafkaException as error:
            raise self._transaction_error(
                error, "cannot begin as a transactional producer"
            ) from None

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Send records that `committed` readers get wholly or not at all.

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
                raise self._transaction_error(error, "the transaction was not committed") from None
            raise

    def _transaction_error(self, error: KafkaException, message: str) -> BusError:
        failure = bus_error(error, message)
        if failure.code == "E_FENCED":
            self._fatal = failure
        return failure

    def close(self, timeout: float = 10.0) -> None:
        """Send what is queued (at most *timeout* seconds) and stop."""
        if self._closing.is_set():
            return
        self._flush(timeout)
        self._closing.set()
        self._sent.set()
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
            # in this order: a record that is sent meanwhile ends the pause
            self._sent.clear()
            if not len(self._producer) and not self._closing.is_set():
                self._sent.wait(_IDLE_SECONDS)
            if self._serve(self._producer.poll, 0.1) and self._apart:
                self._closing.wait(self._apart)
            if self._given_up or self._retired:
                self._look_after_clients()

    def _look_after_clients(self) -> None:
        """After a record was given up, ask for its topic; without an answer, go on with a new
        client.

        librdkafka may have forgotten the only broker for good, when that was fenced for a moment.
        Where the broker is away, a new client does no harm. A transactional producer is not
        replaced: who has one begins anew with another.
        """
        now = time.monotonic()
        topic, self._given_up = self._given_up, ""
        if topic and "transactional.id" not in self._config:
            try:
                self._producer.list_topics(topic, _LOOK_SECONDS)
            except KafkaException:
                client = self._producer
                self._retired.append((client, now + self._timeout))
                self._producer = self._new_client()
                client.purge()
        for client, _ in self._retired:
            _tell(client.poll, 0.0)
        self._retired = [(c, until) for c, until in self._retired if len(c) or now < until]

    def _new_client(self) -> Producer:
        self._clients += 1
        number = self._clients

        def on_error(error: KafkaError) -> None:
            if error.fatal() and number == self._clients:
                self._fatal = bus_error(error, "the producer cannot go on")

        return Producer({**self._config, "error_cb": on_error})

    def _serve(self, call: Callable[[float], int], seconds: float) -> int:
        """Tell deliveries by *call*, which polls or flushes, and return its count.

        The first call after a fatal error raises it, once. What waited is told to have failed by
        the next one.
        """
        try:
            return call(seconds)
        except KafkaException as error:
            self._fatal = bus_error(error, "the producer cannot go on")
            return call(seconds)


def _tell(call: Callable[[float], int], seconds: float) -> int:
    """Tell deliveries of a retired client by *call*; what befalls it matters to nobody."""
    try:
        return call(seconds)
    except KafkaException:
        return call(seconds)


def _delivery(error: KafkaError | None, message: Message) -> Delivery | BusError:
    topic, partition = topic_partition(message)
    if error is not None:
        return bus_error(error, "the record was not written", topic=topic, partition=partition)
    offset = message.offset()
    assert offset is not None
    return Delivery(topic, partition, offset, message.timestamp()[1])

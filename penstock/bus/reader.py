"""`Reader`: records of given partitions, from given offsets on."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from penstock.bus.client_log import LOGGER
from penstock.bus.errors import TRANSIENT, bus_error
from penstock.bus.records import MAX_MESSAGE_BYTES, Batch, Offsets, topic_partition
from penstock.bus.security import login
from penstock.errors import BusError

#: a reader to which nothing comes asks the broker once in so long
REST_MS = 1000
#: a reader to which nothing came for so long looks whether its client still finds the broker
_SILENCE_SECONDS = 10.0
_LOOK_SECONDS = 1.0


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
        max_wait_ms: int = REST_MS,
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
            max_wait_ms: how long the broker may hold a fetch that finds nothing. A new record ends
                the wait at once. A partition that is added, and the word that an end is reached,
                wait for it: who needs those soon asks more often.
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
        self._config = config
        self._starts: dict[tuple[str, int], int] = {}
        self._paused: set[tuple[str, int]] = set()
        self._heard = time.monotonic()
        self._consumer = Consumer(config)
        self.add(offsets)

    def add(self, offsets: Offsets) -> None:
        """Read these partitions too."""
        if offsets:
            self._starts.update(offsets)
            self._find_leaders({topic for (topic, _), offset in offsets.items() if offset < 0})
            self._consumer.incremental_assign(
                [TopicPartition(t, p, o) for (t, p), o in offsets.items()]
            )

    def _find_leaders(self, topics: Iterable[str]) -> None:
        """Have the client know who leads *topics*: one that is to begin at the beginning or the end
        of a log, and does not know whom to ask where that is, tries again after half a second.
        """
        for topic in topics:
            # who cannot tell now is asked by librdkafka, again and again
            with contextlib.suppress(KafkaException):
                self._consumer.get_watermark_offsets(TopicPartition(topic, 0), _LOOK_SECONDS)

    def remove(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Read these partitions no longer."""
        gone = list(partitions)
        for where in gone:
            self._starts.pop(where, None)
            self._paused.discard(where)
        self._consumer.incremental_unassign(_topic_partitions(gone))

    def pause(self, partitions: Iterable[tuple[str, int]]) -> None:
        held = list(partitions)
        self._consumer.pause(_topic_partitions(held))
        self._paused.update(held)

    def resume(self, partitions: Iterable[tuple[str, int]]) -> None:
        free = list(partitions)
        self._consumer.resume(_topic_partitions(free))
        self._paused.difference_update(free)

    def seek(self, topic: str, partition: int, offset: int) -> None:
        try:
            self._consumer.seek(TopicPartition(topic, partition, offset))
        except KafkaException as error:
            raise bus_error(
                error, "cannot seek", topic=topic, partition=partition, offset=offset
            ) from None
        self._starts[topic, partition] = offset

    def read(self, max_records: int = 10_000, timeout: float = 1.0) -> list[Batch]:
        """Return what has arrived, one batch a partition; waits at most *timeout* seconds for the
        first record and never for more.

        Raises:
            BusError: `E_OFFSET_GONE` when an offset asked for no longer exists, else when a
                partition cannot be read.
        """
        if self._fatal is not None:
            raise self._fatal
        first = self._consumer.poll(timeout)
        if first is None:
            self._look_after_client()
            return []
        self._heard = time.monotonic()
        with _without_garbage_collection():
            return self._batches(first, max_records - 1)

    def _batches(self, first: Message, more: int) -> list[Batch]:
        """Return *first*, and *more* at most of what is there, by partition; over the records only
        C loops.
        """
        messages = [first, *self._consumer.consume(more, 0)] if more else [first]
        errors = list(map(Message.error, messages))
        failures: list[tuple[KafkaError, Message]] = []
        if any(errors):
            pairs = list(zip(messages, errors, strict=True))
            failures = [(error, message) for message, error in pairs if error is not None]
            messages = [message for message, error in pairs if error is None]
        batches = [_batch(part) for part in _by_partition(messages)]
        for batch in batches:
            self.at_end.pop((batch.topic, batch.partition), None)
        for error, message in failures:
            self._report(error, message)
        for batch in batches:  # more came behind an end
            where = batch.topic, batch.partition
            if self.at_end.get(where, batch.next_offset) < batch.next_offset:
                del self.at_end[where]
        return batches

    def _report(self, error: KafkaError, message: Message) -> None:
        topic, partition = topic_partition(message)
        if error.name() == "_PARTITION_EOF":
            self.at_end[topic, partition] = int(message.offset() or 0)
            return
        if error.retriable() or error.name() in TRANSIENT:
            return  # librdkafka tries again by itself
        if error.name() in ("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"):
            raise BusError(
                "the offset asked for is not in the log",
                code="E_OFFSET_GONE",
                detail=error.str(),
                topic=topic,
                partition=partition,
            )
        raise bus_error(error, "cannot read", topic=topic, partition=partition)

    def _look_after_client(self) -> None:
        """After a long silence, ask for a topic; without an answer, go on with a new client.

        librdkafka may have forgotten the only broker for good, when that was fenced for a moment.
        Where the broker is away, a new client does no harm.
        """
        now = time.monotonic()
        if now < self._heard + _SILENCE_SECONDS or not self._starts:
            return
        self._heard = now
        topic = next(iter(self._starts))[0]
        try:
            self._consumer.list_topics(topic, _LOOK_SECONDS)
        except KafkaException:
            self._renew_client()

    def _renew_client(self) -> None:
        """Read on with a new client, from where this one is."""
        known = self._consumer.position(_topic_partitions(self._starts))
        positions = {(at.topic, at.partition): at.offset for at in known if at.offset >= 0}
        self._consumer.close()
        self._consumer = Consumer(self._config)
        self.add({**self._starts, **positions})
        if self._paused:
            self._consumer.pause(_topic_partitions(self._paused))

    def close(self) -> None:
        self._consumer.close()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self._fatal = bus_error(error, "the reader cannot go on")


def _topic_partitions(places: Iterable[tuple[str, int]]) -> list[TopicPartition]:
    return [TopicPartition(topic, partition) for topic, partition in places]


@contextlib.contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Switch Python's garbage collector off: it would look through the messages that are there for
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


def _by_partition(messages: list[Message]) -> list[list[Message]]:
    """Split *messages* by topic and partition, in the order in which each first appears."""
    parts: dict[tuple[str | None, int | None], list[Message]] = {}
    start = 0
    for where, run in groupby(
        zip(map(Message.topic, messages), map(Message.partition, messages), strict=True)
    ):
        stop = start + len(list(run))
        parts.setdefault(where, []).extend(messages[start:stop])
        start = stop
    return list(parts.values())


def _batch(part: list[Message]) -> Batch:
    """Make a batch of the messages of one partition."""
    return Batch(
        *topic_partition(part[0]),
        np.fromiter(map(Message.offset, part), np.int64, len(part)),
        np.fromiter(map(itemgetter(1), map(Message.timestamp, part)), np.int64, len(part)),
        list(map(Message.key, part)),
        list(map(Message.value, part)),
    )

"""Targets `kafka://topic`: CloudEvents into a topic of the mesh's own broker, as the CloudEvents
Kafka binding has them in structured mode.

A message is confirmed when all in-sync replicas have all of its events. An event's group is its
key, so the order of a group holds however many partitions the topic has. A topic that does not
exist is made with one.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from penstock.bus import Admin, Publisher
from penstock.errors import BusError
from penstock.outbound.kafka_topic import topic_of
from penstock.outbound.targets import check_topic
from services.notifier.cloud_events import ONE, CloudEvent, cloud_events, trace_headers
from services.notifier.delivery_spans import context_to_tell
from services.notifier.message import NotifyMessage, NotifyTarget
from services.notifier.surroundings import Surroundings
from services.notifier.target_connection import TargetFailed, TargetLimits

_MOST_MESSAGES = 256
_MOST_SIZE = 1 << 20
_PARTITIONS_MADE = 1
_CLOSE_SECONDS = 1.0
_MORE_SECONDS = 5.0


class KafkaTarget:
    """A `TargetConnection`."""

    def __init__(self, target: NotifyTarget, around: Surroundings) -> None:
        self.listed = True
        self.limits = TargetLimits(_MOST_MESSAGES, _MOST_SIZE, around.settings.retry_max)
        self._target = target
        self._around = around
        self._topic = topic_of(target.url)
        self._publisher: Publisher | None = None
        #: events of messages that were not confirmed as a whole, which the topic has
        self._had: set[str] = set()

    async def open(self) -> None:
        allowed = self._around.allowed
        anywhere = self._around.may_be_any_host(self._target)
        check_topic(self._topic, allowed, anywhere=anywhere)
        self.listed = allowed.permits_topic(self._topic)
        try:
            await asyncio.to_thread(self._ensure_topic)
        except BusError as error:
            raise TargetFailed(_reason("the topic cannot be had", error)) from None
        settings = self._around.settings
        self._publisher = Publisher(
            settings.kafka_bootstrap, client_id="notifier-target", timeout=settings.ack_seconds
        )

    def _ensure_topic(self) -> None:
        """Make the topic, if there is none. Raises BusError."""
        settings = self._around.settings
        admin = Admin(
            settings.kafka_bootstrap,
            client_id="notifier-target",
            timeout=settings.connect_seconds,
        )
        if self._topic not in admin.topics():
            admin.ensure_topics({self._topic: _PARTITIONS_MADE})

    async def send(self, messages: Sequence[NotifyMessage]) -> None:
        events = [
            event
            for message in messages
            for event in cloud_events(message, context_to_tell(message, self._target))
        ]
        self._had &= {event.id for event in events}
        for some in _rounds([event for event in events if event.id not in self._had]):
            try:
                await self._write(some)
            except BusError as error:
                raise TargetFailed(_reason("Kafka does not take an event", error)) from None
            self._had.update(event.id for event in some)
        self._had.clear()

    async def _write(self, events: Sequence[CloudEvent]) -> None:
        """Return when all *events* are written. Raises BusError, TimeoutError."""
        assert self._publisher is not None
        sent = [
            self._publisher.publish(
                self._topic, event.text.encode(), key=_key(event), headers=_headers(event)
            )
            for event in events
        ]
        # the publisher gives a record up before this is over
        async with asyncio.timeout(self._around.settings.ack_seconds + _MORE_SECONDS):
            await asyncio.gather(*map(asyncio.wrap_future, sent))

    async def close(self) -> None:
        publisher, self._publisher = self._publisher, None
        if publisher is not None:
            await asyncio.to_thread(publisher.close, _CLOSE_SECONDS)


def _rounds(events: Sequence[CloudEvent]) -> list[list[CloudEvent]]:
    """Part *events* so that none is written before all earlier ones of its key are: of two that
    are on their way at once, Kafka may lose the first and take the second.
    """
    rounds: list[list[CloudEvent]] = []
    seen: Counter[bytes] = Counter()
    for event in events:
        number = seen[_key(event)]
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(event)
        seen[_key(event)] += 1
    return rounds


def _key(event: CloudEvent) -> bytes:
    """Return the key of an event's record: its group or, where there is none, its stream."""
    return event.attributes.get("partitionkey", event.attributes["source"]).encode()


def _headers(event: CloudEvent) -> list[tuple[str, bytes]]:
    """Return the headers of structured mode, with the attributes, so that a reader may choose
    without parsing values, and the one that libraries go on from in a trace.
    """
    attributes = [(f"ce_{name}", value.encode()) for name, value in event.attributes.items()]
    traced = [(name, value.encode()) for name, value in trace_headers([event])]
    return [("content-type", ONE.encode()), *traced, *attributes]


def _reason(what: str, error: BusError) -> str:
    """Say what went wrong: the library's words have names of errors and brokers, and no values."""
    return f"{what}: {error.detail or error.message}"

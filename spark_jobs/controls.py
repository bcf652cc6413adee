"""Control records the driver sends by itself: ticks where streams need processing time, `stream_on`
again where it got lost, quotas.

A tick is data: it takes effect at its offset, so a replay repeats what happened. A stream that a
partition has not reported (its control was never written, or Redis has lost the report) is
announced again; a processor that has it already only reports. With a manual clock nobody ticks.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Iterable, Mapping

import redis

from penstock import names
from penstock.bus import Publisher
from penstock.catalog.model import StreamEntry
from penstock.catalog.reader import CatalogReader
from penstock.catalog.view import Catalog
from penstock.errors import PenstockError
from penstock.records import ControlRecord, encode
from penstock.runtime import log, vital
from penstock.runtime.clock import Clock, milliseconds
from penstock.sql.announcement import announced
from penstock.sql.plan import needs_ticks
from spark_jobs.quotas import Quotas
from spark_jobs.tick_throttle import TickThrottle

#: how often quotas are looked at: processors report with their snapshots
_MIND_SECONDS = 1.0

_log = log.get(__name__)


def topics_to_tick(catalog: Catalog) -> dict[str, int]:
    """Topics, with their partitions, that carry a stream in need of processing time."""
    found: dict[str, int] = {}
    for stream in catalog.streams():
        if stream.status == "running" and needs_ticks(stream.plan):
            found |= catalog.source_topics(stream.plan)
    return found


def topics_with_ticks(catalog: Catalog) -> set[str]:
    """Topics to which ticks come: those that are ticked, and the exchange if one of their streams
    computes behind it.
    """
    ticked = set(topics_to_tick(catalog))
    behind = any(s.plan.path == "exchange" and needs_ticks(s.plan) for s in catalog.streams())
    return ticked | {names.EXCHANGE} if ticked and behind else ticked


def find_missing(
    stream: StreamEntry, topics: Mapping[str, int], reported: Iterable[str]
) -> list[tuple[str, int]]:
    """Return the source partitions (topic, number) to which a stream has to be announced again."""
    fields = set(reported)
    known = fields | {
        f.partition(":")[2] for f in fields if f.startswith((names.FAILED, names.FILLING))
    }
    lost = [(t, p) for t, n in topics.items() for p in range(n) if f"{t}:{p}" not in known]
    if lost or not topics or stream.plan.path != "exchange":
        return lost
    behind = {f"{names.EXCHANGE}:{q}" for q in range(names.BUILT_IN_TOPICS[names.EXCHANGE])}
    # any scan partition passes it on to all of the exchange
    return [(next(iter(topics)), 0)] if behind - known else []


class Controls(threading.Thread):
    """Runs until `stop`."""

    def __init__(
        self,
        catalog: CatalogReader,
        client: redis.Redis,
        publisher: Publisher,
        clock: Clock,
        *,
        tick_seconds: float,
        grace_seconds: float,
        snapshot_seconds: float,
        ticking: bool,
    ) -> None:
        super().__init__(name="controls", daemon=True)
        self._catalog = catalog
        self._redis = client
        self._publisher = publisher
        self._clock = clock
        self._tick_seconds = tick_seconds
        self._grace = grace_seconds
        self._ticks = ticking
        self._absent: dict[int, float] = {}
        self._quotas = Quotas(client, self._send)
        self._throttle = TickThrottle(snapshot_seconds)
        self._halt = threading.Event()

    def stop(self) -> None:
        self._halt.set()

    @vital.run
    def run(self) -> None:
        tick_at = announce_at = mind_at = 0.0
        if not self._ticks:
            tick_at = math.inf
        while not self._halt.is_set():
            now = self._clock.monotonic()
            try:
                if now >= tick_at:
                    tick_at = now + self._tick_seconds
                    self._tick(now)
                if now >= announce_at:
                    announce_at = now + min(self._grace / 4, 5.0)
                    self._announce(now)
                if now >= mind_at:
                    mind_at = now + _MIND_SECONDS
                    self._quotas.mind(self._catalog.catalog, now)
            except (PenstockError, redis.RedisError) as error:
                _log.warning("controls not sent", error=str(error))
            self._halt.wait(min(tick_at, announce_at, mind_at) - now)

    def _send(self, stream: StreamEntry, control: ControlRecord) -> None:
        value = encode(control)
        for topic, partitions in self._catalog.catalog.source_topics(stream.plan).items():
            for partition in range(partitions):
                self._publisher.send(topic, value, partition=partition)

    def _tick(self, now: float) -> None:
        value = encode(ControlRecord("tick", time=milliseconds(self._clock)))
        topics = topics_to_tick(self._catalog.catalog)
        self._throttle.keep(topics)
        for topic, partitions in topics.items():
            positions = self._positions(topic)
            for place in ((topic, partition) for partition in range(partitions)):
                if self._throttle.allows(place, positions.get(place[1]), now):
                    self._publisher.send(
                        topic,
                        value,
                        partition=place[1],
                        on_delivery=functools.partial(self._throttle.note_delivery, place, now),
                    )

    def _positions(self, topic: str) -> dict[int, int]:
        """How far the processors of a topic are, as far as that is known: time goes on without
        Redis.
        """
        try:
            said = self._redis.hgetall(names.query_progress(topic))
        except redis.RedisError:
            return {}
        return {int(field): int(value) for field, value in said.items() if str(field).isdigit()}

    def _announce(self, now: float) -> None:
        catalog = self._catalog.catalog
        streams = [
            (stream, topics)
            for stream in catalog.streams()
            if stream.status != "failed" and (topics := catalog.source_topics(stream.plan))
        ]
        with self._redis.pipeline(transaction=False) as pipe:
            for stream, _ in streams:
                pipe.hkeys(names.stream_status(stream.id))
            reported = pipe.execute()
        for (stream, topics), fields in zip(streams, reported, strict=True):
            lost = find_missing(stream, topics, map(str, fields))
            if not lost:
                self._absent.pop(stream.id, None)
                continue
            if now - self._absent.setdefault(stream.id, now) < self._grace:
                continue
            self._absent[stream.id] = now
            _log.warning("announcing a stream again", stream=stream.name, partitions=lost)
            value = encode(
                ControlRecord("stream_on", stream=stream.id, body=announced(stream.plan))
            )
            for topic, partition in lost:
                self._publisher.send(topic, value, partition=partition)

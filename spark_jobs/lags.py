"""How far queries are behind: measured from Kafka's ends and the positions that workers report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import redis
from prometheus_client import CollectorRegistry, Counter, Gauge

from penstock import names
from penstock.bus import Admin
from penstock.catalog.reader import CatalogReader
from penstock.runtime import log
from spark_jobs.queries import Wanted
from spark_jobs.rest import TopicProgress

#: seconds between two measurements; a query that has just started is not judged by an older one
LAG_SECONDS = 2.0
#: no progress for this long with records waiting is worth an alarm
_STUCK_SECONDS = 20.0

_log = log.get(__name__)


@dataclass
class Progress:
    """Progress of one query. `started` and `moved` are monotonic seconds."""

    started: float
    moved: float
    lag: int = 0
    #: the partition in which most of these records wait
    hindmost: int = 0
    positions: dict[str, int] = field(default_factory=dict)
    alarmed: bool = False

    def note(self, positions: dict[str, int], lag: int, now: float) -> bool:
        """Take in a measurement, and return True if the query has just turned out to be stuck."""
        self.lag = lag if now - self.started > LAG_SECONDS else 0
        if positions != self.positions or not lag:
            self.positions = positions
            self.moved = now
            self.alarmed = False
            return False
        if self.alarmed or now - self.moved <= _STUCK_SECONDS:
            return False
        self.alarmed = True
        return True

    def to_beat(self) -> dict[str, int]:
        """Return what the heartbeat of the topic says of it."""
        return {"lag": self.lag, "hindmost": self.hindmost}


class Lags:
    """Records not worked on yet, by topic."""

    def __init__(
        self,
        client: redis.Redis,
        admin: Admin,
        catalog: CatalogReader,
        registry: CollectorRegistry,
        slots: Callable[[], int],
    ) -> None:
        """*slots*: task slots that exist, for the log."""
        self._redis = client
        self._admin = admin
        self._catalog = catalog
        self._slots = slots
        self.by_topic: dict[str, int] = {}
        self._positions: dict[str, dict[str, int]] = {}
        #: topics whose positions are known to be of this id
        self._owned: dict[str, int] = {}
        self._lag_gauge = Gauge(
            "penstock_lag_records", "Records not worked on yet", ["topic"], registry=registry
        )
        self._stuck = Counter(
            "penstock_query_stuck",
            "Times a query made no progress with records waiting",
            ["topic"],
            registry=registry,
        )
        self._dead_letters = Gauge(
            "penstock_dead_letters",
            "Dead letters that all services have ever written",
            registry=registry,
        )

    def measure(
        self,
        wanted: Iterable[Wanted],
        existing: Mapping[str, int],
        running: Mapping[str, Progress],
        now: float,
    ) -> list[tuple[Wanted, TopicProgress]]:
        """Measure the lags of topics, and raise alarms for queries that stand still with records
        waiting; return how far each topic is.

        Args:
            wanted: topics to look at.
            existing: topics of Kafka, with their partitions.
            running: progress of the queries that run, by topic.
            now: monotonic seconds.
        """
        there = [w for w in wanted if existing.get(w.topic) == w.partitions]
        ends = self._read_ends(there, existing)
        self._read_positions(there)
        measured = [(item, self._progress_of(item, ends)) for item in there]
        for item, progress in measured:
            self._note_lag(item.topic, progress, running.get(item.topic), now)
        return measured

    def _read_ends(
        self, items: Sequence[Wanted], existing: Mapping[str, int]
    ) -> dict[tuple[str, int], int]:
        """Return where the partitions of topics end, and count the dead letters with them."""
        dead_letters = [(names.DEAD_LETTER, 0)] if names.DEAD_LETTER in existing else []
        places = [(item.topic, p) for item in items for p in range(item.partitions)]
        ends = self._admin.end_offsets([*places, *dead_letters])
        self._dead_letters.set(sum(ends[place] for place in dead_letters))
        return ends

    def _note_lag(
        self, topic: str, measured: TopicProgress, query: Progress | None, now: float
    ) -> None:
        lag = measured.lag
        if query is not None:
            query.hindmost = measured.hindmost
        self.by_topic[topic] = lag
        self._lag_gauge.labels(topic).set(lag)
        if query is not None and query.note(self._positions[topic], lag, now):
            self._alarm(topic, lag)

    def position(self, topic: str, partition: int) -> int:
        """Return the offset up to which a partition is known to be worked on."""
        return self._positions.get(topic, {}).get(str(partition), 0)

    def forget(self, topic: str) -> None:
        """Forget a topic that is gone."""
        self.by_topic.pop(topic, None)
        self._positions.pop(topic, None)
        self._owned.pop(topic, None)

    def _read_positions(self, items: Sequence[Wanted]) -> None:
        """Take in the positions by partition that Redis has; those that it has lost stay.

        Partitions that get no records now do not report again: they would look far behind for ever.
        """
        with self._redis.pipeline(transaction=False) as pipe:
            for item in items:
                pipe.hgetall(names.query_progress(item.topic))
            for item, stored in zip(items, pipe.execute(), strict=True):
                self._take_positions(item, {str(k): str(v) for k, v in stored.items()})

    def _take_positions(self, item: Wanted, stored: Mapping[str, str]) -> None:
        topic = item.topic
        reported = {k: int(v) for k, v in stored.items() if k.isdigit()}
        owner = int(stored.get(names.TOPIC_ID, self._owned.get(topic, item.id)))
        if owner != item.id:
            # an earlier topic of this name has left them
            self.forget(topic)
            if reported:
                self._redis.hdel(names.query_progress(topic), names.TOPIC_ID, *reported)
            reported = {}
        elif names.TOPIC_ID in stored:
            self._owned[topic] = owner
        self._positions[topic] = self._positions.get(topic, {}) | reported

    def _progress_of(self, item: Wanted, ends: Mapping[tuple[str, int], int]) -> TopicProgress:
        positions = self._positions[item.topic]
        begins = self._catalog.catalog.begins(item.topic)
        partitions = range(item.partitions)
        return TopicProgress(
            tuple(ends[item.topic, p] for p in partitions),
            tuple(positions.get(str(p), begins.get(p, 0)) for p in partitions),
            # those of a topic of this name that is gone may be left
            sure=not positions or self._owned.get(item.topic) == item.id,
        )

    def _alarm(self, topic: str, lag: int) -> None:
        self._stuck.labels(topic).inc()
        _log.error(
            "records wait but the query makes no progress",
            topic=topic,
            lag=lag,
            slots=self._slots(),
        )

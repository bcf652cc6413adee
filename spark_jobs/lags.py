"""How far queries are behind: measured from Kafka's ends and the positions that workers report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import redis
from prometheus_client import CollectorRegistry, Counter, Gauge

from penstock import names
from penstock.bus import Admin
from penstock.catalog.reader import CatalogReader
from penstock.runtime import log
from spark_jobs.queries import Wanted

#: seconds between two measurements; a query that has just started is not judged by an older one
LAG_SECONDS = 2.0
#: no progress for this long with records waiting is worth an alarm
_STUCK_SECONDS = 20.0

_log = log.get(__name__)


@dataclass
class Progress:
    """How one query gets on. `started` and `moved` are monotonic seconds."""

    started: float
    moved: float
    lag: int = 0
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
    ) -> None:
        """Measure the lag of every topic, and raise alarms for queries that stand still with
        records waiting.

        Args:
            wanted: topics to read.
            existing: topics of Kafka, with their partitions.
            running: progress of the queries that run, by topic.
            now: monotonic seconds.
        """
        there = [w for w in wanted if existing.get(w.topic) == w.partitions]
        dead_letters = [(names.DEAD_LETTER, 0)] if names.DEAD_LETTER in existing else []
        places = [(w.topic, p) for w in there for p in range(w.partitions)]
        ends = self._admin.end_offsets([*places, *dead_letters])
        self._dead_letters.set(sum(ends[place] for place in dead_letters))
        for item in there:
            positions = self._read_positions(item.topic)
            lag = self._lag(item, positions, ends)
            self.by_topic[item.topic] = lag
            self._lag_gauge.labels(item.topic).set(lag)
            query = running.get(item.topic)
            if query is not None and query.note(positions, lag, now):
                self._alarm(item.topic, lag)

    def position(self, topic: str, partition: int) -> int:
        """Return the offset up to which a partition is known to be worked on."""
        return self._positions.get(topic, {}).get(str(partition), 0)

    def forget(self, topic: str) -> None:
        """Forget a topic that is gone."""
        self.by_topic.pop(topic, None)
        self._positions.pop(topic, None)

    def _read_positions(self, topic: str) -> dict[str, int]:
        """Return positions by partition, with those that Redis has lost.

        Partitions that get no records now do not report again: they would look far behind for ever.
        """
        stored = self._redis.hgetall(names.query_progress(topic))
        reported = {str(k): int(v) for k, v in stored.items() if str(k).isdigit()}
        positions = self._positions.get(topic, {}) | reported
        self._positions[topic] = positions
        return positions

    def _lag(
        self, item: Wanted, positions: Mapping[str, int], ends: Mapping[tuple[str, int], int]
    ) -> int:
        begins = self._catalog.catalog.begins(item.topic)
        return sum(
            max(ends[item.topic, p] - positions.get(str(p), begins.get(p, 0)), 0)
            for p in range(item.partitions)
        )

    def _alarm(self, topic: str, lag: int) -> None:
        self._stuck.labels(topic).inc()
        _log.error(
            "records wait but the query makes no progress",
            topic=topic,
            lag=lag,
            slots=self._slots(),
        )

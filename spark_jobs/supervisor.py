"""Keeps the queries running that the catalog calls for: starts, stops and restarts them, and
switches their modes.

Positions come from the workers over Redis, ends from Kafka, epochs from Spark. When the JVM is gone
every call fails: the process ends, and whoever started it starts it anew. Knows nothing of rows.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable

import redis

from penstock.bus import Admin
from penstock.catalog.apply import Changed
from penstock.catalog.model import Database, StreamEntry
from penstock.catalog.reader import CatalogReader
from penstock.errors import BusError
from penstock.runtime import log
from penstock.runtime.clock import Clock
from penstock.runtime.health import Health
from penstock.storage.checkpoints import directory_of
from spark_jobs.begins import begins
from spark_jobs.controls import topics_with_ticks
from spark_jobs.epochs import Epochs
from spark_jobs.hand_over import HandOver
from spark_jobs.lags import LAG_SECONDS, Lags
from spark_jobs.leftovers import Leftovers
from spark_jobs.queries import Action, Failures, Wanted, decide, topics_to_read
from spark_jobs.query_metrics import QueryMetrics
from spark_jobs.query_starter import QueryStarter
from spark_jobs.query_status import QueryStatus, RunningQuery
from spark_jobs.rest import Turn
from spark_jobs.resting import Resting
from spark_jobs.safe_mode import SafeMode
from spark_jobs.session import SparkSessions
from spark_jobs.settings import SparkSettings
from spark_jobs.span_counts import SpanCounts
from spark_jobs.stream_metrics import StreamMetrics
from spark_jobs.watch import SleepWatch

_ROUND_SECONDS = 0.5
#: while no topic is read
_REST_SECONDS = 1.0
#: a query that starts is looked at more often
_START_ROUND_SECONDS = 0.1
#: a query that reads nothing for so long is not one that just starts
_START_SECONDS = 30.0
#: so many queries start at once: more would only take each other's time
_STARTS_AT_ONCE = max(os.cpu_count() or 1, 2)
#: for how long a round starts queries: whatever else the driver has to do waits meanwhile
_STARTING_SECONDS = 0.25
#: after so long without a query what the last ones have needed is garbage; later, too, what the JVM
#: kept for another one, like its Kafka consumers
_GIVE_BACK_SECONDS = (5.0, 60.0)
#: how often each query is asked for its epochs, and said to be read
_TELL_SECONDS = 2.0

_log = log.get(__name__)


class QuerySupervisor:
    """One per mesh."""

    def __init__(
        self,
        settings: SparkSettings,
        sessions: SparkSessions,
        catalog: CatalogReader,
        client: redis.Redis,
        admin: Admin,
        epochs: Epochs,
        health: Health,
        clock: Clock,
        token: str,
        watch: SleepWatch,
    ) -> None:
        self._settings = settings
        self._sessions = sessions
        self._catalog = catalog
        self._admin = admin
        self._epochs = epochs
        self._health = health
        self._clock = clock
        self._queries: dict[str, RunningQuery] = {}
        self._failures: dict[str, Failures] = {}
        self._lags = Lags(client, admin, catalog, health.registry, sessions.slots)
        self._lags_at = 0.0
        self._existing: dict[str, int] = {}
        #: when a query ran last, and how long after it memory is given back
        self._ran_at = 0.0
        self._give_back_after: tuple[float, ...] = ()
        self._leftovers = Leftovers(settings, catalog)
        self._resting = Resting(client, admin, watch, settings.idle_seconds)
        self._status = QueryStatus(client, clock, sessions.retry)
        self._starter = QueryStarter(
            settings,
            sessions,
            HandOver(settings, client, admin, self._lags.position),
            self._leftovers,
            self._status,
            clock,
            token,
        )
        self._safe_mode = SafeMode(client, on=settings.safe_mode)
        self._wake = threading.Event()
        self._halt = threading.Event()
        self._metrics = QueryMetrics(health.registry)
        self._stream_metrics = StreamMetrics(client, health.registry)
        self._span_counts = SpanCounts(client, health.registry)
        catalog.listen(self._note_changes)
        watch.listen(self._wake.set)

    def stop(self) -> None:
        """End `run` soon."""
        self._halt.set()
        self._wake.set()

    def run(self) -> None:
        """Supervise until `stop`.

        Raises:
            Exception: the JVM is gone.
        """
        self._leftovers.remove_all()
        self._safe_mode.begin()
        while not self._halt.is_set():
            try:
                self._round()
            except (BusError, redis.RedisError) as error:
                _log.warning("Kafka or Redis does not answer, going on without", error=str(error))
                self._health.ready("queries", False, str(error))
            rest = _ROUND_SECONDS if self._queries else _REST_SECONDS
            self._wake.wait(_START_ROUND_SECONDS if self._starting() else rest)
            self._wake.clear()
        self._resting.watch.close()
        for query in list(self._queries.values()):
            self._stop(query)

    def _note_changes(self, changes: list[Changed]) -> None:
        catalog = self._catalog.catalog
        streams = [s for c in changes for s in (c.old, c.new) if isinstance(s, StreamEntry)]
        self._resting.expect({t for s in streams for t in catalog.source_topics(s.plan)})
        made = [c.new for c in changes if isinstance(c.new, Database) and c.old is None]
        if made and not self._safe_mode.on:
            new = [Wanted(d.topic, d.partitions, d.id) for d in made]
            self._resting.greet(new, self._clock)
        self._wake.set()
        if any(isinstance(c.new, Database) and c.new.removed for c in changes):
            self._leftovers.due = True
        self._safe_mode.note_changes(changes)

    def _round(self) -> None:
        now = self._clock.monotonic()
        if self._safe_mode.on:
            self._safe_mode.beat()
            self._health.ready("queries", True, "safe mode: no stream runs")
            return
        wanted = topics_to_read(self._catalog.catalog)
        self._watch(now)
        self._measure(wanted, now)
        awake = self._resting.rest.awake(wanted)
        actions, starved = decide(
            awake,
            {t: q.running() for t, q in self._queries.items()},
            self._lags.by_topic,
            backlog=self._settings.backlog_records,
            slots=self._sessions.slots(),
        )
        for action in actions:
            if action.kind == "stop":
                self._do(action, now)
        if starved and self._settings.idle_seconds:
            self._give_way(starved, now)
        # before what takes its time: CREATE DATABASE waits until its topic is minded
        self._resting.settle(self._clock)
        self._start_some([action for action in actions if action.kind == "start"], now)
        self._report_readiness(awake, starved, now)
        self._give_back(now)

    def _start_some(self, actions: Iterable[Action], now: float) -> None:
        """Start queries for a moment; the next round, which comes at once, starts more of them."""
        begun = self._clock.monotonic()
        for action in actions:
            if self._starting() >= _STARTS_AT_ONCE:
                return
            if self._clock.monotonic() - begun >= _STARTING_SECONDS:
                self._wake.set()
                return
            self._do(action, now)

    def _give_back(self, now: float) -> None:
        """Give memory back, twice, when no query has run for a while."""
        if self._queries:
            self._ran_at = now
            self._give_back_after = _GIVE_BACK_SECONDS
        elif self._give_back_after and now - self._ran_at >= self._give_back_after[0]:
            self._give_back_after = self._give_back_after[1:]
            self._sessions.give_back_memory()

    def _note_positions(self) -> None:
        """Tell the JVM how far the state on this machine is, of topics in which it has moved."""
        if self._settings.master != "local" or not directory_of(self._settings.state_dir):
            return
        moved = [
            q
            for q in self._queries.values()
            if q.mode == "realtime" and q.noted != q.progress.positions
        ]
        if moved:
            self._sessions.note_positions(
                (q.wanted, begins(self._settings, q.wanted)) for q in moved
            )
        for query in moved:
            query.noted = query.progress.positions

    def _measure(self, wanted: dict[str, Wanted], now: float) -> None:
        """Find out how far the topics are, and which of them fall asleep or have woken."""
        resting = self._resting
        self._forget_gone(wanted)
        news = [w for w in resting.rest.new_topics(wanted) if self._exists(w)]
        due = now - self._lags_at >= LAG_SECONDS
        awake = resting.rest.awake(wanted)
        if due or news:
            self._measure_lags(awake.values() if due else news, now)
        if woken := resting.wake(now):
            self._measure_lags(woken, now)
        if not due:
            return
        self._lags_at = now
        self._note_positions()
        self._stream_metrics.measure(self._catalog.catalog, awake.__contains__)
        self._span_counts.measure()
        if self._leftovers.due:
            self._leftovers.remove_all()

    def _forget_gone(self, wanted: dict[str, Wanted]) -> None:
        """Forget topics that are not wanted any more; those with a query it forgets as it stops."""
        for gone in self._resting.keep(wanted):
            if gone.topic not in self._queries:
                self._forget(gone)

    def _measure_lags(self, topics: Iterable[Wanted], now: float) -> None:
        running = {t: q.progress for t, q in self._queries.items()}
        measured = self._lags.measure(topics, self._existing, running, now)
        self._resting.look(measured, topics_with_ticks(self._catalog.catalog), now)

    def _starting(self) -> int:
        """Count the queries that do not read yet."""
        now = self._clock.monotonic()
        return sum(
            not q.reading and now - q.progress.started < _START_SECONDS
            for q in self._queries.values()
        )

    def _give_way(self, starved: list[Wanted], now: float) -> None:
        """Have queries stop for topics that there are no slots for."""
        turns = [
            Turn(t, q.wanted.partitions, q.progress.started, self._resting.rest.quiet_since(t))
            for t, q in self._queries.items()
        ]
        for topic in self._resting.give_way(sum(w.partitions for w in starved), turns, now):
            self._stop(self._queries[topic])

    def _report_readiness(
        self, awake: dict[str, Wanted], starved: list[Wanted], now: float
    ) -> None:
        waiting = [
            t
            for t in awake
            if (t not in self._queries or not self._queries[t].reading)
            and not self._resting.rest.is_waking(t, now)
        ]
        why = ""
        if starved:
            more = (
                "set PENSTOCK_SPARK_SLOTS"
                if self._settings.master == "local"
                else f"the cluster has {self._sessions.slots()}, add workers"
            )
            why = f"no task slots for {', '.join(w.topic for w in starved)}: {more}"
        elif waiting:
            why = f"not read yet: {', '.join(waiting)}"
        self._health.ready("queries", not why, why)

    def _do(self, action: Action, now: float) -> None:
        topic = action.wanted.topic
        if action.kind == "stop":
            if (query := self._queries.get(topic)) is not None:
                self._stop(query)
                self._wake.set()
                if topics_to_read(self._catalog.catalog).get(topic) != query.wanted:
                    self._forget(query.wanted)
            return
        failures = self._failures.get(topic, Failures())
        if not failures.may_start(now) or not self._exists(action.wanted):
            return
        try:
            query = self._starter.start(action.wanted, action.mode, cautiously=failures.count > 0)
        except BusError as error:
            self._note_failure(topic, str(error), now)
            return
        self._queries[topic] = query
        self._metrics.count_start(topic, action.mode)
        _log.info(
            "query started", topic=topic, mode=action.mode, lag=self._lags.by_topic.get(topic, 0)
        )

    def _exists(self, wanted: Wanted) -> bool:
        """Tell whether the topic is there with all its partitions; it may just be being created."""
        if self._existing.get(wanted.topic) != wanted.partitions:
            self._existing = self._admin.topics()
        return self._existing.get(wanted.topic) == wanted.partitions

    def _watch(self, now: float) -> None:
        """Notice queries that ended, and epochs that did."""
        for topic, query in list(self._queries.items()):
            active = query.handle.isActive
            due = now - query.told >= _TELL_SECONDS or not active
            if due and self._epochs.report(query.wanted, query.handle):
                self._metrics.count_epoch(topic)
            if active:
                self._status.beat(query, now, due=due)
                continue
            self._queries.pop(topic)
            failure = query.handle.exception()
            if failure is not None:
                self._note_failure(topic, str(failure), now, now - query.progress.started)
            elif query.mode == "microbatch":
                _log.info("caught up", topic=topic)
                self._status.end_catch_up(topic)
                self._lags_at = 0.0
                self._lags.by_topic.pop(topic, None)

    def _note_failure(self, topic: str, reason: str, now: float, ran: float = 0.0) -> None:
        self._failures[topic] = self._failures.get(topic, Failures()).another(now, ran)
        self._metrics.count_failure(topic)
        _log.error(
            "query failed", topic=topic, reason=reason[:2000], failures=self._failures[topic].count
        )
        self._status.fail(topic)

    def _stop(self, query: RunningQuery) -> None:
        query.handle.stop()
        self._queries.pop(query.wanted.topic, None)
        self._status.end(query.wanted.topic)
        _log.info("query stopped", topic=query.wanted.topic, mode=query.mode)

    def _forget(self, wanted: Wanted) -> None:
        """Remove what is kept of a topic that is gone."""
        self._status.forget(wanted.topic)
        self._lags.forget(wanted.topic)
        self._existing.pop(wanted.topic, None)
        self._leftovers.remove_topic(wanted)

"""Keeps the queries running that the catalog calls for: starts, stops, restarts, switches modes,
and says how they are.

Positions come from the workers over Redis, ends from Kafka, epochs from Spark. When the JVM is gone
every call fails: the process ends, and whoever started it starts it anew. Refused here: anything
about rows.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import psutil
import redis
from prometheus_client import Counter, Gauge
from pyspark.sql.streaming.query import StreamingQuery

from penstock import names
from penstock.bus import Admin
from penstock.catalog.apply import Changed
from penstock.catalog.model import Database, StreamEntry
from penstock.catalog.reader import CatalogReader
from penstock.errors import BusError
from penstock.runtime import log
from penstock.runtime.clock import Clock, milliseconds
from penstock.runtime.health import Health
from penstock.storage.checkpoints import directory_of
from spark_jobs.backlog import CAUTIOUS
from spark_jobs.begins import begins
from spark_jobs.controls import topics_with_ticks
from spark_jobs.epochs import Epochs
from spark_jobs.hand_over import CATCHING_UP, HandOver
from spark_jobs.lags import LAG_SECONDS, Lags, Progress
from spark_jobs.leftovers import Leftovers
from spark_jobs.operator import Operator
from spark_jobs.queries import Action, Failures, Mode, Running, Wanted, decide, topics_to_read
from spark_jobs.rest import Turn
from spark_jobs.resting import Resting
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
_STARTS_AT_ONCE = 2 * (os.cpu_count() or 1)
#: how often each query is asked for its epochs, and said to be read
_TELL_SECONDS = 2.0
_HEARTBEAT_SECONDS = 15

_log = log.get(__name__)


@dataclass
class _Query:
    wanted: Wanted
    mode: Mode
    handle: StreamingQuery
    progress: Progress
    reading: bool = False
    #: when it was last said how it is
    told: float = float("-inf")
    dead: set[int] = field(default_factory=set)
    #: positions at which the JVM was told last how far the state is
    noted: dict[str, int] = field(default_factory=dict)

    def running(self) -> Running:
        return Running(self.wanted, self.mode, True, self.progress.lag)


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
        self._token = token
        self._settings = settings
        self._sessions = sessions
        self._catalog = catalog
        self._redis = client
        self._admin = admin
        self._epochs = epochs
        self._health = health
        self._clock = clock
        self._queries: dict[str, _Query] = {}
        self._failures: dict[str, Failures] = {}
        self._lags = Lags(client, admin, catalog, health.registry, sessions.slots)
        self._lags_at = 0.0
        self._existing: dict[str, int] = {}
        self._hand_over = HandOver(settings, client, admin, self._lags.position)
        self._leftovers = Leftovers(settings, catalog)
        self._resting = Resting(client, admin, watch, settings.idle_seconds)
        self._host = socket.gethostname()
        self._wake = threading.Event()
        self._halt = threading.Event()
        registry = health.registry
        self._mode_gauge = Gauge(
            "penstock_query_realtime",
            "1 in real time, 0 in micro-batches",
            ["topic"],
            registry=registry,
        )
        self._restarts = Counter(
            "penstock_query_failures", "Queries that failed", ["topic"], registry=registry
        )
        self._ended = Counter(
            "penstock_epochs", "Epochs of a query that ended", ["topic"], registry=registry
        )
        self._stream_metrics = StreamMetrics(client, registry)
        self._span_counts = SpanCounts(client, registry)
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
        if not self._settings.safe_mode:
            self._redis.delete(names.safe_mode())
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
        self._wake.set()
        if any(isinstance(c.new, Database) and c.new.removed for c in changes):
            self._leftovers.due = True
        if self._settings.safe_mode:
            gone = [c.old.id for c in changes if c.new is None and isinstance(c.old, StreamEntry)]
            if gone:
                self._redis.sadd(names.safe_mode_drops(), *gone)

    def _round(self) -> None:
        now = self._clock.monotonic()
        if self._settings.safe_mode:
            self._redis.set(names.safe_mode(), "", ex=_HEARTBEAT_SECONDS)
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
            if action.kind == "stop" or self._starting() < _STARTS_AT_ONCE:
                self._do(action, now)
        if starved and self._settings.idle_seconds:
            self._give_way(starved, now)
        self._resting.settle(self._clock)
        self._report_readiness(awake, starved, now)

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
        news = [w for w in resting.rest.new_topics(wanted) if self._exists(w)] + resting.wake(now)
        due = now - self._lags_at >= LAG_SECONDS
        awake = resting.rest.awake(wanted)
        if due or news:
            self._measure_lags(awake.values() if due else news, now)
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
        operator = Operator(self._settings, topic, action.wanted.id, self._token)
        self._clear_tasks(topic)
        try:
            at_once = (
                self._hand_over.records_at_once(action.wanted)
                if action.mode == "microbatch" and not failures.count
                else CAUTIOUS
            )
            # the state says where to begin; what a driver left of its epochs says less, and may be
            # half a commit, which Spark refuses for ever
            self._leftovers.remove_checkpoint(action.wanted)
            first = begins(self._settings, action.wanted)
            handle = self._sessions.query(action.wanted, action.mode, operator, at_once, first)
        except BusError as error:
            self._note_failure(topic, str(error), now)
            return
        # on a busy machine the start itself has taken a while
        begun = self._clock.monotonic()
        progress = Progress(started=begun, moved=begun)
        self._queries[topic] = _Query(action.wanted, action.mode, handle, progress)
        self._mode_gauge.labels(topic).set(action.mode == "realtime")
        _log.info(
            "query started", topic=topic, mode=action.mode, lag=self._lags.by_topic.get(topic, 0)
        )

    def _exists(self, wanted: Wanted) -> bool:
        """Whether the topic is there with all its partitions: its creation may be under way."""
        if self._existing.get(wanted.topic) != wanted.partitions:
            self._existing = self._admin.topics()
        return self._existing.get(wanted.topic) == wanted.partitions

    def _watch(self, now: float) -> None:
        """Notice queries that ended, and epochs that did."""
        for topic, query in list(self._queries.items()):
            active = query.handle.isActive
            due = now - query.told >= _TELL_SECONDS or not active
            if due and self._epochs.report(query.wanted, query.handle):
                self._ended.labels(topic).inc()
            if active:
                self._beat(query, now, due=due)
                continue
            self._queries.pop(topic)
            failure = query.handle.exception()
            if failure is not None:
                self._note_failure(topic, str(failure), now, now - query.progress.started)
            elif query.mode == "microbatch":
                _log.info("caught up", topic=topic)
                self._redis.hdel(names.query_progress(topic), CATCHING_UP)
                self._lags_at = 0.0
                self._lags.by_topic.pop(topic, None)

    def _note_failure(self, topic: str, reason: str, now: float, ran: float = 0.0) -> None:
        self._failures[topic] = self._failures.get(topic, Failures()).another(now, ran)
        self._restarts.labels(topic).inc()
        _log.error(
            "query failed", topic=topic, reason=reason[:2000], failures=self._failures[topic].count
        )
        self._redis.delete(names.query_heartbeat(topic))

    def _stop(self, query: _Query) -> None:
        query.handle.stop()
        self._queries.pop(query.wanted.topic, None)
        self._redis.delete(names.query_heartbeat(query.wanted.topic))
        self._redis.hdel(names.query_progress(query.wanted.topic), CATCHING_UP)
        _log.info("query stopped", topic=query.wanted.topic, mode=query.mode)

    # ---------------------------------------------------------------- how they are

    def _beat(self, query: _Query, now: float, *, due: bool) -> None:
        """Say that the topic is being read, once every partition's task has begun."""
        topic = query.wanted.topic
        fields = self._redis.hgetall(names.query_progress(topic))
        tasks = [
            json.loads(value) for name, value in fields.items() if str(name).startswith("task:")
        ]
        self._retry_dead(query, tasks)
        fresh = not query.reading and len(tasks) >= query.wanted.partitions
        query.reading = query.reading or fresh
        if due or fresh:
            query.told = now
        if query.reading and (due or fresh):
            beat = {
                "mode": query.mode,
                "partitions": query.wanted.partitions,
                **query.progress.to_beat(),
                "time": milliseconds(self._clock),
            }
            self._redis.set(names.query_heartbeat(topic), json.dumps(beat), ex=_HEARTBEAT_SECONDS)

    def _retry_dead(self, query: _Query, tasks: list[dict[str, Any]]) -> None:
        """Have tasks tried again whose worker has died on this machine; of others Spark hears with
        the next record.
        """
        for task in tasks:
            attempt = int(task["attempt"])
            if (
                task["host"] != self._host
                or attempt in query.dead
                or psutil.pid_exists(int(task["pid"]))
            ):
                continue
            query.dead.add(attempt)
            _log.warning(
                "worker died", topic=query.wanted.topic, pid=task["pid"], epoch=task["epoch"]
            )
            self._sessions.retry(attempt)

    def _clear_tasks(self, topic: str) -> None:
        key = names.query_progress(topic)
        fields = [str(f) for f in self._redis.hkeys(key) if str(f).startswith("task:")]
        if fields:
            self._redis.hdel(key, *fields)

    def _forget(self, wanted: Wanted) -> None:
        """Remove what is kept of a topic that is gone."""
        self._redis.delete(names.query_progress(wanted.topic), names.query_heartbeat(wanted.topic))
        self._lags.forget(wanted.topic)
        self._existing.pop(wanted.topic, None)
        self._leftovers.remove_topic(wanted)

"""Keeps the queries running that the catalog calls for: starts, stops, restarts, switches modes,
and says how they are.

Positions come from the workers over Redis, ends from Kafka, epochs from Spark. When the JVM is gone
every call fails: the process ends, and whoever started it starts it anew. Refused here: anything
about rows.
"""

from __future__ import annotations

import json
import socket
import threading
from dataclasses import dataclass, field
from typing import Any

import fsspec
import psutil
import redis
from prometheus_client import Counter, Gauge
from pyspark.sql.streaming.query import StreamingQuery

from penstock import log, names
from penstock.bus import Admin
from penstock.catalog.model import Database, StreamEntry
from penstock.catalog.reader import CatalogReader, Changed
from penstock.clock import Clock, milliseconds
from penstock.errors import BusError
from penstock.health import Health
from spark_jobs.backlog import CAUTIOUS, HAND_OVER_BYTES, mean_size, records_at_once
from spark_jobs.epochs import Epochs
from spark_jobs.figures import Figures
from spark_jobs.operator import Operator
from spark_jobs.queries import Action, Failures, Mode, Running, Wanted, decide, wanted_topics
from spark_jobs.session import SparkSessions
from spark_jobs.settings import SparkSettings

_ROUND_SECONDS = 0.5
_LAG_SECONDS = 2.0
_HEARTBEAT_SECONDS = 15
#: no progress for this long with records waiting is worth an alarm
_STUCK_SECONDS = 20.0
#: Spark's error class for a checkpoint without any epoch in which there is something all the same
_HALF_BEGUN = "STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY"
#: field of a query's progress: a catch-up with large hand-overs is under way, or its driver died in
#: it
_CATCHING_UP = "catching_up"

_log = log.get(__name__)


@dataclass
class _Query:
    wanted: Wanted
    mode: Mode
    handle: StreamingQuery
    started: float
    reading: bool = False
    dead: set[int] = field(default_factory=set)
    lag: int = 0
    moved: float = 0.0
    positions: dict[str, int] = field(default_factory=dict)
    alarmed: bool = False


class Supervisor:
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
        self._lags: dict[str, int] = {}
        self._positions: dict[str, dict[str, int]] = {}
        self._lags_at = 0.0
        self._existing: dict[str, int] = {}
        self._leftovers = False
        self._host = socket.gethostname()
        self._wake = threading.Event()
        self._halt = threading.Event()
        registry = health.registry
        self._lag_gauge = Gauge(
            "penstock_lag_records", "Records not worked on yet", ["topic"], registry=registry
        )
        self._mode_gauge = Gauge(
            "penstock_query_realtime",
            "1 in real time, 0 in micro-batches",
            ["topic"],
            registry=registry,
        )
        self._restarts = Counter(
            "penstock_query_failures", "Queries that failed", ["topic"], registry=registry
        )
        self._stuck = Counter(
            "penstock_query_stuck",
            "Times a query made no progress with records waiting",
            ["topic"],
            registry=registry,
        )
        self._ended = Counter(
            "penstock_epochs", "Epochs of a query that ended", ["topic"], registry=registry
        )
        self._letters = Gauge(
            "penstock_dead_letters",
            "Dead letters that all rooms have ever written",
            registry=registry,
        )
        self._figures = Figures(client, registry)
        catalog.listen(self._changed)

    def stop(self) -> None:
        """End `run` soon."""
        self._halt.set()
        self._wake.set()

    def run(self) -> None:
        """Supervise until `stop`.

        Raises:
            Exception: the JVM is gone.
        """
        self._remove_leftovers()
        if not self._settings.safe_mode:
            self._redis.delete(names.safe_mode())
        while not self._halt.is_set():
            try:
                self._round()
            except (BusError, redis.RedisError) as error:
                _log.warning("Kafka or Redis does not answer, going on without", error=str(error))
                self._health.ready("queries", False, str(error))
            self._wake.wait(_ROUND_SECONDS)
            self._wake.clear()
        for query in list(self._queries.values()):
            self._stop(query)

    def _changed(self, changes: list[Changed]) -> None:
        self._wake.set()
        if any(isinstance(c.new, Database) and c.new.removed for c in changes):
            self._leftovers = True
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
        wanted = wanted_topics(self._catalog.catalog)
        self._watch(now)
        if now - self._lags_at >= _LAG_SECONDS:
            self._lags_at = now
            self._measure(wanted, now)
            self._figures.measure(self._catalog.catalog)
            if self._leftovers:
                self._remove_leftovers()
        running = {t: Running(q.wanted, q.mode, True, q.lag) for t, q in self._queries.items()}
        actions, starved = decide(
            wanted,
            running,
            self._lags,
            backlog=self._settings.backlog_records,
            slots=self._sessions.slots(),
        )
        for action in actions:
            self._do(action, now)
        waiting = [t for t in wanted if t not in self._queries or not self._queries[t].reading]
        more = (
            "set PENSTOCK_SPARK_SLOTS"
            if self._settings.master == "local"
            else f"the cluster has {self._sessions.slots()}, add workers"
        )
        why = f"no task slots for {', '.join(w.topic for w in starved)}: {more}" if starved else ""
        self._health.ready(
            "queries", not starved and not waiting, why or f"not read yet: {', '.join(waiting)}"
        )

    def _do(self, action: Action, now: float) -> None:
        topic = action.wanted.topic
        if action.kind == "stop":
            if (query := self._queries.get(topic)) is not None:
                self._stop(query)
                self._wake.set()
                if wanted_topics(self._catalog.catalog).get(topic) != query.wanted:
                    self._forget(query.wanted)
            return
        failures = self._failures.get(topic, Failures())
        if not failures.may_start(now) or not self._exists(action.wanted):
            return
        operator = Operator(self._settings, topic, action.wanted.id, self._token)
        self._clear_tasks(topic)
        try:
            at_once = (
                self._at_once(action.wanted)
                if action.mode == "microbatch" and not failures.count
                else CAUTIOUS
            )
            handle = self._sessions.query(topic, action.wanted.id, action.mode, operator, at_once)
        except BusError as error:
            self._failed(topic, str(error), now)
            return
        self._queries[topic] = _Query(action.wanted, action.mode, handle, now, moved=now)
        self._mode_gauge.labels(topic).set(action.mode == "realtime")
        _log.info("query started", topic=topic, mode=action.mode, lag=self._lags.get(topic, 0))

    def _at_once(self, wanted: Wanted) -> int:
        """How many records of a topic's backlog may cross into Python together; few when whoever
        asked before has died since, for a look can miss large records.
        """
        topic = wanted.topic
        partitions = range(wanted.partitions)
        if not self._redis.hsetnx(names.query_progress(topic), _CATCHING_UP, self._host):
            return CAUTIOUS
        ends = self._admin.end_offsets([(topic, p) for p in partitions])
        starts = self._admin.start_offsets([(topic, p) for p in partitions])
        positions = self._positions.get(topic, {})
        begins = {p: max(positions.get(str(p), 0), starts[topic, p]) for p in partitions}
        size = mean_size(
            self._settings.kafka_bootstrap, topic, begins, {p: ends[topic, p] for p in partitions}
        )
        count = records_at_once(
            size, most_records=self._settings.unit_records, most_bytes=HAND_OVER_BYTES
        )
        _log.info(
            "backlog seen",
            topic=topic,
            bytes_of_a_record=None if size is None else round(size),
            records_at_once=count,
        )
        return count

    def _exists(self, wanted: Wanted) -> bool:
        """Whether the topic is there with all its partitions: its creation may be under way."""
        if self._existing.get(wanted.topic) != wanted.partitions:
            self._existing = self._admin.topics()
        return self._existing.get(wanted.topic) == wanted.partitions

    def _watch(self, now: float) -> None:
        """Notice queries that ended, and epochs that did."""
        for topic, query in list(self._queries.items()):
            if self._epochs.report(query.wanted, query.handle):
                self._ended.labels(topic).inc()
            if query.handle.isActive:
                self._beat(query)
                continue
            self._queries.pop(topic)
            failure = query.handle.exception()
            if failure is not None:
                self._failed(topic, str(failure), now)
                if _HALF_BEGUN in str(failure):
                    self._begin_anew(query.wanted)
            elif query.mode == "microbatch":
                _log.info("caught up", topic=topic)
                self._redis.hdel(names.query_progress(topic), _CATCHING_UP)
                self._lags_at = 0.0
                self._lags.pop(topic, None)

    def _failed(self, topic: str, reason: str, now: float) -> None:
        self._failures[topic] = self._failures.get(topic, Failures()).another(now)
        self._restarts.labels(topic).inc()
        _log.error(
            "query failed", topic=topic, reason=reason[:2000], failures=self._failures[topic].count
        )
        self._redis.delete(names.query_heartbeat(topic))

    def _begin_anew(self, wanted: Wanted) -> None:
        """Remove a checkpoint in which not even the first epoch is whole: its driver died in the
        middle of committing it, and Spark refuses it for ever. Nothing is lost with it: a lane
        skips what lies below its own position.
        """
        fs, path = fsspec.core.url_to_fs(self._settings.checkpoint(wanted.topic, wanted.id))
        _log.warning("the checkpoint was never whole, beginning anew", topic=wanted.topic)
        self._remove(fs, path)

    def _stop(self, query: _Query) -> None:
        query.handle.stop()
        self._queries.pop(query.wanted.topic, None)
        self._redis.delete(names.query_heartbeat(query.wanted.topic))
        self._redis.hdel(names.query_progress(query.wanted.topic), _CATCHING_UP)
        _log.info("query stopped", topic=query.wanted.topic, mode=query.mode)

    # ---------------------------------------------------------------- how they are

    def _beat(self, query: _Query) -> None:
        """Say that the topic is being read, once every partition's task has begun."""
        topic = query.wanted.topic
        fields = self._redis.hgetall(names.query_progress(topic))
        tasks = [
            json.loads(value) for name, value in fields.items() if str(name).startswith("task:")
        ]
        self._bury(query, tasks)
        query.reading = query.reading or len(tasks) >= query.wanted.partitions
        if query.reading:
            beat = {
                "mode": query.mode,
                "partitions": query.wanted.partitions,
                "lag": query.lag,
                "time": milliseconds(self._clock),
            }
            self._redis.set(names.query_heartbeat(topic), json.dumps(beat), ex=_HEARTBEAT_SECONDS)

    def _bury(self, query: _Query, tasks: list[dict[str, Any]]) -> None:
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

    def _measure(self, wanted: dict[str, Wanted], now: float) -> None:
        """Lag of every topic; alarms for those that stand still with records waiting."""
        there = [w for w in wanted.values() if self._existing.get(w.topic) == w.partitions]
        letters = [(names.DEAD_LETTER, 0)] if names.DEAD_LETTER in self._existing else []
        ends = self._admin.end_offsets(
            [*((w.topic, p) for w in there for p in range(w.partitions)), *letters]
        )
        self._letters.set(sum(ends[place] for place in letters))
        for item in there:
            stored = self._redis.hgetall(names.query_progress(item.topic))
            # Redis may have lost what partitions said that get no records now: they would look far
            # behind for ever
            positions = self._positions.get(item.topic, {}) | {
                str(k): int(v) for k, v in stored.items() if str(k).isdigit()
            }
            self._positions[item.topic] = positions
            begins = self._catalog.catalog.begins(item.topic)
            lag = sum(
                max(ends[item.topic, p] - positions.get(str(p), begins.get(p, 0)), 0)
                for p in range(item.partitions)
            )
            self._lags[item.topic] = lag
            self._lag_gauge.labels(item.topic).set(lag)
            if (query := self._queries.get(item.topic)) is None:
                continue
            if positions != query.positions or not lag:
                query.positions = positions
                query.moved = now
                query.alarmed = False
            elif now - query.moved > _STUCK_SECONDS and not query.alarmed:
                query.alarmed = True
                self._stuck.labels(item.topic).inc()
                _log.error(
                    "records wait but the query makes no progress",
                    topic=item.topic,
                    lag=lag,
                    slots=self._sessions.slots(),
                )
            query.lag = lag if now - query.started > _LAG_SECONDS else 0

    # ---------------------------------------------------------------- what dropped topics leave

    def _forget(self, wanted: Wanted) -> None:
        """Remove the state of a topic that is gone."""
        self._redis.delete(names.query_progress(wanted.topic), names.query_heartbeat(wanted.topic))
        self._lags.pop(wanted.topic, None)
        self._positions.pop(wanted.topic, None)
        self._existing.pop(wanted.topic, None)
        if any(w.id == wanted.id for w in wanted_topics(self._catalog.catalog).values()):
            return  # the next generation of the topic takes the state over
        for directory in (self._settings.checkpoint_dir, self._settings.state_dir):
            fs, path = fsspec.core.url_to_fs(f"{directory}/{wanted.id}")
            self._remove(fs, path)

    def _remove(self, fs: fsspec.AbstractFileSystem, path: str) -> None:
        """Remove a directory of a topic that is gone. A worker of its stopped query may be writing
        its last file there just now: what that leaves goes with `_remove_leftovers`.
        """
        try:
            if fs.exists(path):
                fs.rm(path, recursive=True)
        except OSError as error:
            _log.info(
                "state of a dropped topic is still being written, removed later",
                path=path,
                reason=str(error),
            )
            self._leftovers = True

    def _remove_leftovers(self) -> None:
        """Remove state of topics that were dropped while this process was not there, or whose
        removal was disturbed, and of topics of earlier generations that are gone.
        """
        self._leftovers = False
        known = {str(w.id) for w in wanted_topics(self._catalog.catalog).values()}
        for directory in (self._settings.checkpoint_dir, self._settings.state_dir):
            fs, path = fsspec.core.url_to_fs(directory)
            for child in fs.ls(path, detail=False) if fs.exists(path) else ():
                name = str(child).rstrip("/").rpartition("/")[2]
                if name.isdigit() and name not in known:
                    fs.rm(str(child), recursive=True)
        for database in self._catalog.catalog.databases():
            for topic, partitions in database.lineage[: database.removed]:
                states = [
                    names.state_directory(self._settings.state_dir, str(database.id), topic, p)
                    for p in range(partitions)
                ]
                for directory in (self._settings.checkpoint(topic, database.id), *states):
                    self._remove(*fsspec.core.url_to_fs(directory))

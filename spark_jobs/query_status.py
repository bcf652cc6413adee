"""What Redis says of each query: that its topic is read, which tasks have begun, and whether it is
catching up.

Workers write their tasks and positions into a topic's progress. The driver writes the heartbeat,
once every partition's task has begun.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psutil
import redis
from pyspark.sql.streaming.query import StreamingQuery

from penstock import names
from penstock.runtime import log
from penstock.runtime.clock import Clock, milliseconds
from spark_jobs.hand_over import CATCHING_UP
from spark_jobs.lags import Progress
from spark_jobs.queries import Mode, Running, Wanted

HEARTBEAT_SECONDS = 15

_log = log.get(__name__)


@dataclass
class RunningQuery:
    """A query that was started."""

    wanted: Wanted
    mode: Mode
    handle: StreamingQuery
    progress: Progress
    reading: bool = False
    #: when its status was written last
    told: float = float("-inf")
    #: attempts of tasks whose worker has died
    dead: set[int] = field(default_factory=set)
    #: positions at which the JVM was told last how far the state is
    noted: dict[str, int] = field(default_factory=dict)

    def running(self) -> Running:
        return Running(self.wanted, self.mode, True, self.progress.lag)


class QueryStatus:
    """Of all queries of one driver, in the supervisor's thread."""

    def __init__(self, client: redis.Redis, clock: Clock, retry: Callable[[int], None]) -> None:
        """
        Args:
            retry: has an attempt of a task tried again.
        """
        self._redis = client
        self._clock = clock
        self._retry = retry
        self._host = socket.gethostname()

    def begin(self, topic: str) -> None:
        """Forget the tasks of an earlier query of *topic*."""
        key = names.query_progress(topic)
        fields = [str(f) for f in self._redis.hkeys(key) if str(f).startswith("task:")]
        if fields:
            self._redis.hdel(key, *fields)

    def beat(self, query: RunningQuery, now: float, *, due: bool) -> None:
        """Say that the topic is being read, when all tasks have just begun or it is *due*."""
        topic = query.wanted.topic
        fields = self._redis.hgetall(names.query_progress(topic))
        tasks = [
            json.loads(value) for name, value in fields.items() if str(name).startswith("task:")
        ]
        self._retry_dead(query, tasks)
        fresh = not query.reading and len(tasks) >= query.wanted.partitions
        query.reading = query.reading or fresh
        if not (due or fresh):
            return
        query.told = now
        if query.reading:
            beat = {
                "mode": query.mode,
                "partitions": query.wanted.partitions,
                **query.progress.to_beat(),
                "time": milliseconds(self._clock),
            }
            self._redis.set(names.query_heartbeat(topic), json.dumps(beat), ex=HEARTBEAT_SECONDS)

    def _retry_dead(self, query: RunningQuery, tasks: list[dict[str, Any]]) -> None:
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
            self._retry(attempt)

    def fail(self, topic: str) -> None:
        """Say no more that *topic* is read; its backlog is still being caught up."""
        self._redis.delete(names.query_heartbeat(topic))

    def end_catch_up(self, topic: str) -> None:
        """Note that the backlog of *topic* is worked off."""
        self._redis.hdel(names.query_progress(topic), CATCHING_UP)

    def end(self, topic: str) -> None:
        """Say no more that *topic* is read, nor that it is caught up."""
        self.fail(topic)
        self.end_catch_up(topic)

    def forget(self, topic: str) -> None:
        """Remove everything about a topic that is gone."""
        self._redis.delete(names.query_progress(topic), names.query_heartbeat(topic))

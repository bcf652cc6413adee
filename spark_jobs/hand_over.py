"""How many records of a topic's backlog cross into Python together: looked up when a catch-up
begins, and remembered until it is over.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

import redis

from penstock import names
from penstock.bus import Admin
from penstock.runtime import log
from spark_jobs.backlog import CAUTIOUS, HAND_OVER_BYTES, mean_size, records_at_once
from spark_jobs.queries import Wanted
from spark_jobs.settings import SparkSettings

#: field of a query's progress: a catch-up with large hand-overs is under way, or its driver died in
#: it
CATCHING_UP = "catching_up"

_log = log.get(__name__)


class HandOver:
    """Looks at backlogs."""

    def __init__(
        self,
        settings: SparkSettings,
        client: redis.Redis,
        admin: Admin,
        position: Callable[[str, int], int],
    ) -> None:
        """*position*: up to where a partition is known to be worked on."""
        self._settings = settings
        self._redis = client
        self._admin = admin
        self._position = position

    def records_at_once(self, wanted: Wanted) -> int:
        """How many records of a topic's backlog may cross into Python together; few when whoever
        asked before has died since, for a look can miss large records.
        """
        topic = wanted.topic
        partitions = range(wanted.partitions)
        if not self._redis.hsetnx(names.query_progress(topic), CATCHING_UP, socket.gethostname()):
            return CAUTIOUS
        ends = self._admin.end_offsets([(topic, p) for p in partitions])
        starts = self._admin.start_offsets([(topic, p) for p in partitions])
        begins = {p: max(self._position(topic, p), starts[topic, p]) for p in partitions}
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

"""Starts queries: each where the state of its topic ends, with as many records at once as its
backlog allows.
"""

from __future__ import annotations

from penstock.runtime.clock import Clock
from spark_jobs.backlog import CAUTIOUS
from spark_jobs.begins import begins
from spark_jobs.hand_over import HandOver
from spark_jobs.lags import Progress
from spark_jobs.leftovers import Leftovers
from spark_jobs.operator import Operator
from spark_jobs.queries import Mode, Wanted
from spark_jobs.query_status import QueryStatus, RunningQuery
from spark_jobs.session import SparkSessions
from spark_jobs.settings import SparkSettings


class QueryStarter:
    """In the supervisor's thread."""

    def __init__(
        self,
        settings: SparkSettings,
        sessions: SparkSessions,
        hand_over: HandOver,
        leftovers: Leftovers,
        status: QueryStatus,
        clock: Clock,
        token: str,
    ) -> None:
        """
        Args:
            token: of the driver, by which its workers know it.
        """
        self._settings = settings
        self._sessions = sessions
        self._hand_over = hand_over
        self._leftovers = leftovers
        self._status = status
        self._clock = clock
        self._token = token

    def start(self, wanted: Wanted, mode: Mode, *, cautiously: bool) -> RunningQuery:
        """Start a query.

        Args:
            cautiously: hand over few records at once, because an earlier query failed.

        Raises:
            BusError: it cannot be started now.
        """
        operator = Operator(self._settings, wanted.topic, wanted.id, self._token)
        self._status.begin(wanted.topic)
        catching_up = mode == "microbatch" and not cautiously
        at_once = self._hand_over.records_at_once(wanted) if catching_up else CAUTIOUS
        # the state says where to begin; what a driver left of its epochs says less, and may be half
        # a commit, which Spark refuses for ever
        self._leftovers.remove_checkpoint(wanted)
        first = begins(self._settings, wanted)
        handle = self._sessions.query(wanted, mode, operator, at_once, first)
        # on a busy machine the start itself has taken a while
        begun = self._clock.monotonic()
        return RunningQuery(wanted, mode, handle, Progress(started=begun, moved=begun))

"""What a Python worker process keeps between tasks: catalog, publisher, Redis, codecs. One per
process, made by the first task.

Redis is never waited for on the path of rows: reports go through a thread of their own, and what
gets lost is reported again with the next snapshot.
"""

from __future__ import annotations

import base64
import contextlib
import io
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import polars as pl
import redis
import tenacity

from penstock import bus, names
from penstock.bus import Admin, Publisher
from penstock.catalog.reader import CatalogReader
from penstock.catalog.stored import StoredNames
from penstock.catalog.view import Catalog
from penstock.config.environment import opentelemetry_variables
from penstock.coordination import redis_link
from penstock.coordination.log_beat import LogBeat
from penstock.coordination.service_logs import LogSender
from penstock.errors import BusError, ConfigError
from penstock.repartition import progress
from penstock.runtime import log
from penstock.runtime.failpoints import Failpoints
from penstock.runtime.newest_entries import NewestEntries
from penstock.sql.plan import StreamPlan
from penstock.telemetry.tracer import open_tracer
from penstock.windows import KernelContext
from spark_jobs import span_counts
from spark_jobs.codecs import Codecs
from spark_jobs.entry_file import BUILT
from spark_jobs.guard import Guard
from spark_jobs.settings import SparkSettings

_BARRIER_SECONDS = 3600
_OPEN_SECONDS = 60
_AGAIN_SECONDS = 1.0
#: only states and barriers wait to hear that a result is in the log
_TOLD_MS = 10.0

_log = log.get(__name__)


class Worker:
    """Shared by all processors of the process."""

    def __init__(self, settings: SparkSettings, token: str = "") -> None:
        logged = NewestEntries()
        log.configure(settings.service, settings.log_level, logged.keep)
        bus.secure(settings.kafka_options)
        self.settings = settings
        #: another one after each start of the driver
        self.driver = token
        self.failpoints = Failpoints(settings.failpoints, f"{settings.scratch_dir}/failpoints")
        self.catalog = CatalogReader(
            settings.kafka_bootstrap, client_id="spark-worker", children=False, built=BUILT
        )
        self.catalog.start()
        self.codecs = Codecs(self.catalog)
        self.publisher = Publisher(
            settings.kafka_bootstrap, client_id="spark-worker", told_ms=_TOLD_MS
        )
        self.admin = Admin(settings.kafka_bootstrap, client_id="spark-worker")
        self.redis = redis_link.connect(
            settings, socket_timeout=5, socket_connect_timeout=5, decode_responses=True
        )
        LogBeat(self.redis, LogSender(settings, logged)).start()
        #: stops this process when another node runs the jobs
        self.guard = Guard(self.redis, token, settings.lease_seconds)
        #: what the kernels of all processors have in common
        self.kernels = KernelContext()
        self._reports = ThreadPoolExecutor(1, "reports")
        self._plans: dict[str, StreamPlan] = {}
        self._open_tracer()

    def _open_tracer(self) -> None:
        """Have spans sent, if the environment of this machine names a collector."""
        try:
            open_tracer(
                opentelemetry_variables(),
                "spark",
                lambda kind, n: self.report(lambda client: span_counts.add(client, kind, n)),
            )
        except ConfigError as wrong:
            # the driver does not start with such a variable: it is this machine's alone
            _log.error("no spans are sent from here", reason=str(wrong))

    def names_in_storage(self, table_id: int) -> Callable[[], StoredNames]:
        """Asks for the names that a table's columns have in what is stored."""

        def ask() -> StoredNames:
            table = self.catalog.catalog.table_by_id(table_id)
            return {} if table is None else table.stored_names

        return ask

    def find_dropped(self, streams: Iterable[int]) -> set[int]:
        """Those of these streams that were dropped in safe mode: they are not run even up to where
        that happened.
        """
        candidates = {i for i in streams if self.catalog.catalog.stream_by_id(i) is None}
        if not candidates:
            return set()
        try:
            return candidates & {int(i) for i in self.redis.smembers(names.safe_mode_drops())}
        except redis.RedisError as error:
            _log.warning("cannot ask Redis what was dropped in safe mode", error=str(error))
            return set()

    def await_catalog(self, condition: Callable[[Catalog], bool], timeout: float) -> bool:
        """Give the catalog time to make *condition* true."""
        with contextlib.suppress(BusError):
            self.catalog.wait_for(condition, timeout)
        return condition(self.catalog.catalog)

    def plan(self, text: str) -> StreamPlan:
        """The plan in *text*; parsed once a process."""
        if text not in self._plans:
            self._plans[text] = StreamPlan.from_json(text)
        return self._plans[text]

    def report(self, action: Callable[[redis.Redis], Any]) -> None:
        """Tell Redis something, later and without waiting for it."""
        self._reports.submit(self._tell, action)

    def _tell(self, action: Callable[[redis.Redis], Any]) -> None:
        try:
            action(self.redis)
        except redis.RedisError as error:
            _log.warning("report to Redis failed", error=str(error))

    def _tell_surely(self, action: Callable[[redis.Redis], Any]) -> None:
        """Tell Redis what somebody waits for and what no snapshot says again. Reports behind it
        wait: they need Redis, too.
        """
        again = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(redis.RedisError),
            wait=tenacity.wait_fixed(_AGAIN_SECONDS),
            stop=tenacity.stop_after_delay(_BARRIER_SECONDS),
            before_sleep=_waits,
            retry_error_callback=lambda _: None,
        )
        again(action, self.redis)

    def report_stream(self, stream_id: int, field: str, value: object) -> None:
        """Set one field of a stream's status."""
        self.report_streams([(stream_id, field, str(value))])

    def report_streams(self, said: Sequence[tuple[int, str, str]]) -> None:
        """Set fields of streams' statuses: of each its stream, its name and its value."""

        def tell(client: redis.Redis) -> None:
            with client.pipeline(transaction=False) as pipe:
                for stream_id, field, value in said:
                    pipe.hset(names.stream_status(stream_id), field, value)
                pipe.execute()

        self.report(tell)

    def report_open(self, request: str, field: str, rows: pl.DataFrame | None) -> None:
        """Answer a question for open windows."""
        buffer = io.BytesIO()
        if rows is not None:
            rows.clone().write_ipc_stream(buffer, compression="lz4")
        text = base64.b64encode(buffer.getvalue()).decode()

        def tell(client: redis.Redis) -> None:
            key = names.open_windows(request)
            client.hset(key, field, text)
            client.expire(key, _OPEN_SECONDS)

        self.report(tell)

    def report_ended(self, key: str, field: str, offset: int) -> None:
        """Say that a partition has ended at *offset*, with all before it kept."""
        self._reports.submit(
            self._tell_surely, lambda client: progress.say(client, key, field, offset)
        )

    def report_barrier(self, barrier_id: str, field: str, offset: int) -> None:
        """Say that a reader has passed a barrier."""

        def tell(client: redis.Redis) -> None:
            key = names.barrier(barrier_id)
            client.hset(key, field, str(offset))
            client.expire(key, _BARRIER_SECONDS)

        self._reports.submit(self._tell_surely, tell)


def _waits(state: tenacity.RetryCallState) -> None:
    assert state.outcome is not None
    _log.warning("a report waits for Redis", error=str(state.outcome.exception()))


_workers: dict[str, Worker] = {}


def worker_of(settings: SparkSettings, token: str = "") -> Worker:
    """The process's worker, of the driver whose lease carries *token*."""
    key = f"{settings.kafka_bootstrap} {token}"
    if key not in _workers:
        _workers[key] = Worker(settings, token)
    return _workers[key]

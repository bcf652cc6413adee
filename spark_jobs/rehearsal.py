"""What a standby does while it waits: it plays what it will have to do when it leads.

A query in real time over the exchange's topic, from its end on, goes through whatever costs time
when it happens for the first time: Spark loads and compiles its classes and plans, Kafka's client
connects, the Python daemon starts and imports. Its operator works on nothing, and its checkpoint is
scratch, so nobody else notices.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.streaming.query import StreamingQuery

from penstock import names
from penstock.runtime import log, vital
from spark_jobs.queries import Wanted
from spark_jobs.session import SparkSessions

#: a rehearsal that has not come through its first epoch by then has shown what it can
_PATIENCE_SECONDS = 90.0
_LOOK_SECONDS = 0.2
_EXCHANGE = Wanted(names.EXCHANGE, names.BUILT_IN_TOPICS[names.EXCHANGE], 0)
_log = log.get(__name__)


def pass_by(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Work on nothing, as an operator does it: to the end of the input, and without output."""
    for _ in batches:
        pass
    return
    yield


class Rehearsal:
    """One in the life of a process, on a thread, from `begin` to its first epoch or to `end`."""

    def __init__(self, sessions: SparkSessions) -> None:
        self._sessions = sessions
        self._halt = threading.Event()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_over(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self._over.is_set()

    def begin(self) -> None:
        """Start, unless it has begun already. On a cluster the leader has all executors."""
        if self._sessions.settings.master != "local":
            self._over.set()
        elif self._thread is None:
            self._thread = threading.Thread(
                target=vital.run(self._play), name="rehearsal", daemon=True
            )
            self._thread.start()

    def end(self) -> None:
        """Return when nothing of it runs any more."""
        self._halt.set()
        if self._thread is not None:
            self._thread.join()

    def _play(self) -> None:
        scratch = tempfile.mkdtemp(prefix="rehearsal-")
        try:
            query = self._sessions.rehearse(_EXCHANGE, pass_by, scratch)
            try:
                self._watch(query)
            finally:
                query.stop()
        except Exception as failed:
            # whoever is not rehearsed leads, too, only later
            _log.warning("the rehearsal failed", reason=str(failed)[:500])
        finally:
            with contextlib.suppress(OSError):
                shutil.rmtree(scratch)
            self._over.set()

    def _watch(self, query: StreamingQuery) -> None:
        looks = round(_PATIENCE_SECONDS / _LOOK_SECONDS)
        for _ in range(looks):
            if query.lastProgress is not None or not query.isActive:
                break
            if self._halt.wait(_LOOK_SECONDS):
                return
        failure = query.exception()
        if failure is not None:
            raise failure
        _log.info("rehearsed: ready to lead")

"""What a standby does while it waits: it plays what it will have to do when it leads.

A query in real time over the newest records of the catalog's topic goes through whatever costs time
when it happens for the first time: Spark loads and compiles its classes and plans, Kafka's client
connects, the first record is converted, the Python daemon starts and imports. Its operator works on
nothing, and its checkpoint is scratch, so nobody else notices.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql.streaming.query import StreamingQuery

from penstock import names
from penstock.bus import Admin
from penstock.runtime import log, vital
from spark_jobs.begins import EARLIEST
from spark_jobs.queries import Wanted
from spark_jobs.session import SparkSessions

#: a rehearsal that has not come through its first record by then has shown what it can
_PATIENCE_SECONDS = 90.0
_LOOK_SECONDS = 0.2
_PLAYED = Wanted(names.CATALOG, names.BUILT_IN_TOPICS[names.CATALOG], 0)
#: records of a partition: the first one is what counts
_RECORDS = 16
_ANY = dict.fromkeys(range(_PLAYED.partitions), EARLIEST)
#: between two looks whether a mesh without any definition has got its first one
_EMPTY_SECONDS = 2.0
_log = log.get(__name__)


def pass_by(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Work on nothing, as an operator does it: to the end of the input, and without output."""
    for _ in batches:
        pass
    return
    yield


def newest_records(kafka_bootstrap: str) -> dict[int, int]:
    """Return the offset of the first record that is played, by partition; nothing while there are
    none. Raises BusError.
    """
    admin = Admin(kafka_bootstrap, client_id="spark-rehearsal")
    ends = admin.end_offsets([(_PLAYED.topic, p) for p in range(_PLAYED.partitions)])
    return {partition: max(end - _RECORDS, 0) for (_, partition), end in ends.items() if end}


class Rehearsal:
    """One in the life of a process, on a thread, from `begin` to its first record or to `end`."""

    def __init__(self, sessions: SparkSessions, begins: Callable[[], dict[int, int]]) -> None:
        """
        Args:
            begins: gives the offset to begin at, by partition; see `newest_records`.
        """
        self._sessions = sessions
        self._begins = begins
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
                target=vital.run(self._rehearse), name="rehearsal", daemon=True
            )
            self._thread.start()

    def end(self) -> None:
        """Return when nothing of it runs any more."""
        self._halt.set()
        if self._thread is not None:
            self._thread.join()

    def _rehearse(self) -> None:
        first: dict[int, int] = {}
        try:
            first = self._begins()
            self._play(first)
            _log.info("rehearsed: ready to lead")
            self._over.set()
            while not first and not self._halt.wait(_EMPTY_SECONDS):
                if first := self._begins():
                    self._play(first)
        except Exception as failed:
            # whoever is not rehearsed leads, too, only later
            _log.warning("the rehearsal failed", reason=str(failed)[:500])
        finally:
            self._over.set()

    def _play(self, first: dict[int, int]) -> None:
        scratch = tempfile.mkdtemp(prefix="rehearsal-")
        try:
            query = self._sessions.rehearse(_PLAYED, pass_by, scratch, first or _ANY)
            try:
                self._watch(query, min(len(first), 1))
            finally:
                query.stop()
        finally:
            with contextlib.suppress(OSError):
                shutil.rmtree(scratch)

    def _watch(self, query: StreamingQuery, rows: int) -> None:
        """Wait until the query has read so many *rows*: the first epoch may be over before Python
        is there.
        """
        looks = round(_PATIENCE_SECONDS / _LOOK_SECONDS)
        for _ in range(looks):
            progress = query.lastProgress
            done = progress is not None and progress["numInputRows"] >= rows
            if done or not query.isActive:
                break
            if self._halt.wait(_LOOK_SECONDS):
                return
        failure = query.exception()
        if failure is not None:
            raise failure

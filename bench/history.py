"""fill_history: rows/s and memory of a stream that computes what its source held before it,
INTERVAL windows of two or three rows each.

The source is written and in segments first. The clock runs from CREATE STREAM … FILL_HISTORY 1
ASYNC until SHOW STREAMS says `ready`. Memory is the largest worker's while history was filled,
beside the largest one's just before.
"""

from __future__ import annotations

import contextlib
import threading
import time

import psutil
import tenacity

from bench import rows
from bench.fill import fill
from bench.profile import Profile
from bench.report import Recorder, median_line
from bench.rows import Fleet
from bench.stage import Stage
from penstock import names
from penstock.errors import RemoteError

_STREAM = (
    "CREATE STREAM {db}.s TRIGGER AT_ONCE FILL_HISTORY 1 ASYNC INTO {db}.w AS "
    "SELECT _wstart, count(*) AS n, sum(current) AS s, max(voltage) AS v FROM {db}.meters PARTITION BY tbname INTERVAL(250a)"
)
_PATIENCE = 1800.0


class _Behind(Exception):
    """The store has not read everything yet."""


def measure(stage: Stage, profile: Profile, record: Recorder) -> None:
    """One line."""
    database = "benchpast"
    stage.client.execute(f"CREATE DATABASE {database}")
    stage.client.execute(f"CREATE STABLE {database}.meters {rows.COLUMNS}")
    table = stage.table(database, "meters")
    fleet = Fleet(partitions=table.partitions)
    topic = names.ingest_topic(database)
    sweeps = fleet.sweeps(profile.history_rows)
    fill(stage.mesh.kafka_bootstrap, topic, fleet, 0, sweeps, table, 250)
    stage.caught_up(topic, stage.ends(topic), {})
    total = sweeps * fleet.tables
    _stored(stage, f"SELECT count(*) FROM {database}.meters", total)
    before = _largest(stage)
    seen = []
    begin = time.monotonic()
    stage.client.execute(_STREAM.format(db=database))
    returned = time.monotonic() - begin
    peak = before
    pause = threading.Event()
    while True:
        [(status, message)] = stage.client.query(
            f"SELECT status, message FROM information_schema.ins_streams WHERE source_db = '{database}'"
        ).rows
        peak = max(peak, _largest(stage))
        seen.append(message)
        if status == "ready" or time.monotonic() - begin > _PATIENCE:
            break
        pause.wait(0.1)
    seconds = time.monotonic() - begin
    stage.client.drain(database)
    _stored(stage, f"SELECT sum(n) FROM {database}.w", total)
    windows = stage.client.query(f"SELECT count(*) FROM {database}.w").rows[0][0]
    note = f"{total / 1e6:g} M rows in {windows} windows, {seconds:.1f} s; CREATE STREAM … ASYNC took {returned:.2f} s, "
    note += f"{len(set(seen))} steps of progress seen; largest worker {before:.0f} MiB before, at most {peak:.0f} MiB meanwhile"
    record.add(median_line("fill_history", [total / seconds], "rows/s", note=note))
    stage.drop(database)


def _stored(stage: Stage, counting: str, total: int) -> None:
    """Wait until the store, which reads Kafka behind the operator, counts *total*.

    Raises:
        _Behind: it counts less after half an hour.
        RemoteError: it counts more, or does not answer.
    """
    found: object = None
    for attempt in tenacity.Retrying(
        retry=tenacity.retry_if_exception_type((_Behind, RemoteError)),
        wait=tenacity.wait_fixed(1),
        stop=tenacity.stop_after_delay(_PATIENCE),
        reraise=True,
    ):
        with attempt:
            found = stage.client.query(counting).rows[0][0]
            if (found or 0) < total:
                raise _Behind(f"{counting}: {found} of {total}")
    if found != total:
        raise RemoteError(f"{counting}: {found} instead of {total}")


def _largest(stage: Stage) -> float:
    """MiB of the largest Python process of the stream jobs."""
    sizes = [0.0]
    for process in stage.mesh.processes("spark"):
        with contextlib.suppress(psutil.Error):
            if process.name() != "java":
                sizes.append(process.memory_info().rss / 2**20)
    return max(sizes)

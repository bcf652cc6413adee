"""fill_history: rows/s and memory of a stream that computes what its source held before it, INTERVAL windows of two or three rows each.

The source is written and in segments first. The clock runs from CREATE STREAM … FILL_HISTORY 1 ASYNC until SHOW STREAMS says `ready`.
Memory is the largest worker's while history was filled, beside the largest one's just before.
"""

from __future__ import annotations

import contextlib
import threading
import time

import psutil

from bench import rows
from bench.fill import fill
from bench.profile import Profile
from bench.report import Recorder, median_line
from bench.rows import Fleet
from bench.stage import Stage
from penstock import names

_STREAM = (
    "CREATE STREAM {db}.s TRIGGER AT_ONCE FILL_HISTORY 1 ASYNC INTO {db}.w AS "
    "SELECT _wstart, count(*) AS n, sum(current) AS s, max(voltage) AS v FROM {db}.meters PARTITION BY tbname INTERVAL(250a)"
)
_PATIENCE = 1800.0


def measure(stage: Stage, profile: Profile, record: Recorder) -> None:
    """One line."""
    database, fleet = "benchpast", Fleet()
    stage.client.execute(f"CREATE DATABASE {database}")
    stage.client.execute(f"CREATE STABLE {database}.meters {rows.COLUMNS}")
    topic, sweeps = names.ingest_topic(database), fleet.sweeps(profile.history_rows)
    fill(stage.mesh.kafka_bootstrap, topic, fleet, 0, sweeps, stage.table(database, "meters"), 250)
    stage.caught_up(topic, stage.ends(topic), {})
    total = sweeps * fleet.tables
    held = int(stage.client.query(f"SELECT count(*) FROM {database}.meters").rows[0][0])
    if held != total:
        record.problem(f"fill_history: {held} of {total} rows are stored")
    before, seen = _largest(stage), []
    begin = time.monotonic()
    stage.client.execute(_STREAM.format(db=database))
    returned, peak = time.monotonic() - begin, before
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
    windows, counted = stage.client.query(f"SELECT count(*), sum(n) FROM {database}.w").rows[0]
    if counted != total:
        record.problem(f"fill_history: {counted} of {total} rows are in windows")
    note = f"{total / 1e6:g} M rows in {windows} windows, {seconds:.1f} s; CREATE STREAM … ASYNC took {returned:.2f} s, "
    note += f"{len(set(seen))} steps of progress seen; largest worker {before:.0f} MiB before, at most {peak:.0f} MiB meanwhile"
    record.add(median_line("fill_history", [total / seconds], "rows/s", note=note))
    stage.drop(database)


def _largest(stage: Stage) -> float:
    """MiB of the largest Python process of the stream jobs."""
    sizes = [0.0]
    for process in stage.mesh.processes("spark"):
        with contextlib.suppress(psutil.Error):
            if process.name() != "java":
                sizes.append(process.memory_info().rss / 2**20)
    return max(sizes)

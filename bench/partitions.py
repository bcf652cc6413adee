"""partitions_…: what ALTER DATABASE … PARTITIONS makes others wait for, from 2 to 4 and on to 8,
with 300,000 rows of 1,000 tables there.

One stream over the table, and one client that writes a row at a time, each when the one before is
acknowledged. `partitions_write_wait` is the longest of its writes, `partitions_statement` the
statement's own time: when it returns, results come from the new topic.
"""

from __future__ import annotations

import threading
import time

from bench import rows
from bench.fill import fill
from bench.profile import Profile
from bench.report import Recorder, median_line
from bench.rows import Fleet
from bench.stage import Stage
from penstock import names

_DATABASE = "benchmore"
_STREAM = (
    f"CREATE STREAM {_DATABASE}.s TRIGGER AT_ONCE INTO {_DATABASE}.w AS "
    f"SELECT _wstart, count(*) AS n, sum(current) AS s FROM {_DATABASE}.meters PARTITION BY tbname INTERVAL(10s)"
)
_STEPS = (4, 8)


class _Writer:
    """Writes row after row, in a thread; knows how long the slowest took."""

    def __init__(self, stage: Stage, first: int) -> None:
        self._stage = stage
        self._first = first
        self._halt = threading.Event()
        self._thread = threading.Thread(target=self._run, name="writer")
        self.rows = 0
        self.longest = 0.0

    def __enter__(self) -> _Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._halt.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._halt.is_set():
            number = self._first + self.rows
            row = {
                "tbname": f"single{number % 100}",
                "ts": rows.BASE + number,
                "current": 1.0,
                "voltage": 1,
                "phase": 0.0,
                "site": 0,
            }
            begin = time.monotonic()
            self._stage.client.write(f"{_DATABASE}.meters", [row])
            self.longest = max(self.longest, time.monotonic() - begin)
            self.rows += 1


def measure(stage: Stage, profile: Profile, record: Recorder) -> None:
    """Two lines; a round is one change."""
    fleet = Fleet(tables=1000, partitions=2)
    stage.client.execute(f"CREATE DATABASE {_DATABASE} PARTITIONS {fleet.partitions}")
    stage.client.execute(f"CREATE STABLE {_DATABASE}.meters {rows.COLUMNS}")
    stage.client.execute(_STREAM)
    sweeps = fleet.sweeps(300_000)
    fill(
        stage.mesh.kafka_bootstrap,
        names.ingest_topic(_DATABASE),
        fleet,
        0,
        sweeps,
        stage.table(_DATABASE, "meters"),
        250,
    )
    stage.client.drain(_DATABASE)
    waits = []
    took = []
    written = 0
    for partitions in _STEPS:
        with _Writer(stage, written) as writer:
            begin = time.monotonic()
            stage.client.execute(f"ALTER DATABASE {_DATABASE} PARTITIONS {partitions}")
            took.append(time.monotonic() - begin)
        waits.append(writer.longest * 1000)
        written += writer.rows
    stage.client.drain(_DATABASE)
    total = sweeps * fleet.tables + written
    for counting in (f"count(*) FROM {_DATABASE}.meters", f"sum(n) FROM {_DATABASE}.w"):
        [(found,)] = stage.client.query(f"SELECT {counting}").rows
        if found != total:
            record.problem(f"partitions: {counting} is {found}, {total} rows were written")
    note = f"2 → 4, 4 → 8; {written} rows written meanwhile, one after the other"
    record.add(
        median_line("partitions_write_wait", waits, "ms", note=note),
        median_line("partitions_statement", took, "s", note=note),
    )
    stage.drop(_DATABASE)

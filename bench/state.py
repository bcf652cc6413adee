"""state_*: what a million child tables with an open window each take: memory of the operator's
processes, and bytes of their snapshots.

The operator's Python processes are counted together (PSS), Spark's JVM is not: it has its share
with any number of tables. Then a hundredth of the tables get a row each, three times over; what a
snapshot writes for it is compared with the state as a whole.
"""

from __future__ import annotations

import contextlib
import statistics

import psutil

from bench import rows
from bench.fill import fill
from bench.profile import Profile
from bench.report import Line, Recorder
from bench.rows import Fleet
from bench.stage import Stage
from penstock import names
from penstock.mesh.process import proportional_memory
from penstock.storage.statefile import is_state

_STREAM = (
    "CREATE STREAM {db}.s TRIGGER WINDOW_CLOSE INTO {db}.w AS "
    "SELECT _wstart, count(*), avg(current), max(voltage) FROM {db}.meters PARTITION BY tbname INTERVAL(1h)"
)
_ONE_IN = 100
_ROUNDS = 3
_WRITE = 250


def measure(stage: Stage, profile: Profile, record: Recorder) -> None:
    """Two lines."""
    database = "manytables"
    stage.client.execute(f"CREATE DATABASE {database}")
    stage.client.execute(f"CREATE STABLE {database}.meters {rows.COLUMNS}")
    stage.client.execute(_STREAM.format(db=database))
    topic = names.ingest_topic(database)
    table = stage.table(database, "meters")
    before = _operator_memory(stage)

    def put(tables: int, sweep: int) -> dict[str, int]:
        """A row of each of the first *tables*; sizes of the state files there are then."""
        fill(
            stage.mesh.kafka_bootstrap,
            topic,
            Fleet(tables, table.partitions),
            sweep,
            1,
            table,
            _WRITE,
        )
        stage.caught_up(topic, stage.ends(topic), {})
        return _state_files(stage, topic)

    files = put(profile.state_tables, 0)
    memory = _operator_memory(stage)
    whole = sum(files.values())
    written = []
    for n in range(_ROUNDS):
        now = put(profile.state_tables // _ONE_IN, 1 + n)
        written.append(sum(size for name, size in now.items() if name not in files) / 2**20)
        files = now
    note = f"{profile.state_tables} child tables with one open window each, all of the operator's Python processes; baseline: before the first"
    record.add(
        Line("state_memory", memory, "MiB", baseline=before, mode=stage.mode(topic), note=note)
    )
    note = f"written when one table in {_ONE_IN} got a row: {' / '.join(f'{w:.2f}' for w in written)}; baseline: the state after all tables"
    record.add(
        Line(
            "state_snapshot",
            statistics.median(written),
            "MiB",
            baseline=whole / 2**20,
            mode=stage.mode(topic),
            note=note,
        )
    )
    stage.drop(database)


def _operator_memory(stage: Stage) -> float:
    """MiB of all Python processes of the stream jobs together."""
    total = 0
    for process in stage.mesh.processes("spark"):
        with contextlib.suppress(psutil.Error):
            if process.name() != "java":
                total += proportional_memory(process.pid, children=False)
    return total / 2**20


def _state_files(stage: Stage, topic: str) -> dict[str, int]:
    """Path and size of every state file of *topic*."""
    found = {}
    for path in stage.mesh.layout.root.rglob("p*"):
        with contextlib.suppress(FileNotFoundError):
            if is_state(path.name) and topic in path.as_posix():
                found[str(path)] = path.stat().st_size
    return found

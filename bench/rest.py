"""rest_…: what databases cost in which nothing happens, and how soon a row in one of them has its
result.

Each database has a table and a stream over it. Topics rest after a few seconds here, so that the
bench need not wait for minutes; nothing else differs from a mesh as it is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

import numpy as np
import psutil

from bench import load
from bench.profile import Profile
from bench.report import Line, Recorder
from bench.stage import Stage
from penstock.bus import Reader
from penstock.codec import schema_ids
from penstock.errors import RemoteError

#: as the stage sets it
IDLE_SECONDS = 8
_STREAM = (
    "CREATE STREAM {db}.s TRIGGER AT_ONCE INTO {db}.w AS "
    "SELECT _wstart, count(*) AS n FROM {db}.m PARTITION BY tbname INTERVAL(1s)"
)
#: Spark keeps workers that have nothing to do for so long
_WORKERS_STAY = 75.0
#: databases that are woken one after the other
_WOKEN = 60
_PATIENCE = 900.0


def measure(stage: Stage, profile: Profile, record: Recorder) -> None:
    """A mesh with one database; then with more and more of them, their first rows one by one, and
    at last a row in all of them at once.
    """
    databases = _create(stage, 1, [])[0]
    before = _settled(stage)
    note = f"PSS of all processes, one database with a stream; {before.text}"
    record.add(Line("rest_memory", before.memory, "MiB", note=note))
    cores, parts = _cores(stage, profile.rest_seconds)
    note = f"over {profile.rest_seconds:g} s; {parts}"
    record.add(Line("rest_cores", cores, "cores", note=note))
    for number in profile.rest_databases:
        more, times = _create(stage, number, databases)
        databases += more
        after = _settled(stage)
        note = f"PSS of all processes with {number} databases, against one; {after.text}"
        record.add(
            Line(f"rest_{number}_memory", after.memory, "MiB", baseline=before.memory, note=note)
        )
        record.add(Line(f"rest_{number}_processes", after.processes, "", baseline=before.processes))
        cores, parts = _cores(stage, min(profile.rest_seconds, 60.0))
        record.add(Line(f"rest_{number}_cores", cores, "cores", note=parts))
        for what, taken in times.items():
            _percentiles(record, f"rest_{number}_create_{what}", taken)
        _wake_singly(stage, record, number, databases)
        _wake_all(stage, record, number, databases)


class _Settled:
    """A mesh when all its databases are at rest."""

    def __init__(self, stage: Stage) -> None:
        by_service = stage.memory()
        self.memory = sum(by_service.values())
        self.processes = len(_processes(stage))
        self.text = ", ".join(f"{name} {size:.0f}" for name, size in by_service.items())


def _settled(stage: Stage) -> _Settled:
    """Wait until every database is at rest and its workers are gone."""
    _until(lambda: all(mode == "rest" for mode in _modes(stage)), "a database does not rest")
    time.sleep(_WORKERS_STAY)
    return _Settled(stage)


def _modes(stage: Stage) -> list[str]:
    topics = [d.topic for d in stage.catalog.catalog.databases()]
    return [stage.mode(topic) for topic in topics]


def _until(done: Callable[[], bool], message: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not done():
        if time.monotonic() > deadline:
            raise RemoteError(message, detail=f"after {_PATIENCE:g} s")
        time.sleep(0.5)


def _processes(stage: Stage) -> list[psutil.Process]:
    services = stage.mesh.state()["services"]
    return [
        p for name, about in services.items() if about["pid"] for p in stage.mesh.processes(name)
    ]


def _cores(stage: Stage, seconds: float) -> tuple[float, str]:
    """Return how many cores the mesh needs with nothing to do, and which service how many."""
    services = [name for name, about in stage.mesh.state()["services"].items() if about["pid"]]
    before = {name: stage.cpu(name) for name in services}
    time.sleep(seconds)
    spent = {name: (stage.cpu(name) - before[name]) / seconds for name in services}
    return sum(spent.values()), ", ".join(f"{name} {part:.3f}" for name, part in spent.items())


def _create(
    stage: Stage, number: int, there: Sequence[str]
) -> tuple[list[str], dict[str, list[float]]]:
    """Make databases until there are *number*; return the new ones, and what the statements took in
    milliseconds.
    """
    times: dict[str, list[float]] = {"database": [], "table": [], "stream": []}
    made = []
    for n in range(len(there), number):
        name = f"rest{n}"
        made.append(name)
        for what, statement in (
            ("database", f"CREATE DATABASE {name}"),
            ("table", f"CREATE STABLE {name}.m {load.COLUMNS}"),
            ("stream", _STREAM.format(db=name)),
        ):
            begin = time.perf_counter()
            stage.client.execute(statement)
            times[what].append((time.perf_counter() - begin) * 1000)
    return made, times


def _percentiles(record: Recorder, name: str, taken: Sequence[float]) -> None:
    p50, p95 = np.percentile(taken, [50, 95])
    record.add(Line(f"{name}_p95", float(p95), "ms", note=f"{len(taken)}, p50 {p50:.0f} ms"))


# -------------------------------------------------------------------- waking


def _wake_singly(stage: Stage, record: Recorder, number: int, databases: Sequence[str]) -> None:
    """From a row in the log to its result there, into databases at rest, one after the other."""
    waits = []
    for name in databases[:_WOKEN]:
        waits += _wake(stage, [name])
        time.sleep(1)
    _percentiles(record, f"rest_{number}_wake", waits)


def _wake_all(stage: Stage, record: Recorder, number: int, databases: Sequence[str]) -> None:
    """The same with a row into each at once."""
    _until(lambda: all(mode == "rest" for mode in _modes(stage)), "a database does not rest")
    begin = time.monotonic()
    waits = _wake(stage, databases)
    took = time.monotonic() - begin
    load_average = os.getloadavg()[0]
    note = f"a row into each of {number} databases at once until all have their result"
    record.add(Line(f"rest_{number}_wake_all", took, "s", note=note))
    _percentiles(record, f"rest_{number}_wake_all", waits)
    record.add(Line(f"rest_{number}_wake_all_load", load_average, "", note="load average, 1 min"))


def _wake(stage: Stage, databases: Sequence[str]) -> list[float]:
    """Write a row into each database; return from when it was in the log until its result was, in
    milliseconds, by the broker's clock.
    """
    catalog = stage.catalog.catalog
    tables = {name: (stage.table(name, "m"), stage.table(name, "w")) for name in databases}
    offsets = {
        (source.topic, p): end
        for source, _ in tables.values()
        for p, end in stage.ends(source.topic).items()
    }
    owner = {source.topic: name for name, (source, _) in tables.items()}
    rows: dict[str, int] = {}
    results: dict[str, int] = {}
    now = int(time.time() * 1000)
    with Reader(stage.mesh.kafka_bootstrap, offsets, client_id="bench-rest") as reader:
        for name in databases:
            row = {"tbname": "t", "ts": now, "seq": 1, "current": 1.0, "voltage": 1, "site": 0}
            stage.client.write(f"{name}.m", [row])
        deadline = time.monotonic() + _PATIENCE
        while len(results) < len(databases):
            if time.monotonic() > deadline:
                raise RemoteError("rows have no results", detail=str(set(databases) - set(results)))
            for batch in reader.read(timeout=1.0):
                name = owner[batch.topic]
                for found, at in zip(schema_ids(batch.values), batch.timestamps, strict=True):
                    table = catalog.schema(int(found))
                    if table is not None:
                        seen = results if table[0].name == "w" else rows
                        seen.setdefault(name, int(at))
    return [float(results[name] - rows[name]) for name in databases]

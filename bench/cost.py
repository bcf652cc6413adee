"""streams_100_*, streams_1000_mixed_cpu, create_stream_p95 and mem_*: what many streams cost, how soon a stream is live,
and how much memory the services take.
"""

from __future__ import annotations

import threading
import time

import numpy as np

from bench import load, rows
from bench.fill import fill
from bench.profile import Profile
from bench.report import Line, Recorder
from bench.rows import Fleet
from bench.stage import Stage
from penstock import names

_STREAM = (
    "CREATE STREAM {db}.s{n} TRIGGER WINDOW_CLOSE INTO {db}.w{n} AS SELECT _wstart, count(*), avg(current), max(voltage) "
    "FROM {db}.meters {where} PARTITION BY tbname INTERVAL({seconds}s)"
)
_LIVE = "CREATE STREAM {db}.s{n} TRIGGER AT_ONCE INTO {db}.w{n} AS SELECT _wstart, count(*) FROM {db}.m{n} PARTITION BY tbname INTERVAL(1s)"
_MANY = 100
_THOUSAND = 1000


def many_streams(stage: Stage, profile: Profile, record: Recorder) -> None:
    """CPU seconds of the stream jobs for a million rows: one stream over the table, a hundred that
    ask the same, a hundred others, a thousand others.
    """
    equal = [_STREAM.format(db="many", n=n, where="", seconds=10) for n in range(_MANY)]
    # 20 conditions, of which the strictest lets half of the rows pass, and 5 lengths of windows for
    # the first hundred, 50 for all
    mixed = [
        _STREAM.format(
            db="mixed", n=n, where=f"WHERE voltage >= {200 + n % 20}", seconds=10 + n // 20 * 10
        )
        for n in range(_THOUSAND)
    ]
    one, hundred = _costs(stage, profile, "many", [equal[:1], equal[1:]])
    others, thousand = _costs(stage, profile, "mixed", [mixed[:_MANY], mixed[_MANY:]])
    of = "against one, the same rows, core seconds of the service `spark` for a million rows"
    mode = stage.mode(names.ingest_topic("mixed"))
    note = f"{_MANY} streams with the same 10 s windows per table {of}"
    record.add(Line("streams_100_cpu", hundred, "s/M rows", baseline=one, mode=mode, note=note))
    note = f"{_MANY} streams, no two with the same condition and length of windows, {of}"
    record.add(
        Line("streams_100_mixed_cpu", others, "s/M rows", baseline=one, mode=mode, note=note)
    )
    note = f"{_THOUSAND} streams, no two with the same condition and length of windows, {of}"
    record.add(
        Line("streams_1000_mixed_cpu", thousand, "s/M rows", baseline=one, mode=mode, note=note)
    )
    stage.drop("many")
    stage.drop("mixed")


def _costs(stage: Stage, profile: Profile, database: str, steps: list[list[str]]) -> list[float]:
    """Core seconds for a million rows of *database* after the statements of each step, warm."""
    stage.client.execute(f"CREATE DATABASE {database}")
    stage.client.execute(f"CREATE STABLE {database}.meters {rows.COLUMNS}")
    topic = names.ingest_topic(database)
    table = stage.table(database, "meters")
    fleet = Fleet(1000, table.partitions)
    sweeps = fleet.sweeps(profile.many_rows)
    done = 0
    costs = []
    for statements in steps:
        for statement in statements:
            stage.client.execute(statement)
        for counted in (False, True):  # the first pass makes every table known
            with stage.held():
                fill(stage.mesh.kafka_bootstrap, topic, fleet, done, sweeps, table, 250)
                until = stage.ends(topic)
            done += sweeps
            before = stage.cpu("spark")
            stage.caught_up(topic, until, {})
            if counted:
                costs.append((stage.cpu("spark") - before) / (sweeps * fleet.tables) * 1e6)
    return costs


def create_stream(stage: Stage, profile: Profile, record: Recorder) -> None:
    """How long CREATE STREAM takes until the stream is live everywhere, one after the other, the
    first on its table included.
    """
    stage.client.execute("CREATE DATABASE soon")
    times = []
    for n in range(profile.create_streams):
        stage.client.execute(f"CREATE STABLE soon.m{n} {load.COLUMNS}")
        started = time.perf_counter()
        stage.client.execute(_LIVE.format(db="soon", n=n))
        times.append((time.perf_counter() - started) * 1000)
    p50, p95 = np.percentile(times, [50, 95])
    note = f"{len(times)} streams, p50 {p50:.0f} ms, each its table's first"
    record.add(Line("create_stream_p95", float(p95), "ms", mode="realtime", note=note))
    stage.drop("soon")


def memory(stage: Stage, profile: Profile, record: Recorder) -> None:
    """PSS of each service with nothing to do, and of all while 100,000 rows/s go through a stream of
    windows.
    """
    time.sleep(min(profile.warm_seconds, 10))
    idle = stage.memory()
    for service, mebibytes in idle.items():
        record.add(Line(f"mem_{service}_idle", mebibytes, "MiB"))
    record.add(
        Line(
            "mem_total_idle",
            sum(idle.values()),
            "MiB",
            note="PSS, one database-less mesh just started",
        )
    )
    stage.client.execute("CREATE DATABASE memory")
    stage.client.execute(f"CREATE STABLE memory.m0 {load.COLUMNS}")
    stage.client.execute(_LIVE.format(db="memory", n=0))
    seconds = min(max(profile.latency_seconds, 5), 20)
    table = stage.table("memory", "m0")
    made = load.make(100_000, seconds, table, batched=True, partitions=table.partitions)
    topic = names.ingest_topic("memory")
    worker = threading.Thread(
        target=load.run,
        args=(stage.mesh.kafka_bootstrap, topic, topic, table.partitions, made),
        daemon=True,
    )
    worker.start()
    samples = []
    while worker.is_alive():
        samples.append(stage.memory())
        worker.join(2)
    highest = max(samples, key=lambda s: sum(s.values()))
    note = "PSS at its highest with 100,000 rows/s into 1 s windows; " + ", ".join(
        f"{r} {m:.0f}" for r, m in highest.items()
    )
    record.add(Line("mem_total_load", sum(highest.values()), "MiB", mode="realtime", note=note))
    stage.drop("memory")

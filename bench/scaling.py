"""`python -m bench.scaling [--workers 1,2,4] [--cpus 0.5] [--rows N]`: one backlog and ever more
Spark workers of the compose stack.

Each worker container may use so many processors and no more, as if it were a machine of its own.
Workers are paused while rows are published, so that the publisher is not measured; the clock runs
between positions that the operator has saved. Every window is compared with what the rows give.
Prints one line a number of workers; docs/scaling.md says what they were.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import redis

from bench import rows
from bench.fill import fill
from bench.rows import Fleet
from bench.stage import Stage
from bench.throughput import compare
from penstock import names
from penstock.bus import Admin
from penstock.catalog.reader import CatalogReader
from tests.backends import RunningStack, running_stack

_DATABASE = "scaling"
#: partitions have moved by then
_EPOCH_SECONDS = 75.0
_STREAM = (
    f"CREATE STREAM {_DATABASE}.s TRIGGER WINDOW_CLOSE INTO {_DATABASE}.w TAGS (meter VARCHAR(20)) AS "
    "SELECT _wstart, count(*) AS n, sum(current) AS s, avg(current) AS c, max(voltage) AS v "
    f"FROM {_DATABASE}.meters PARTITION BY tbname AS meter INTERVAL(10s)"
)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.scaling", description="one backlog, ever more Spark workers"
    )
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--cpus", default="0.5")
    parser.add_argument("--rows", type=int, default=8_000_000)
    given = parser.parse_args()
    fleet = Fleet(partitions=8)
    with tempfile.TemporaryDirectory(prefix="penstock-scaling-") as scratch:
        with (
            running_stack(
                Path(scratch), STACK_WORKER_CPUS=given.cpus, STACK_LIVE_TIMEOUT="600"
            ) as stack,
            stack.connect(timeout=900) as client,
        ):
            with CatalogReader(stack.kafka_bootstrap, client_id="bench", children=False) as catalog:
                reports = redis.Redis.from_url(stack.redis_url, decode_responses=True)
                stage = Stage(stack, client, Admin(stack.kafka_bootstrap), reports, catalog)  # type: ignore[arg-type]
                client.execute(f"CREATE DATABASE {_DATABASE} PARTITIONS {fleet.partitions}")
                client.execute(f"CREATE STABLE {_DATABASE}.meters {rows.COLUMNS}")
                client.execute(_STREAM)
                done = 0
                for workers in map(int, given.workers.split(",")):
                    done = _measure(stack, stage, fleet, workers, done, given.rows)


def _measure(
    stack: RunningStack, stage: Stage, fleet: Fleet, workers: int, done: int, total: int
) -> int:
    stack.scale(spark_worker=workers)
    topic = names.ingest_topic(_DATABASE)
    table = stage.table(_DATABASE, "meters")
    asked = time.monotonic()
    # Spark places a topic's partitions by a hash of theirs: some workers may get none
    while (
        len(_hosts(stage, topic)) < min(workers, fleet.partitions)
        and time.monotonic() - asked < _EPOCH_SECONDS
    ):
        time.sleep(0.2)
    at_work = time.monotonic() - asked
    warm = fleet.sweeps(fleet.tables)
    start = stage.ends(topic)
    fill(stack.kafka_bootstrap, topic, fleet, done, warm, table, 250)
    stage.caught_up(topic, stage.ends(topic), start)
    done += warm
    sweeps = fleet.sweeps(total)
    start = stage.ends(topic)
    containers = stack.containers("spark-worker")
    for container in containers:
        container.pause()
    fill(stack.kafka_bootstrap, topic, fleet, done, sweeps, table, 250)
    until = stage.ends(topic)
    for container in containers:
        container.unpause()
    done += sweeps
    drained = stage.caught_up(topic, until, start)
    written = sum(until.values()) - sum(start.values())
    factor = sweeps * fleet.tables / written
    memory = sum(c.stats(stream=False)["memory_stats"]["usage"] for c in containers) / 2**20
    wrong, count = compare(stage, _DATABASE, fleet, done)
    print(
        f"workers={workers} with_partitions={len(_hosts(stage, topic))} rows={sweeps * fleet.tables} "
        f"rows_per_s={drained.rate * factor:.0f} "
        f"steady={drained.steady * factor:.0f} "
        f"first_position_s={drained.start_up:.1f} joined_after_s={at_work:.1f} "
        f"worker_memory_mib={memory:.0f} windows={count} wrong={wrong}",
        flush=True,
    )
    return done


def _hosts(stage: Stage, topic: str) -> set[str]:
    tasks = stage.redis.hgetall(names.query_progress(topic))
    return {
        json.loads(value)["host"]
        for field, value in tasks.items()
        if str(field).startswith("task:")
    }


if __name__ == "__main__":
    main()

"""Speed and memory of the window kernels alone: no Kafka, no Spark. Prints one JSON line per
measurement.

    python -m bench.kernels [--rows N] [--tables N] [--only NAME]

Rows come as the scan gives them: calls of 64 records of 250 rows (and larger ones), each record one
client write, every child table in turn, 100 ms of event time apart. One thread
(POLARS_MAX_THREADS=1 unless the environment says otherwise).
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from penstock.sql.plan import (
    Aggregate,
    Column,
    Duration,
    Interval,
    Key,
    Output,
    Source,
    StreamPlan,
    Target,
    Trigger,
)
from penstock.types import ColumnType
from penstock.windows.context import KernelContext
from penstock.windows.interval.kernel import IntervalKernel

_DOUBLE = ColumnType("DOUBLE")
_BIGINT = ColumnType("BIGINT")
_TIMESTAMP = ColumnType("TIMESTAMP")
_NAME = ColumnType("VARCHAR", 192)
_BASE = 1_700_006_400_000


def plan(
    trigger: str, functions: tuple[str, ...] = ("count", "avg", "max"), sliding: int = 10
) -> StreamPlan:
    aggregates = tuple(
        Aggregate(
            f"_a{i}", f, None if f == "count" else "current", _BIGINT if f == "count" else _DOUBLE
        )
        for i, f in enumerate(functions)
    )
    columns = (
        Column("ts", _TIMESTAMP),
        Column("current", _DOUBLE),
        Column("voltage", ColumnType("INT")),
        Column("phase", _DOUBLE),
    )
    target = Target(
        2,
        "bench",
        "out",
        (
            Column("_wstart", _TIMESTAMP),
            *(Column(f"c{i}", a.type) for i, a in enumerate(aggregates)),
        ),
        (Column("group_id", ColumnType("BIGINT UNSIGNED")),),
        ("_wstart", *(a.name for a in aggregates)),
        ("group_id",),
    )
    return StreamPlan(
        1,
        "bench",
        "s",
        "",
        Source(1, "bench", "meters", "stable", columns, (), "ms"),
        "scan",
        None,
        (Key("tbname", "tbname", _NAME),),
        Interval(Duration(10, "s"), Duration(sliding, "s")),
        Trigger(trigger),
        aggregates,  # type: ignore[arg-type]
        (
            Output("_wstart", "_wstart", _TIMESTAMP),
            *(Output(a.name, a.name, a.type) for a in aggregates),
        ),
        target,
    )


def calls(rows: int, tables: int, size: int, jitter: int = 0) -> Iterator[pl.DataFrame]:
    """Frames of *size* rows, every table in turn; up to *jitter* ms of disorder between tables."""
    rng = np.random.default_rng(1)
    names = pl.Series([f"d{k:06d}" for k in range(tables)])
    for start in range(0, rows, size):
        at = np.arange(start, start + size)
        ts = _BASE + (at // tables) * 100
        if jitter:
            ts = ts + (at % tables) % jitter
        yield pl.DataFrame(
            {
                "_step": ((at - start) // 250).astype(np.uint32),
                "_offset": at // 250,
                "_now": ts,
                "_op": np.zeros(size, np.int8),
                "tbname": names.gather(at % tables),
                "ts": ts,
                "current": rng.normal(10, 1, size),
                "voltage": rng.integers(200, 240, size).astype(np.int32),
                "phase": rng.random(size),
            }
        )


def throughput(name: str, made: StreamPlan, rows: int, tables: int, size: int) -> dict[str, Any]:
    kernel = IntervalKernel(made)
    frames = list(calls(tables, tables, min(size, tables)))
    for frame in frames:  # every table once: steady state
        kernel.apply(frame)
    spent = 0.0
    worked = 0.0
    produced = 0
    slowest = 0.0
    for frame in calls(rows, tables, size):
        begin = time.perf_counter()
        busy = time.process_time()
        emission = kernel.apply(frame)
        took = time.perf_counter() - begin
        worked = worked + time.process_time() - busy
        spent = spent + took
        slowest = max(slowest, took)
        produced += emission.rows.height if emission.rows is not None else 0
    return {
        "name": name,
        "value": round(rows / spent),
        "unit": "rows/s",
        "per_cpu_second": round(rows / worked),
        "results": produced,
        "slowest_call_ms": round(slowest * 1e3, 2),
    }


def mixed(count: int, tables: int = 250, size: int = 100_000) -> dict[str, Any]:
    """CPU time of *count* kernels over the same rows, of 20 conditions and many lengths of windows,
    no two alike; sums of these rows are rounded.
    """
    context = KernelContext()
    made = plan("window_close")
    kernels = []
    for n in range(count):
        length = Duration(10 + n // 20 * 10, "s")
        other = replace(made, where=f"voltage >= {200 + n % 20}", window=Interval(length, length))
        kernels.append(IntervalKernel(other, context=context))
    worked = 0.0
    for number, frame in enumerate(calls(6 * size, tables, size)):
        begin = time.process_time()
        with context.answers.among(frame, count):
            for kernel in kernels:
                kernel.apply(frame)
        if number >= 3:  # by then most of them have published windows
            worked += time.process_time() - begin
    return {
        "name": f"kernels_{count}_mixed",
        "value": round(worked / (3 * size) * 1e6, 3),
        "unit": "us/row of CPU time",
    }


def memory(tables: int) -> dict[str, Any]:
    before = _resident()
    kernel = IntervalKernel(plan("window_close"))
    for frame in calls(tables, tables, 16_000):
        kernel.apply(frame)
    return {
        "name": f"kernel_memory_{tables}_tables",
        "value": round((_resident() - before) / 2**20),
        "unit": "MiB",
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=6_400_000)
    parser.add_argument("--tables", type=int, default=10_000)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    jobs = {
        f"kernel_{trigger}_{size}": (plan(trigger), size)
        for size in (16_000, 100_000)
        for trigger in ("window_close", "at_once")
    } | {
        "kernel_window_close_first_last_16000": (plan("window_close", ("first", "last")), 16_000),
        "kernel_sliding5_window_close_16000": (plan("window_close", sliding=5), 16_000),
        "kernel_stddev_window_close_16000": (plan("window_close", ("stddev",)), 16_000),
    }
    for name, (made, size) in jobs.items():
        if given.only in name:
            print(
                json.dumps(throughput(name, made, given.rows // size * size, given.tables, size)),
                flush=True,
            )
    for count in (1, 100, 1000):
        if given.only in f"kernels_{count}_mixed":
            print(json.dumps(mixed(count)), flush=True)
    if given.only in "kernel_memory":
        print(json.dumps(memory(1_000_000)), flush=True)


if __name__ == "__main__":
    main()

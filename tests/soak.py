"""`python -m tests.soak`: a mesh under steady load; memory, file handles and lag of every service over
time. Fails on a trend.

A trend is what the second half of the measurements grows by, by and by, if it is more than a service
may: load begins cold, and caches fill up first. A single step is none, nor is a value that is out
of line.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil

from penstock.mesh.process import proportional_memory
from tests.faults.checks import CHECKS, Notifications
from tests.faults.load import Load
from tests.faults.world import World, persistently

EVERY_SECONDS = 10.0
#: growth over an hour that is no trend: bytes, handles, records behind
MAY_GROW = {"MB": 150.0, "handles": 60.0, "lag": 2000.0}
#: MB that a service takes sooner or later: the broker's heap and what a JVM has beside it; twelve
#: workers of the stream jobs, any of which may get any partition when an epoch turns, and then keeps
#: what the largest takes. Their JVM and their largest worker are looked at by themselves
SOONER_OR_LATER = {"kafka": 500.0, "spark": 2000.0}


def trend(times: list[float], values: list[float]) -> float:
    """Growth per hour in the second half of the values: the median of the slopes between any two of
    them.
    """
    half = len(values) // 2
    x = np.array(times[half:])
    y = np.array(values[half:])
    i, j = np.triu_indices(len(x), 1)
    return float(np.median((y[j] - y[i]) / (x[j] - x[i])) * 3600) if len(x) > 2 else 0.0


def measure(world: World, lag: float) -> dict[tuple[str, str], float]:
    found = {("streams", "lag"): lag}
    for service, state in world.mesh.state()["services"].items():
        if state["pid"] is None:
            continue
        found[service, "MB"] = proportional_memory(state["pid"]) / 1e6
        handles = 0
        for process in world.mesh.processes(service):
            with suppress(psutil.Error):
                handles += process.num_fds()
        found[service, "handles"] = handles
    jobs = world.mesh.processes("spark")
    for name, what in (("JVM", "SparkSubmit"), ("worker", "pyspark.worker")):
        alike = [p.pid for p in jobs if _runs(p, what)]
        found[name, "MB"] = max(
            (proportional_memory(pid, children=False) / 1e6 for pid in alike), default=0.0
        )
    return found


def _runs(process: psutil.Process, what: str) -> bool:
    with suppress(psutil.Error):
        return any(what in word for word in process.cmdline())
    return False


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--minutes", type=float, default=20.0)
    minutes = parser.parse_args().minutes
    with tempfile.TemporaryDirectory(prefix="penstock-soak") as directory:
        # memory that is bounded has to be full before the second half begins, that of a stream's
        # results, too, which are few: at the usual room for rows that takes longer than this runs.
        # And epochs turn six times as often as usual
        bounds = {
            "PENSTOCK_SPARK_LIVE_ROWS": "5000",
            "PENSTOCK_FEDERATION_FEED_BYTES": str(4 << 20),
            "PENSTOCK_SPARK_EPOCH_SECONDS": "10",
        }
        world = World(Path(directory) / "mesh", **bounds)
        try:
            return soak(world, minutes)
        finally:
            world.close()


def soak(world: World, minutes: float) -> int:
    world.client.execute("CREATE DATABASE soak")
    world.client.execute(
        "CREATE STABLE m (ts TIMESTAMP, v DOUBLE, k INT, state INT) TAGS (site VARCHAR(8))",
        database="soak",
    )
    # the messages that a target of NOTIFY got would be kept by this process
    checks = [kind(world, "soak") for kind in CHECKS if kind is not Notifications]
    for check in checks:
        check.setup()
    # whatever the streams can keep up with or not: their lag is what is looked at
    load = Load(world, "soak", bearable=float("inf"))
    times = []
    series: dict[tuple[str, str], list[float]] = defaultdict(list)
    began = time.monotonic()
    with load.flowing():
        while (at := time.monotonic() - began) < minutes * 60:
            time.sleep(EVERY_SECONDS)
            found = measure(world, world.lag())
            times.append(at)
            for key, value in found.items():
                series[key].append(value)
            shown = "  ".join(
                f"{service} {value:.0f}"
                for (service, what), value in sorted(found.items())
                if what == "MB"
            )
            handles = sum(value for (_, what), value in found.items() if what == "handles")
            print(
                f"{at:6.0f} s  rows {load.sent:8d}  MB: {shown}  handles {handles:.0f}  lag {found['streams', 'lag']:.0f}",
                flush=True,
            )
    persistently(lambda: world.client.drain("soak", depth=2))
    for check in checks:
        check.close()
    print(f"\n{'service':<12}{'what':<9}{'first':>9}{'last':>9}{'per hour':>10}")
    wrong = []
    for (service, what), values in sorted(series.items()):
        growth = trend(times[-len(values) :], values)
        too_much = growth > MAY_GROW[what] and values[-1] > np.median(values[len(values) // 2 :])
        too_much = too_much and not (
            what == "MB" and values[-1] < SOONER_OR_LATER.get(service, 0.0)
        )
        wrong += (
            [f"{service} {what} grows by {growth:.0f} an hour"]
            if too_much and minutes >= 10
            else []
        )
        print(
            f"{service:<12}{what:<9}{values[0]:>9.0f}{values[-1]:>9.0f}{growth:>10.0f}{'  <-- trend' if too_much else ''}"
        )
    print("; ".join(wrong) or f"soak ok: {load.sent} rows in {minutes:g} minutes")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""recovery_*: from kill -9 to results again, at a subscriber of a stream, under load; nothing lost,
nothing twice.

Rows go to Kafka as the gateway writes them, so that the load goes on whoever dies. What comes back
is told by each child table on its own: the clock runs from the kill until the last of them has a
result in which a row counts that was sent when nothing of what was killed worked any more. The gateway's clock runs until it acknowledges a write
again.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import psutil
from confluent_kafka import Producer

from bench import load, rows
from bench.profile import Profile
from bench.report import Line, Recorder
from bench.stage import Stage, stage
from penstock import names
from penstock.bus import login
from penstock.catalog.model import Table
from penstock.errors import PenstockError
from penstock.rows.partition import partition_of
from penstock.runtime.mesh_members import members

_DATABASE = "recovery"
#: child tables: few, for each of them is watched
_TABLES = 8
_WINDOW_MS = 1_000
_STREAM = (
    f"CREATE STREAM {_DATABASE}.s TRIGGER AT_ONCE INTO {_DATABASE}.w AS SELECT _wstart, count(*) AS n, "
    f"max(seq) AS newest FROM {_DATABASE}.meters PARTITION BY tbname AS meter INTERVAL(1s)"
)
#: rows/s, whether they come in batches, and seconds of rows that are made at once
_RATES = {"400": (400, False), "100k": (100_000, True)}
_CHUNK_SECONDS = 1.0
#: until everything is ready for the next kill, and how long a service has to be well before it
_PATIENCE = 240.0
_CALM_SECONDS = 11.0


def measure(profile: Profile, record: Recorder, chosen: str = "") -> None:
    """All recovery lines."""
    for label in _RATES:
        starts = tuple((chosen or "recovery").split(","))
        kinds = [k for k in KINDS if f"recovery_{k}_{label}".startswith(starts)]
        if kinds:
            with stage(standby=True) as on:
                _measure_rate(on, profile, record, label, kinds)


def _measure_rate(
    on: Stage, profile: Profile, record: Recorder, label: str, kinds: list[str]
) -> None:
    on.client.execute(f"CREATE DATABASE {_DATABASE}")
    on.client.execute(f"CREATE STABLE {_DATABASE}.meters {load.COLUMNS}")
    on.client.execute(_STREAM)
    rate, batched = _RATES[label]
    watch = Watch(on)
    flow = Flow(on, on.table(_DATABASE, "meters"), rate, batched=batched)
    try:
        for kind in kinds:
            times = [_once(on, flow, watch, kind) for _ in range(profile.kills)]
            record.add(line(f"recovery_{kind}_{label}", times))
    finally:
        flow.stop()
    for problem in watch.check(flow):
        record.problem(f"recovery_{label}: {problem}")
    watch.stop()


def line(name: str, times: list[float]) -> Line:
    """Median and worst of some kills."""
    note = f"worst of {len(times)}: {max(times):.2f} s"
    rounds = tuple(round(t, 3) for t in times)
    return Line(name, float(np.median(times)), "s", mode="realtime", note=note, rounds=rounds)


def _once(on: Stage, flow: Flow, watch: Watch, kind: str) -> float:
    """Kill once, when all is well; the seconds until results come again."""
    _settle(on, flow, watch)
    victims = KINDS[kind](on)
    dying = _with_descendants(victims)
    began = time.perf_counter()
    _kill(victims)
    if kind == "gateway":
        return _until_acked(on, began)
    # what a driver leaves behind works on for a moment: that is no recovery
    psutil.wait_procs(dying, _PATIENCE)
    after = flow.sent
    return watch.until_all_have(after, _PATIENCE) - began


def _settle(on: Stage, flow: Flow, watch: Watch) -> None:
    on.mesh.wait_ready(seconds=_PATIENCE)
    time.sleep(_CALM_SECONDS)
    on.mesh.wait_ready(seconds=_PATIENCE)
    watch.until_all_have(flow.sent, _PATIENCE)


def _until_acked(on: Stage, began: float) -> float:
    """Seconds until the gateway acknowledges a row of a table that no stream reads."""
    row = {"tbname": "x", "ts": int(time.time() * 1000), "seq": 0, "current": 0.0, "voltage": 0}
    deadline = began + _PATIENCE
    while True:
        try:
            on.client.write(f"{_DATABASE}.meters", [row | {"site": 0}])
            return time.perf_counter() - began
        except PenstockError:
            if time.perf_counter() > deadline:
                raise
            time.sleep(0.02)


# ------------------------------------------------------------------------------ rows and results


class Flow:
    """Rows at a steady rate from a thread, until `stop`."""

    def __init__(self, on: Stage, table: Table, rate: int, *, batched: bool) -> None:
        self._table = table
        self._rate = rate
        self._batched = batched
        self._topic = names.ingest_topic(_DATABASE)
        bootstrap = on.mesh.kafka_bootstrap
        self._producer = Producer(
            {
                **login(bootstrap),
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 0,
                "compression.type": "lz4",
                "queue.buffering.max.messages": 1_000_000,
                "reconnect.backoff.max.ms": 500,
            }
        )
        self._start_ms = int(time.time() * 1000) // _WINDOW_MS * _WINDOW_MS
        #: rows handed over: the `seq` of the next one
        self.sent = 0
        self.failed: Exception | None = None
        self._counts: list[pl.DataFrame] = []
        self._halt = threading.Event()
        self._thread = threading.Thread(target=self._run, name="flow", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Return when every row is in the log."""
        self._halt.set()
        self._thread.join()
        left = self._producer.flush(60)
        if left and self.failed is None:
            self.failed = RuntimeError(f"{left} records were not acknowledged")

    def expected(self) -> dict[tuple[str, int], int]:
        """Rows of each child table and window."""
        counted = pl.concat(self._counts).group_by("tbname", "wstart").agg(pl.col("n").sum())
        return {(name, start): n for name, start, n in counted.iter_rows()}

    def frame(self, first: int, count: int) -> pl.DataFrame:
        """Return rows first.. in the order to send them; `record` numbers what goes together."""
        seq = np.arange(first, first + count)
        tables = pl.Series([f"d{k}" for k in range(_TABLES)])
        due = seq / self._rate
        if self._batched:
            due = np.floor(due / load.LINGER_S) * load.LINGER_S
        found = pl.DataFrame(
            {
                "seq": seq,
                "tbname": tables.gather(seq % _TABLES),
                "due": due,
                "ts": self._start_ms + (seq * 1000 // self._rate),
                "current": (seq % 4096) * 0.125,
                "voltage": (200 + seq * 31 % 40).astype(np.int32),
                "site": (seq % _TABLES).astype(np.int32),
            }
        )
        partition = partition_of(found["tbname"], self._table.partitions).cast(pl.Int64)
        found = found.with_columns(partition=partition)
        if not self._batched:
            return found.with_columns(record=pl.col("seq") - first)
        found = found.sort("due", "partition", maintain_order=True)
        return found.with_columns(record=pl.struct("due", "partition").rle_id().cast(pl.Int64))

    def _run(self) -> None:
        try:
            begin = time.perf_counter()
            count = int(self._rate * _CHUNK_SECONDS)
            while not self._halt.is_set():
                self._send(self.frame(self.sent, count), begin)
        except Exception as error:
            self.failed = error

    def _send(self, chunk: pl.DataFrame, begin: float) -> None:
        record = chunk["record"].to_numpy()
        bounds = np.searchsorted(record, np.arange(int(record[-1]) + 2))
        values = rows.records(chunk, self._table, bounds)
        first = chunk[bounds[:-1]]
        ends = self.sent + bounds[1:]
        by_window = ("tbname", (pl.col("ts") // _WINDOW_MS * _WINDOW_MS).alias("wstart"))
        self._counts.append(chunk.group_by(by_window).agg(n=pl.len().cast(pl.Int64)))
        for due, partition, value, end in zip(
            first["due"].to_list(), first["partition"].to_list(), values, ends.tolist(), strict=True
        ):
            wait = begin + due - time.perf_counter()
            if wait > 0:
                time.sleep(wait)
            self._producer.produce(self._topic, value, None, partition)
            self._producer.poll(0)
            self.sent = end


@dataclass
class _Seen:
    """The newest of a child table's results, and which were wrong."""

    newest: int = -1
    at: float = 0.0
    counts: dict[int, int] = field(default_factory=dict)


class Watch:
    """A subscriber of the stream, in a thread."""

    def __init__(self, on: Stage) -> None:
        self._subscription = on.client.subscribe(f"{_DATABASE}.s", stream=True).open()
        self._seen = {f"d{k}": _Seen() for k in range(_TABLES)}
        self._twice = 0
        self._failed: Exception | None = None
        self._heard = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._subscription.close()
        self._thread.join(10)

    def until_all_have(self, seq: int, patience: float) -> float:
        """When each child table had a result with a row at *seq* or behind it.

        Raises:
            RuntimeError: not in time.
        """
        with self._heard:
            done = self._heard.wait_for(
                lambda: self._failed or all(s.newest >= seq for s in self._seen.values()), patience
            )
            if not done or self._failed:
                have = {name: s.newest for name, s in self._seen.items()}
                raise RuntimeError(f"no results behind row {seq}: {have}") from self._failed
            return max(s.at for s in self._seen.values())

    def check(self, flow: Flow) -> list[str]:
        """Return what is lost or came twice."""
        problems = [str(flow.failed)] if flow.failed else []
        wanted = flow.expected()
        deadline = time.perf_counter() + _PATIENCE
        while (lost := self._missing(wanted)) and time.perf_counter() < deadline:
            time.sleep(0.2)
        if lost:
            problems.append(f"{len(lost)} of {len(wanted)} windows are not whole: {lost[:3]}")
        if self._twice:
            problems.append(f"{self._twice} results came twice")
        return problems

    def _missing(self, wanted: dict[tuple[str, int], int]) -> list[tuple[str, int, int, int]]:
        with self._heard:
            return [
                (name, start, found, n)
                for (name, start), n in wanted.items()
                if (found := self._seen[name].counts.get(start, 0)) != n
            ]

    def _run(self) -> None:
        try:
            for update in self._subscription:
                self._take(update.items, time.perf_counter())
        except Exception as error:
            with self._heard:
                self._failed = error
                self._heard.notify_all()

    def _take(self, items: list[dict[str, Any]], now: float) -> None:
        with self._heard:
            for row in items:
                seen = self._seen.get(row["meter"])
                if seen is None:
                    continue
                known = seen.counts.get(row["_wstart"], 0)
                self._twice += row["n"] <= known
                seen.counts[row["_wstart"]] = max(row["n"], known)
                if row["newest"] > seen.newest:
                    seen.newest = row["newest"]
                    seen.at = now
            self._heard.notify_all()


# ------------------------------------------------------------------------------ victims


def _leader(on: Stage) -> psutil.Process:
    """Return the process that holds the lease of the jobs."""
    held = str(on.redis.get(names.lease("jobs")))
    return psutil.Process(int(json.loads(held.split("|", 2)[2])["pid"]))


def _jvm(on: Stage) -> list[psutil.Process]:
    return [p for p in _leader(on).children(recursive=True) if p.name() == "java"]


def _workers(on: Stage) -> list[psutil.Process]:
    """Return the processes at work on the partitions of the load."""
    progress = on.redis.hgetall(names.query_progress(names.ingest_topic(_DATABASE)))
    tasks = [json.loads(value) for name, value in progress.items() if str(name).startswith("task:")]
    return [psutil.Process(int(task["pid"])) for task in tasks]


def _mesh(on: Stage) -> list[psutil.Process]:
    """Return every process but the one that starts them again."""
    supervisor = on.mesh.state()["supervisor"]
    return [p for p in members(on.mesh.layout.root) if p.pid != supervisor]


def _service(name: str) -> Callable[[Stage], list[psutil.Process]]:
    return lambda on: [psutil.Process(on.mesh.pid(name))]


def _with_descendants(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Return processes and those that end with them."""
    return [*processes, *(p for one in processes for p in one.children(recursive=True))]


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


KINDS: dict[str, Callable[[Stage], list[psutil.Process]]] = {
    "driver": lambda on: [_leader(on)],
    "jvm": _jvm,
    "worker": lambda on: _workers(on)[:1],
    "workers": _workers,
    "gateway": _service("gateway"),
    "notifier": _service("notifier"),
    "kafka": _service("kafka"),
    "mesh": _mesh,
}

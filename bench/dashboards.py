"""select_dashboards: dashboards that refresh while rows come in, as a wall of screens does.

Each panel is a SELECT over HTTP about the last minutes of one table. Its times are written out, as
Grafana writes them, so no text comes twice. Every panel is timed from the moment when it is asked
until its rows are with the client.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

from bench.profile import Profile
from bench.report import Line, Recorder
from bench.stage import Stage
from penstock.client.connection import connect
from penstock.client.connection_options import ConnectionOptions

_DASHBOARDS = 50
_PANELS = 10
_REFRESH_S = 5.0
_ROWS_A_SECOND = 50_000
#: rows are sent so often
_PACE_S = 0.1
_TABLES = 1_000
#: a panel shows so much
_SHOWN = timedelta(minutes=5)
#: before this, mostly databases and plans of the first round are made
_WARM_S = 2 * _REFRESH_S
_COLUMNS = "(ts TIMESTAMP, v DOUBLE, n INT) TAGS (g INT)"
#: what panels ask of their table, in turn
_QUESTIONS = (
    "SELECT _wstart, avg(v), max(v) FROM {table} WHERE {since} INTERVAL(10s)",
    "SELECT ts, v FROM {table} WHERE {since} ORDER BY ts DESC LIMIT 100",
    "SELECT last_row(ts), last_row(v) FROM {table} WHERE {since}",
    "SELECT count(*), avg(n) FROM {table} WHERE {since}",
)


def measure(on: Stage, profile: Profile, record: Recorder) -> None:
    """Panels of all dashboards, their refreshes spread evenly."""
    on.client.execute("CREATE DATABASE walls")
    on.client.execute(f"CREATE STABLE walls.m {_COLUMNS}")
    seconds = _WARM_S + max(profile.latency_seconds, 2 * _REFRESH_S)
    with _rows_coming_in(on) as writer:
        begin = time.monotonic() + 1.0
        walls = [_Dashboard(on, number, begin, begin + seconds) for number in range(_DASHBOARDS)]
        for wall in walls:
            wall.start()
        for wall in walls:
            wall.join()
    took = [one for wall in walls for one in wall.took]
    failed = sum(wall.failed for wall in walls)
    if failed or not took:
        record.problem(f"dashboards: {failed} panels failed, {len(took)} were answered")
    if took:
        p50, p95 = np.percentile(took, (50, 95))
        note = (
            f"{len(took)} panels, {len(took) / (seconds - _WARM_S):.0f}/s of"
            f" {_DASHBOARDS * _PANELS / _REFRESH_S:.0f}/s asked for, while"
            f" {writer.rows / max(writer.seconds, 1e-9):.0f} rows/s came in; p50 {p50:.1f} ms"
        )
        record.add(Line("select_dashboards_p95", float(p95), "ms", note=note))
    on.drop("walls")


class _Dashboard(threading.Thread):
    """One user's screen: its panels are asked one after another, every few seconds."""

    def __init__(self, on: Stage, number: int, begin: float, end: float) -> None:
        super().__init__(daemon=True)
        self._client = connect(
            on.mesh.gateway_url,
            user=on.mesh.user,
            password=on.mesh.password,
            options=ConnectionOptions(timeout=60.0),
        )
        self._number = number
        self._counts_from = begin + _WARM_S
        self._next = begin + number / _DASHBOARDS * _REFRESH_S
        self._end = end
        #: milliseconds of each panel
        self.took: list[float] = []
        self.failed = 0

    def run(self) -> None:
        while self._next < self._end:
            time.sleep(max(self._next - time.monotonic(), 0.0))
            since = datetime.now(UTC) - _SHOWN
            for panel in range(_PANELS):
                self._ask(panel, f"ts >= '{since:%Y-%m-%d %H:%M:%S.%f}'")
            # a screen that is late does not ask twice
            self._next = max(self._next + _REFRESH_S, time.monotonic())
        self._client.close()

    def _ask(self, panel: int, since: str) -> None:
        table = f"m{(self._number * _PANELS + panel) % _TABLES}"
        text = _QUESTIONS[panel % len(_QUESTIONS)].format(table=table, since=since)
        begin = time.monotonic()
        try:
            self._client.query(text, database="walls")
        except Exception:  # whatever it is: it is counted, and the next panel asked
            self.failed += 1
            return
        if begin >= self._counts_from:
            self.took.append((time.monotonic() - begin) * 1000)


class _Writer(threading.Thread):
    """Rows of all tables in turn, at a steady rate."""

    def __init__(self, on: Stage, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._on = on
        self._stop_asked = stop
        self.rows = 0
        self.seconds = 0.0

    def run(self) -> None:
        begin = time.monotonic()
        with self._on.client.writer("walls.m") as writer:
            while not self._stop_asked.is_set():
                self.seconds = time.monotonic() - begin
                due = round(self.seconds * _ROWS_A_SECOND)
                if due > self.rows:
                    writer.write(_rows(self.rows, due))
                    self.rows = due
                time.sleep(_PACE_S)


def _rows(first: int, end: int) -> pl.DataFrame:
    at = np.arange(first, end)
    table = at % _TABLES
    now = int(time.time() * 1000)
    return pl.DataFrame(
        {
            "tbname": pl.Series([f"m{k}" for k in range(_TABLES)]).gather(table),
            # a table's rows of one piece are a millisecond apart
            "ts": pl.Series(now + (at - first) // _TABLES).cast(pl.Datetime("ms")),
            "v": 50 + (at * 7919 % 4096 - 2048) / 64,
            "n": (at * 31 % 1000).astype(np.int32),
            "g": (table % 20).astype(np.int32),
        }
    )


@contextmanager
def _rows_coming_in(on: Stage) -> Iterator[_Writer]:
    """Yield what writes rows meanwhile; every table has some when it is yielded."""
    stop = threading.Event()
    writer = _Writer(on, stop)
    writer.start()
    try:
        while writer.is_alive() and writer.rows < 4 * _TABLES:
            time.sleep(_PACE_S)
        yield writer
    finally:
        stop.set()
        writer.join()

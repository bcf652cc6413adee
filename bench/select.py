"""select_*: SELECT over HTTP beside DuckDB over one sorted Parquet file of the same rows, in the same
run: scans and groups, windows of all tables, and what one panel of a dashboard asks. Then many
dashboards at once (`bench/dashboards.py`).

Rows are of 1,000 tables, 10 s apart. They are measured when they lie in segments, warm.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import numpy as np
import polars as pl

from bench import dashboards
from bench.profile import Profile
from bench.report import Recorder, median_line
from bench.stage import Stage, stage
from penstock.errors import RemoteError

_BASE = 1_700_006_400_000
_STEP = 10_000
_TABLES = 1_000
_SERVICES = ("kafka", "redis", "gateway", "store")
_SETTINGS = {
    #: the store cuts its tail this often, so every row is in a segment soon after it was written
    "PENSTOCK_STORE_FLUSH_SECONDS": "5",
    # nobody reads the topics of this mesh for streams
    "PENSTOCK_GATEWAY_WAIT_FOR_JOBS": "0",
}
_SETTLED = 15.0
_PATIENCE = 300.0
_COLUMNS = "(ts TIMESTAMP, v DOUBLE, n INT) TAGS (g INT, site VARCHAR(16))"


@dataclass(frozen=True)
class Question:
    """One SELECT, and the same for DuckDB where it has it."""

    name: str
    ours: str
    theirs: str | None
    #: how often it is asked in a round
    times: int = 5


def questions(sweeps: int) -> list[Question]:
    """What is asked of so many rows a table; those of one table are about its last hour."""
    time_from = datetime.fromtimestamp((_BASE + (sweeps - 360) * _STEP) / 1000, UTC)
    since = f"ts >= '{time_from:%Y-%m-%d %H:%M:%S}'"
    one = f"tbname = 'm500' AND {since}"
    bucket = "time_bucket(INTERVAL '{} minutes', ts)"
    mine, all_ = bucket.format(1), bucket.format(10)
    return [
        Question("mean", "SELECT count(*), avg(v) FROM m", "SELECT count(*), avg(v) FROM m"),
        Question(
            "group",
            "SELECT site, avg(v), count(*) FROM m GROUP BY site",
            "SELECT site, avg(v), count(*) FROM m GROUP BY site",
        ),
        Question(
            "filter",
            "SELECT count(*), sum(n) FROM m WHERE v > 60",
            "SELECT count(*), sum(n) FROM m WHERE v > 60",
        ),
        Question(
            "last_of_each",
            "SELECT tbname, last_row(v) FROM m GROUP BY tbname",
            "SELECT tbname, arg_max(v, ts) FROM m GROUP BY tbname",
        ),
        Question(
            "interval",
            "SELECT _wstart, count(*), avg(v) FROM m INTERVAL(1m)",
            f"SELECT {mine}, count(*), avg(v) FROM m GROUP BY 1 ORDER BY 1",
        ),
        Question(
            "interval_by_table",
            "SELECT _wstart, tbname, count(*), avg(v) FROM m PARTITION BY tbname INTERVAL(10m)",
            f"SELECT {all_}, tbname, count(*), avg(v) FROM m GROUP BY 1, 2 ORDER BY 1",
        ),
        Question(
            "session",
            "SELECT _wstart, tbname, count(*) FROM m PARTITION BY tbname SESSION(ts, 15s)",
            None,
            times=1,
        ),
        Question(
            "range",
            f"SELECT ts, v FROM m500 WHERE {since}",
            f"SELECT ts, v FROM m WHERE {one} ORDER BY ts",
            times=50,
        ),
        Question(
            "chart",
            f"SELECT _wstart, avg(v), max(v) FROM m500 WHERE {since} INTERVAL(1m)",
            f"SELECT {mine}, avg(v), max(v) FROM m WHERE {one} GROUP BY 1 ORDER BY 1",
            times=50,
        ),
        Question(
            "last_row",
            "SELECT last_row(ts), last_row(v) FROM m500",
            "SELECT max(ts), arg_max(v, ts) FROM m WHERE tbname = 'm500'",
            times=50,
        ),
    ]


def sweeps_of(first: int, sweeps: int) -> pl.DataFrame:
    """The rows of each table from the *first* on, as they come: every table in turn."""
    at = np.arange(first * _TABLES, (first + sweeps) * _TABLES)
    table = at % _TABLES
    return pl.DataFrame(
        {
            "tbname": pl.Series([f"m{k}" for k in range(_TABLES)]).gather(table),
            "ts": pl.Series(_BASE + at // _TABLES * _STEP).cast(pl.Datetime("ms")),
            "v": 50 + (at * 7919 % 4096 - 2048) / 64,
            "n": (at * 31 % 1000).astype(np.int32),
            "g": (table % 20).astype(np.int32),
            "site": pl.Series([f"s{k}" for k in range(10)]).gather(table % 10),
        }
    )


def pieces(sweeps: int, most: int = 100) -> Iterator[pl.DataFrame]:
    """All rows, some sweeps over the tables at a time."""
    for first in range(0, sweeps, most):
        yield sweeps_of(first, min(most, sweeps - first))


def sorted_file(directory: Path, sweeps: int) -> Path:
    """All rows in one Parquet file, by table and time."""
    path = directory / "sorted.parquet"
    rows = pl.concat(list(pieces(sweeps))).sort("tbname", "ts")
    rows.write_parquet(path, compression="zstd", row_group_size=122_880)
    return path


def measure(profile: Profile, record: Recorder) -> None:
    """Every question, ours and DuckDB's by turns."""
    sweeps = profile.select_rows // _TABLES
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as directory,
        stage(_SERVICES, _SETTINGS) as on,
        duckdb.connect(config={"threads": 2}) as engine,
    ):
        path = sorted_file(Path(directory), sweeps)
        engine.execute(f"CREATE VIEW m AS FROM read_parquet('{path}')")
        _write(on, sweeps)
        for question in questions(sweeps):
            _measure(on, engine, question, profile.rounds, record)
        dashboards.measure(on, profile, record)


def _write(on: Stage, sweeps: int) -> None:
    on.client.execute("CREATE DATABASE chosen")
    on.client.execute(f"CREATE STABLE chosen.m {_COLUMNS}")
    with on.client.writer("chosen.m") as writer:
        for rows in pieces(sweeps, 20):
            writer.write(rows)
    begin = time.monotonic()
    while on.client.query("SELECT count(*) FROM chosen.m").rows[0][0] < sweeps * _TABLES:
        if time.monotonic() - begin > _PATIENCE:
            raise RemoteError("the rows are not all there")
        time.sleep(1.0)
    time.sleep(_SETTLED)


def _measure(
    on: Stage,
    engine: duckdb.DuckDBPyConnection,
    question: Question,
    rounds: int,
    record: Recorder,
) -> None:
    def ask() -> object:
        return on.client.query(question.ours, database="chosen")

    def ask_duckdb() -> object:
        return None if question.theirs is None else engine.sql(question.theirs).to_arrow_table()

    ask()
    ask_duckdb()
    ours: list[float] = []
    theirs: list[float] = []
    took: list[float] = []
    for _ in range(rounds):
        mine = _milliseconds(ask, question.times)
        ours.append(float(np.median(mine)))
        took += mine
        theirs.append(float(np.median(_milliseconds(ask_duckdb, question.times))))
    record.add(
        median_line(
            f"select_{question.name}",
            ours,
            "ms",
            baseline=None if question.theirs is None else float(np.median(theirs)),
            note=f"warm, over HTTP; p95 {np.percentile(took, 95):.1f} ms",
        )
    )


def _milliseconds(action: Callable[[], object], times: int) -> list[float]:
    took = []
    for _ in range(times):
        begin = time.perf_counter()
        action()
        took.append((time.perf_counter() - begin) * 1000)
    return took

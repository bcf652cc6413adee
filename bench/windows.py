"""windows_*: rows/s of the kernel of each window kind alone, one thread, no Kafka, no Spark. Plans
come from the SQL that users write.

Rows come as the scan gives them: units of 64 records of 250 rows, each record one client write,
every table in turn, 100 ms apart. The values make a session end, a state change, an event begin and
end every few rows. For `recompute` one row in a hundred replaces an earlier one of its table, in
turns one of half a second ago and one whose window has closed. Kernels have a history to let old
rows go to, as in a mesh; that of `recompute` has none, so that it measures no reading.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from bench.alone import alone
from bench.profile import Profile
from bench.report import Line, Recorder, median_line
from penstock.errors import PenstockError
from penstock.sql.parser import parse_one
from penstock.sql.plan import Column, Precision, StreamPlan
from penstock.sql.planner import TableDef, plan_stream
from penstock.sql.statements import CreateStream
from penstock.types import ColumnType
from penstock.windows import make_kernel

_BASE = 1_700_006_400_000
UNIT = 16_000
_TABLES = 10_000
_WRITE = 250
#: of so many rows one replaces another, for `recompute`
_ONE_IN = 100
#: rows after which every table has some
WARM = -(-2 * _TABLES // UNIT) * UNIT
COLUMNS = "(ts TIMESTAMP, current DOUBLE, voltage INT, state INT) TAGS (site INT)"
_AGGREGATES = "_wstart, count(*), avg(current), max(voltage)"
_EXACT = "AT_ONCE WATERMARK 2s IGNORE EXPIRED 0 IGNORE UPDATE 0 DELETE_MARK 60s"
_KINDS = {
    "interval_window_close": ("WINDOW_CLOSE", _AGGREGATES, "INTERVAL(10s)"),
    "interval_at_once": ("AT_ONCE", _AGGREGATES, "INTERVAL(10s)"),
    "sliding": ("WINDOW_CLOSE", _AGGREGATES, "INTERVAL(10s) SLIDING(5s)"),
    "session": ("WINDOW_CLOSE", _AGGREGATES, "SESSION(ts, 1s)"),
    "state": ("WINDOW_CLOSE", _AGGREGATES, "STATE_WINDOW(state)"),
    "event": ("WINDOW_CLOSE", _AGGREGATES, "EVENT_WINDOW START WITH state = 1 END WITH state = 0"),
    "count": ("WINDOW_CLOSE WATERMARK 1s", _AGGREGATES, "COUNT_WINDOW(20)"),
    "recompute": (_EXACT, _AGGREGATES, "INTERVAL(10s)"),
    "filter": ("AT_ONCE", "ts, current, voltage", ""),
}


class _Unread:
    """A history of rows that no late row asks for."""

    def fetch(self, low: int, high: int, tables: Sequence[str] | None = None) -> pl.DataFrame:
        raise AssertionError(f"rows of {low}..{high} are read again, though none came late")

    fetch_versions = fetch


class _View:
    """One table that the planner may see."""

    def precision(self, database: str) -> Precision | None:
        return "ms"

    def table(self, database: str, name: str) -> TableDef | None:
        if name != "meters":
            return None
        kinds = (("ts", "TIMESTAMP"), ("current", "DOUBLE"), ("voltage", "INT"), ("state", "INT"))
        columns = tuple(Column(n, ColumnType(k)) for n, k in kinds)
        return TableDef(
            1,
            "bench",
            "meters",
            "stable",
            columns,
            (Column("site", ColumnType("INT")),),
            "ms",
            None,
        )

    def function(self, name: str) -> None:
        return None

    def streams_into(self, database: str, table: str) -> Sequence[str]:
        return []


def statement(kind: str) -> str:
    """The statement of one kind."""
    trigger, selected, window = _KINDS[kind]
    where = "WHERE voltage >= 236 " if not window else ""
    return f"CREATE STREAM s TRIGGER {trigger} INTO w AS SELECT {selected} FROM meters {where}PARTITION BY tbname {window}"


def plan(kind: str) -> StreamPlan:
    """The plan of one kind's statement."""
    parsed = parse_one(statement(kind))
    assert isinstance(parsed, CreateStream)
    return plan_stream(parsed, _View(), database="bench", stream_id=1, target_id=2).plan


def units(kind: str, rows: int, first: int = 0) -> Iterator[pl.DataFrame]:
    """Kernel input of *rows* rows from the *first* on."""
    names = pl.Series([f"d{k:06d}" for k in range(_TABLES)])
    for start in range(first, first + rows, UNIT):
        at = np.arange(start, start + UNIT)
        sweep = at // _TABLES
        of = sweep - _back(at) if kind == "recompute" else sweep
        yield pl.DataFrame(
            {
                "_step": ((at - start) // _WRITE).astype(np.uint32),
                "_offset": at // _WRITE,
                "_now": _BASE + sweep * 100,
                "_op": np.zeros(UNIT, np.int8),
                "tbname": names.gather(at % _TABLES),
                # a pause of 5 s after every 20th row of a table ends its session
                "ts": _BASE + of * 100 + of // 20 * 5_000,
                "current": (at * 7919 % 4096) * 0.125,
                "voltage": (200 + at * 31 % 40).astype(np.int32),
                "state": (sweep // 10 % 2).astype(np.int32),
                "site": (at % 100).astype(np.int32),
            }
        )


def _back(at: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return how many sweeps ago the row was that each row replaces; 0 where it replaces none."""
    # a row of each hundred, another of its tables in every sweep
    chosen = (at * 7 + at // _TABLES) % _ONE_IN == 0
    return np.where(chosen, np.minimum(np.where(at % 2, 5, 20), at // _TABLES), 0)


def measure(profile: Profile, record: Recorder) -> None:
    """One line a window kind; in a process of its own, where polars has one thread as in the stream
    jobs' workers.
    """
    with alone() as pool:
        for kind in _KINDS:
            try:
                record.add(pool.submit(_kind, kind, profile.kernel_rows, profile.rounds).result())
            except PenstockError as error:
                record.problem(f"windows_{kind}: {error}")


def _kind(kind: str, rows: int, rounds: int) -> Line:
    each = max(rows // rounds // UNIT, 4) * UNIT
    kernel = make_kernel(plan(kind), None if kind == "recompute" else _Unread())
    for unit in units(kind, WARM):
        kernel.apply(unit)
    rates = []
    slowest = 0.0
    results = 0
    for i in range(rounds):
        spent = 0.0
        for unit in units(kind, each, WARM + i * each):
            begin = time.perf_counter()
            emission = kernel.apply(unit)
            took = time.perf_counter() - begin
            spent = spent + took
            slowest = max(slowest, took)
            results += 0 if emission.rows is None else emission.rows.height
        rates.append(each / spent)
    note = f"kernel alone, one thread; {results} result rows, slowest unit {slowest * 1000:.0f} ms"
    return median_line(f"windows_{kind}", rates, "rows/s", note=note)

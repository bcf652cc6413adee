"""One stream in one processor: it computes, or stops alone and says why."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from penstock import names
from penstock.errors import BusError, SchemaError, StateError
from penstock.records import DeadLetter, EventsRecord, decode
from penstock.sql.plan import Member, Origin, StreamPlan
from penstock.windows.kernel import LATEST, Control
from spark_jobs.output import Outbox
from spark_jobs.processor.result_batcher import ResultBatcher
from spark_jobs.processor.stream import LiveStream
from spark_jobs.replay import Replay
from tests.unit.spark_jobs.processor_kit import T0, TOPIC, Mesh, values_of

_WINDOWS = (
    "CREATE STREAM s TRIGGER AT_ONCE INTO o AS SELECT _wstart ws, count(*) n, sum(a) s FROM m"
    " PARTITION BY tbname INTERVAL(10a)"
)


class _Stored:
    """What the source holds, for any mark."""

    since_begin = False

    def __init__(self) -> None:
        self.rows = pl.DataFrame()
        self.marks: list[str] = []

    def fetch(self, low: int, high: int, tables: Any = None) -> pl.DataFrame:
        return self.rows.filter(pl.col("ts").is_between(low, high))

    fetch_versions = fetch

    def mark(self) -> str:
        return "now"

    def at(self, mark: str) -> None:
        self.marks.append(mark)

    def stretches(self, most: int) -> list[int]:
        return [LATEST]


class _Live:
    """A stream that is on in the partition of `m`."""

    def __init__(
        self, mesh: Mesh, text: str = _WINDOWS, status: str = "running", *, kernel: bool = True
    ) -> None:
        self.mesh = mesh
        self.plan = mesh.stream(1000, text)
        self.stored = _Stored()
        self.text = self.plan.to_json()
        self.outbox = Outbox(mesh.worker.publisher, Replay())
        self.kernel = kernel
        self.stream = self.open(status)

    def open(self, status: str = "running", saved: Any = ()) -> LiveStream:
        history: Any = self.stored if self.kernel else None
        worker = self.mesh.worker
        return LiveStream(worker, self.outbox, TOPIC, 0, self.text, status, history, saved)

    def apply(self, *rows: tuple[str, int, int], offset: int = 50) -> None:
        batcher = ResultBatcher()
        self.stream.apply(_rows(*rows, offset=offset), offset, offset, batcher)
        batcher.flush()

    def results(self) -> list[tuple[Any, ...]]:
        """(start behind T0, n, s) of the rows of the result table, newest last."""
        return [(ws - T0, n, s) for ws, n, s in self.mesh.results("o")]

    def status(self) -> dict[str, str]:
        self.mesh.worker.wait_for_reports()
        return self.mesh.worker.memory_redis.hashes[names.stream_status(1000)]


def _rows(*lines: tuple[str, int, int], offset: int = 50) -> pl.DataFrame:
    """Source rows of (table, ms behind T0, a), of one write."""
    return pl.DataFrame(
        [(0, offset, T0, 0, table, T0 + time, a, 0) for table, time, a in lines],
        schema={
            "_step": pl.UInt32,
            "_offset": pl.Int64,
            "_now": pl.Int64,
            "_op": pl.Int8,
            "tbname": pl.String,
            "ts": pl.Int64,
            "a": pl.Int32,
            "g": pl.Int32,
        },
        orient="row",
    )


@pytest.fixture
def mesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mesh:
    return Mesh(tmp_path, monkeypatch)


# -------------------------------------------------------------------- at work


def test_rows_become_results_in_the_log(mesh):
    live = _Live(mesh)
    live.apply(("t1", 1, 5), ("t1", 2, 6), ("t1", 11, 7))
    assert live.results() == [(0, 2, 11), (10, 1, 7)]
    assert (live.stream.stats.rows_in, live.stream.stats.rows_out) == (3, 2)
    assert live.stream.changed


_TOLD = (
    "CREATE STREAM s {} AS SELECT _wstart ws, count(*) n FROM m PARTITION BY tbname INTERVAL(10a)"
    " NOTIFY ON ('WINDOW_OPEN', 'WINDOW_CLOSE') {}"
)


def _told(live: _Live) -> list[dict[str, Any]]:
    """Events in the log."""
    values = values_of(live.mesh.log, names.EVENTS)
    return [event for v in values for event in json.loads(decode(EventsRecord, v).events)]


def test_without_a_result_table_windows_are_only_told_of(mesh):
    live = _Live(mesh, _TOLD.format("", ""))
    before = dict(mesh.log.records)
    live.apply(("t1", 1, 5), ("t1", 2, 6), ("t1", 11, 7))
    live.stream.control(Control("flush"), 51)
    assert [(e["eventType"], e["windowStart"] - T0, e.get("result")) for e in _told(live)] == [
        ("WINDOW_OPEN", 0, None),
        ("WINDOW_CLOSE", 0, {"ws": T0, "n": 2}),
        ("WINDOW_OPEN", 10, None),
        ("WINDOW_CLOSE", 10, {"ws": T0 + 10, "n": 1}),
    ]
    assert {topic for topic, _ in mesh.log.records.keys() - before.keys()} == {names.EVENTS}
    assert (live.stream.status, live.stream.stats.rows_out) == ("running", 2)


def test_its_open_windows_have_the_columns_of_its_events(mesh):
    live = _Live(mesh, _TOLD.format("", ""))
    live.apply(("t1", 1, 5))
    open_now = live.stream.open_windows()
    assert open_now is not None
    assert open_now.select("ws", "n").rows() == [(T0, 1)]


@pytest.mark.parametrize("told", [False, True])
def test_history_without_a_result_table_is_told_of_when_asked_for(mesh, told):
    live = _Live(mesh, _TOLD.format("FILL_HISTORY 1", f"NOTIFY_HISTORY {int(told)}"))
    live.stored.rows = _rows(("t1", 1, 5), ("t1", 2, 6))
    live.stream.fill_history("mark", 0, LATEST, 40)
    history = [(e["eventType"], e["windowStart"] - T0) for e in _told(live)]
    assert history == ([("WINDOW_OPEN", 0), ("WINDOW_CLOSE", 0)] if told else [])
    live.apply(("t1", 3, 1), ("t1", 11, 7))
    closed = [e["result"]["n"] for e in _told(live) if e["eventType"] == "WINDOW_CLOSE"]
    assert closed[-1] == 3, "what history began counts"


def test_a_stream_that_computes_nothing_here_has_a_route(mesh):
    live = _Live(mesh, kernel=False)
    assert live.stream.route is not None
    live.apply(("t1", 1, 5))
    assert live.results() == []
    assert live.stream.stats.rows_in == 0  # the route's rows are counted where they are sent
    assert live.stream.open_windows() is None


def test_open_windows_are_those_not_closed_yet(mesh):
    live = _Live(mesh)
    live.apply(("t1", 1, 5), ("t1", 11, 7))
    found = live.stream.open_windows()
    assert found is not None
    assert [t - T0 for t in found.get_column("ws").to_list()] == [10]


def test_rows_of_other_children_are_not_counted(mesh):
    live = _Live(mesh)
    source = replace(live.plan.source, kind="child", child="T1")
    live.stream.output.plan = replace(live.plan, source=source)
    live.stream.count(_rows(("t1", 1, 5), ("T1", 2, 5), ("t2", 3, 5)))
    assert live.stream.stats.rows_in == 2


def test_a_control_closes_windows(mesh):
    live = _Live(mesh, _WINDOWS.replace("AT_ONCE", "WINDOW_CLOSE"))
    live.apply(("t1", 1, 5))
    assert live.results() == []
    live.stream.control(Control("flush"), 60)
    assert live.results() == [(0, 1, 5)]


def test_history_is_read_as_it_was(mesh):
    live = _Live(mesh, _WINDOWS.replace("TRIGGER", "FILL_HISTORY 1 TRIGGER"))
    live.stored.rows = _rows(("t1", 1, 5), ("t1", 2, 6), ("t1", 30, 7), offset=3)
    live.stream.fill_history("then", T0, T0 + 9, 60)
    assert live.results() == [(0, 2, 11)]
    assert live.stored.marks == ["then", ""]


def test_state_goes_on_where_it_was_saved(mesh):
    live = _Live(mesh)
    live.apply(("t1", 1, 5))
    saved = [live.stream.delta(full=True)]
    assert not live.stream.changed
    live.apply(("t1", 2, 6), offset=51)
    saved.append(live.stream.delta(full=False))
    live.stream = live.open(saved=saved)
    live.apply(("t1", 3, 7), offset=52)
    assert live.results()[-1] == (0, 3, 18)
    assert live.stream.stats.rows_in == 3


# -------------------------------------------------------------------- what goes wrong


def test_a_row_that_fails_is_a_dead_letter(mesh):
    text = _WINDOWS.replace("m PARTITION", "m WHERE date(ts) IS NOT NULL PARTITION")
    live = _Live(mesh, text)
    live.apply(("t1", 1, 5), ("t1", 2**62, 6))
    [letter] = [decode(DeadLetter, v) for v in values_of(mesh.log, names.DEAD_LETTER)]
    assert (letter.code, letter.offset) == ("E_EXPRESSION", 50)
    assert live.stream.status == "running"
    assert live.results() == [(0, 1, 5)]


def test_a_result_of_one_row_that_fails_is_that_row(mesh):
    live = _Live(
        mesh,
        "CREATE STREAM s TRIGGER AT_ONCE INTO o AS SELECT ts, date(ts) d, a FROM m PARTITION BY tbname",
    )
    live.apply(("t1", 1, 5), ("t1", 2**62, 6))
    [letter] = [decode(DeadLetter, v) for v in values_of(mesh.log, names.DEAD_LETTER)]
    assert letter.reason.startswith("1 rows failed")
    kept = json.loads(letter.value or b"")
    assert (letter.offset, kept["tbname"], kept["ts"], kept["a"]) == (50, "t1", T0 + 2**62, 6)


def test_a_result_of_a_window_that_fails_tells_the_window(mesh):
    live = _Live(mesh, _WINDOWS.replace("count(*) n", "date(_wstart) n"))
    live.outbox.time = T0 + 7
    live.apply(("t1", 2**62, 6))
    [letter] = [decode(DeadLetter, v) for v in values_of(mesh.log, names.DEAD_LETTER)]
    assert letter.reason.startswith("1 results failed")
    kept = json.loads(letter.value or b"")
    assert kept["_wend"] - kept["_wstart"] == 10
    assert (letter.offset, letter.time) == (50, T0 + 7)


def test_with_on_error_stop_it_ends_the_stream(mesh):
    text = _WINDOWS.replace("m PARTITION", "m WHERE date(ts) IS NOT NULL PARTITION")
    live = _Live(mesh, text.replace("INTO", "ON_ERROR STOP INTO"))
    live.apply(("t1", 2**62, 6))
    assert live.stream.status == "failed"
    assert live.status()[f"{names.FAILED}{TOPIC}:0"].startswith("ON_ERROR STOP")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (SchemaError("too long"), "results do not fit the target table: too long"),
        (StateError("no log"), "E_STATE: no log"),
        (ZeroDivisionError("oh"), "ZeroDivisionError: oh"),
    ],
)
def test_what_goes_wrong_stops_this_stream_alone(mesh, error, reason):
    live = _Live(mesh)

    def fail() -> None:
        raise error

    live.stream.guard(fail, 5, 9)
    assert live.stream.status == "failed"
    assert live.stream.stats.error == reason
    assert live.status()[f"{names.FAILED}{TOPIC}:0"] == reason
    assert live.stream.delta(full=True) is None
    live.apply(("t1", 1, 5))
    assert live.results() == []


@pytest.mark.parametrize("error", [BusError("Kafka is gone"), KeyboardInterrupt(), MemoryError()])
def test_what_is_everybodys_trouble_goes_on_up(mesh, error):
    live = _Live(mesh)

    def fail() -> None:
        raise error

    with pytest.raises(type(error)):
        live.stream.guard(fail, 5, 9)
    assert live.stream.status == "running"


def test_a_result_table_that_is_gone_stops_the_stream(mesh):
    live = _Live(mesh)
    mesh.worker.catalog.catalog.remove(1001)
    live.apply(("t1", 1, 5))
    assert live.stream.status == "failed"
    assert "does not exist" in live.stream.stats.error


def test_a_stream_that_has_failed_before_stays_so(mesh):
    live = _Live(mesh, status="failed")
    live.apply(("t1", 1, 5))
    live.stream.control(Control("flush"), 60)
    live.stream.fill_history("then", 0, LATEST, 60)
    assert live.results() == []
    assert live.stored.marks == []


def test_progress_is_told_by_partition(mesh):
    live = _Live(mesh)
    live.apply(("t1", 1, 5))
    stream_id, field, value = live.stream.progress()
    assert (stream_id, field) == (1000, f"{names.STATS}{TOPIC}:0")
    assert '"rows_in": 1' in value


# -------------------------------------------------------------------- another plan


def test_an_altered_plan_goes_on_with_the_state_there_is(mesh):
    live = _Live(mesh)
    live.apply(("t1", 1, 5))
    changed = replace(live.plan, max_results=9)
    stored: Any = live.stored
    live.stream.alter(changed.to_json(), stored)
    assert live.stream.plan.max_results == 9
    assert live.stream.output.plan is live.stream.plan
    live.apply(("t1", 2, 6), offset=51)
    assert live.results()[-1] == (0, 2, 11)


def _virtual(plan: StreamPlan) -> StreamPlan:
    origins = (Origin("a", 7, "d1", "x"), Origin("a", 8, "d1", "x"), Origin("a", 7, "d2", "x"))
    member = Member("v1", (), origins)
    return replace(plan, source=replace(plan.source, members=(member,)))


def test_dropped_origins_are_read_no_more(mesh):
    live = _Live(mesh, kernel=False)
    live.stream._set_plan(_virtual(live.plan).to_json())
    assert not live.stream.sever(7, ["other"])
    assert live.stream.sever(7, ["D1"])
    [member] = live.stream.plan.source.members
    assert [(o.table_id, o.table) for o in member.origins] == [(8, "d1"), (7, "d2")]
    assert StreamPlan.from_json(live.stream.text) == live.stream.plan
    assert live.stream.route is not None
    assert live.stream.route.plan is live.stream.plan

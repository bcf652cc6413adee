"""Controls at a processor: each kind, at its offset."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock import names
from penstock.records import DROPPED, ControlRecord
from penstock.windows.kernel import Control
from spark_jobs.processor.controls import apply_control, to_kernel_control
from tests.unit.spark_jobs.processor_kit import SOURCE, T0, TOPIC, Mesh
from tests.unit.windows.plans import window_plan

_STREAM = (
    "CREATE STREAM s{0} TRIGGER WINDOW_CLOSE INTO o{0} AS SELECT _wstart ws, count(*) n FROM m"
    " PARTITION BY tbname INTERVAL(10a)"
)


class _Told:
    """A scan with the streams 1000 and 1100, which have had a row."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.plans = {n: mesh.stream(n, _STREAM.format(n)) for n in (1000, 1100)}
        mesh.rows(("t1", 1, 5, 0))
        mesh.feed()
        self.processor: Any = mesh.processor(TOPIC, 0)

    def tell(self, kind: str, offset: int = 50, **given: Any) -> None:
        apply_control(self.processor, ControlRecord(kind, **given), offset)

    def stream(self, number: int = 1000) -> Any:
        return self.processor.streams.by_id[number]

    def results(self, number: int = 1000) -> list[tuple[Any, ...]]:
        return self.mesh.results(f"o{number}")

    def reported(self, number: int = 1000) -> dict[str, str]:
        self.mesh.worker.wait_for_reports()
        return self.mesh.worker.memory_redis.hashes[names.stream_status(number)]


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Told:
    return _Told(Mesh(tmp_path, monkeypatch))


def test_times_of_ticks_are_ticks_of_the_source():

    plan = window_plan()
    fine = replace(plan, source=replace(plan.source, precision="us"))
    control = ControlRecord("delete", time=7, tables=("t",), low=1, high=2)
    assert to_kernel_control(control, plan) == Control("delete", 7, ("t",), 1, 2)
    assert to_kernel_control(control, fine) == Control("delete", 7_000, ("t",), 1, 2)


# -------------------------------------------------------------------- streams begin and end


def test_a_stream_begins_once_and_is_reported(told):
    assert told.reported() == {f"{TOPIC}:0": "0"}
    stream = told.stream()
    told.tell("stream_on", stream=1000, body=told.plans[1000].to_json())
    assert told.stream() is stream
    assert told.reported() == {f"{TOPIC}:0": "50"}  # whoever asked again is answered


def test_a_stream_that_is_in_the_catalog_no_more_does_not_begin(told):
    told.tell("stream_off", stream=1100)
    told.mesh.worker.catalog.catalog.remove(1100)
    told.tell("stream_on", stream=1100, body=told.plans[1100].to_json())
    told.tell("stream_on")
    assert set(told.processor.streams.by_id) == {1000}


def test_a_dropped_stream_computes_nothing_more(told):
    told.tell("stream_off", stream=1000)
    told.tell("stream_off", stream=1000)  # again
    told.tell("flush")
    assert told.results() == []
    assert told.results(1100) == [(T0, 1)]


def test_a_stream_goes_on_with_another_plan(told):
    changed = replace(told.plans[1000], max_results=9)
    told.tell("alter", stream=1000, body=changed.to_json())
    assert told.stream().plan.max_results == 9
    told.tell("flush", stream=1000)
    assert told.results() == [(T0, 1)]


def test_nothing_is_altered_of_a_stream_that_has_failed_or_is_not_here(told):
    changed = replace(told.plans[1000], max_results=9).to_json()
    told.tell("alter", stream=5, body=changed)
    told.stream().fail("why")
    told.tell("alter", stream=1000, body=changed)
    assert told.stream().plan.max_results == 0


def test_a_stream_over_its_quota_ends(told):
    told.tell("stop", stream=1000, body="too much state")
    told.tell("stop", stream=1000, body="again")
    told.tell("stop", stream=5, body="nobody")
    assert told.stream().status == "failed"
    assert told.reported()[f"{names.FAILED}{TOPIC}:0"] == "too much state"
    assert told.stream(1100).status == "running"


# -------------------------------------------------------------------- kernels


def test_a_control_with_a_stream_is_for_that_one(told):
    told.tell("flush", stream=1100)
    assert told.results() == []
    assert told.results(1100) == [(T0, 1)]


def test_a_delete_is_for_all_streams_over_its_table(told):
    told.tell("delete", table=99, low=T0, high=T0 + 9)
    told.tell("flush", stream=1100)
    assert told.results(1100) == [(T0, 1)]
    told.tell("delete", table=SOURCE.id, low=T0, high=T0 + 9)
    told.tell("flush", stream=1000)
    assert told.results() == []


def test_a_paused_stream_says_so_until_it_goes_on(told):
    told.tell("pause", stream=1000)
    assert told.stream().status == "paused"
    told.tell("flush", stream=1000)
    assert told.results() == []
    told.tell("resume", stream=1000)
    assert (told.stream().status, told.stream(1100).status) == ("running", "running")


def test_a_failed_stream_stays_failed(told):
    told.stream().fail("why")
    told.tell("pause", stream=1000)
    told.tell("resume_skip", stream=1000)
    assert told.stream().status == "failed"


def test_what_a_control_changes_is_in_the_next_snapshot(told):
    told.processor.keep()
    told.tell("pause", stream=1000)
    state: Any = type("State", (), {"streams": {}, "deltas": {}})()
    told.processor.streams.save(state, full=False)
    assert state.streams[1000][1] == "paused"


def test_dropped_tables_are_read_no_more_by_virtual_sources(told, monkeypatch):
    severed: list[Any] = []
    monkeypatch.setattr(
        told.stream(), "sever", lambda table, tables: bool(severed.append((table, tables)))
    )
    told.tell("delete", table=SOURCE.id, tables=("t1",), low=0, high=1, body=DROPPED)
    told.tell("delete", table=SOURCE.id, tables=("t1",), low=0, high=1)
    assert severed == [(SOURCE.id, ("t1",))]


# -------------------------------------------------------------------- answers


def test_open_windows_are_shown_to_whoever_asks(told, monkeypatch):
    answers: list[Any] = []
    monkeypatch.setattr(told.mesh.worker, "report_open", lambda *given: answers.append(given))
    told.tell("open_windows", id="q1", stream=1000)
    told.tell("open_windows", id="q2", stream=5)
    [(question, place, rows)] = answers
    assert (question, place) == ("q1", f"{TOPIC}:0")
    assert rows.get_column("ws").to_list() == [T0]


def test_a_step_of_a_history_that_nobody_fills_changes_nothing(told):
    told.tell("fill", stream=5, body="{}")
    told.tell("filled", stream=1000, body="{}")
    assert told.results() == []


def test_kinds_that_a_later_version_sends_change_nothing(told):
    told.tell("something_new", stream=1000)
    assert told.stream().status == "running"

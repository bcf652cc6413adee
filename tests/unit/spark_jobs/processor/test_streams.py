"""The streams of a processor, and what of them the next snapshot holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.sql.plan import StreamPlan
from spark_jobs.output import Outbox
from spark_jobs.processor.streams import Streams
from spark_jobs.replay import Replay
from spark_jobs.state import Snapshot
from tests.unit.spark_jobs.processor_kit import TOPIC, Mesh

_TEXT = (
    "CREATE STREAM s{0} INTO o{0} AS SELECT _wstart ws, count(*) n FROM m"
    " PARTITION BY tbname INTERVAL(10a)"
)


class _Kept:
    """Streams that compute nothing here, so that they need no history."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.asked: list[StreamPlan] = []
        self.streams = self.opened()
        self.texts = {n: mesh.stream(n, _TEXT.format(n)).to_json() for n in (1000, 1100)}

    def opened(self) -> Streams:
        outbox = Outbox(self.mesh.worker.publisher, Replay())
        return Streams(self.mesh.worker, outbox, TOPIC, 0, self._history)

    def _history(self, plan: StreamPlan) -> None:
        self.asked.append(plan)

    def open(self, *numbers: int) -> None:
        for number in numbers:
            self.streams.touch(self.streams.open(number, self.texts[number]))

    def saved(self, *, full: bool) -> Snapshot:
        state = Snapshot(5)
        self.streams.save(state, full=full)
        return state


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Kept:
    return _Kept(Mesh(tmp_path, monkeypatch))


def test_a_snapshot_holds_what_changed_or_everything(kept):
    kept.open(1000, 1100)
    first = kept.saved(full=True)
    assert first.streams == {n: (text, "running") for n, text in kept.texts.items()}
    assert kept.saved(full=False).streams == {}
    kept.streams.by_id[1100].status = "paused"
    kept.streams.touch(kept.streams.by_id[1100])
    assert kept.saved(full=False).streams == {1100: (kept.texts[1100], "paused")}
    assert set(kept.saved(full=True).streams) == {1000, 1100}


def test_a_stream_that_was_dropped_is_said_to_be_gone_once(kept):
    kept.open(1000, 1100)
    kept.saved(full=True)
    kept.streams.drop(1000)
    assert kept.saved(full=False).streams == {1000: None}
    assert kept.saved(full=False).streams == {}
    assert set(kept.streams.by_id) == {1100}


def test_state_is_saved_of_streams_that_have_changed(kept):
    kept.open(1000, 1100)
    kept.saved(full=True)
    kept.streams.by_id[1000].changed = True
    state = Snapshot(5)
    saved = kept.streams.save(state, full=False)
    assert [s.id for s in saved] == [1000]
    assert [d.full for d in state.deltas[1000]] == [False]
    assert 1100 not in state.deltas


def test_a_failed_stream_leaves_no_state(kept):
    kept.open(1000)
    kept.saved(full=True)
    kept.streams.by_id[1000].fail("why")
    state = Snapshot(5)
    assert kept.streams.save(state, full=False) == []
    assert state.deltas == {1000: []}
    assert state.streams[1000] == (kept.texts[1000], "failed")


def test_streams_come_back_as_they_were_saved(kept):
    kept.open(1000, 1100)
    kept.streams.by_id[1100].fail("why")
    state = kept.saved(full=True)
    again = kept.opened()
    again.restore(state)
    assert {i: (s.text, s.status) for i, s in again.by_id.items()} == state.streams
    assert again.by_id[1000].route is not None
    assert again.by_id[1100].route is None


def test_what_was_dropped_while_nothing_ran_does_not_run_again(kept, monkeypatch):
    kept.open(1000, 1100)
    state = kept.saved(full=True)
    monkeypatch.setattr(kept.mesh.worker, "find_dropped", lambda streams: {1000} & set(streams))
    again = kept.opened()
    again.restore(state)
    assert set(again.by_id) == {1100}
    fresh = Snapshot(6)
    again.save(fresh, full=False)
    assert fresh.streams[1000] is None
    assert fresh.streams[1100] == (kept.texts[1100], "running")


def test_another_plan_is_saved_and_asks_for_its_history(kept):
    kept.open(1000)
    kept.saved(full=True)
    plan: Any = kept.streams.by_id[1000].plan
    text = replace(plan, max_results=9).to_json()
    kept.streams.alter(kept.streams.by_id[1000], text)
    assert kept.asked[-1].max_results == 9 != plan.max_results
    assert kept.saved(full=False).streams == {1000: (text, "running")}

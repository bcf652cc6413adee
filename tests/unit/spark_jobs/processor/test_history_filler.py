"""Histories are filled stretch by stretch, each step at a record of its own in the log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock import names
from penstock.records import ControlRecord, decode
from penstock.sql.plan import Notify
from penstock.windows.kernel import EARLIEST, LATEST, Control
from spark_jobs.filling import Filling
from spark_jobs.output import Outbox
from spark_jobs.processor.history_filler import HistoryFiller
from spark_jobs.processor.pending import Pending
from spark_jobs.replay import Replay
from tests.unit.spark_jobs.processor_kit import TOPIC, Mesh
from tests.unit.windows.plans import window_plan

_FIELD = names.filling(TOPIC, 0)


class _History:
    """Cut into three stretches."""

    def __init__(self) -> None:
        self.marks: list[str] = []
        self.broken = False

    def at(self, mark: str) -> None:
        self.marks.append(mark)

    def stretches(self, most: int) -> list[int]:
        if self.broken:
            raise OSError("unreadable")
        return [10, 20, LATEST]


class _Stream:
    """A stream as far as its history is concerned."""

    id = 7

    def __init__(self) -> None:
        self.plan = window_plan()
        self.status = "running"
        self.history: Any = _History()
        self.heard: list[tuple[str, int]] = []
        self.filled: list[tuple[str, int, int, int]] = []

    def control(self, control: Control, offset: int) -> None:
        self.heard.append((control.kind, offset))

    def guard(self, action: Callable[[], None], first: int, last: int) -> None:
        try:
            action()
        except OSError as error:
            self.fail(str(error))

    def fill_history(self, until: str, low: int, high: int, offset: int) -> None:
        self.filled.append((until, low, high, offset))

    def fail(self, reason: str) -> None:
        self.status = "failed"


class _Filled:
    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.pending = Pending({})
        self.touched: list[int] = []
        self.stream: Any = _Stream()
        self.filler = HistoryFiller(
            mesh.worker,
            Outbox(mesh.worker.publisher, Replay()),
            self.pending,
            TOPIC,
            0,
            "me",
            lambda stream: self.touched.append(stream.id),
        )

    def written(self) -> list[ControlRecord]:
        return [decode(ControlRecord, value) for _, value in self.mesh.log.records[TOPIC, 0]]

    def status(self) -> dict[str, str]:
        self.mesh.worker.wait_for_reports()
        return self.mesh.worker.memory_redis.hashes[names.stream_status(7)]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Filled:
    return _Filled(Mesh(tmp_path, monkeypatch))


def test_what_comes_waits_and_nothing_is_filled_yet(made):
    made.filler.hold(made.stream, 40)
    assert made.pending.is_filling(7)
    assert made.stream.heard == [("fill", 40)]
    assert made.status() == {_FIELD: "0"}


def test_a_history_is_cut_once_as_it_was_at_its_mark(made):
    made.filler.begin(made.stream, "then", 40)
    assert made.stream.history.marks == ["then", ""]
    [step] = made.written()
    assert (step.kind, step.stream, step.producer, step.offset) == ("fill", 7, "me", 40)
    assert Filling.read(step) == Filling("then", (10, 20, LATEST), 3)


def test_events_of_history_are_told_of_whole_windows(made):
    made.stream.plan = replace(made.stream.plan, notify=Notify((), (), history=True))
    made.filler.begin(made.stream, "then", 40)
    assert Filling.read(made.written()[0]).ends == (LATEST,)


def test_each_step_fills_a_stretch_and_writes_the_next(made):
    made.filler.hold(made.stream, 40)
    made.filler.begin(made.stream, "then", 40)
    percents = []
    for offset in (50, 60, 70, 80):
        made.filler.fill(made.stream, made.written()[-1], offset)
        percents.append(made.status().get(_FIELD))
    assert made.stream.filled == [
        ("then", EARLIEST, 10, 50),
        ("then", 11, 20, 60),
        ("then", 21, LATEST, 70),
    ]
    assert made.stream.heard == [("fill", 40), ("filled", 80)]
    assert [c.kind for c in made.written()] == ["fill", "fill", "fill", "filled"]
    assert percents == ["33", "66", "100", None]
    assert made.status() == {f"{TOPIC}:0": "40"}  # live since it began
    assert made.touched == [7] * 4
    assert not made.pending.is_filling(7)


def test_a_step_of_a_history_that_is_filled_changes_nothing(made):
    step = Filling("then", (10,), 1).control(7, "me", 40)
    made.filler.fill(made.stream, step, 50)
    assert made.stream.filled == [] and made.written() == [] and made.touched == []


def test_a_stream_without_a_history_is_live_at_once(made):
    made.filler.hold(made.stream, 40)
    made.stream.history = None
    made.filler.begin(made.stream, "then", 40)
    assert made.written() == []
    assert made.status() == {f"{TOPIC}:0": "40"}


def test_a_history_that_cannot_be_read_ends_the_filling(made):
    made.filler.hold(made.stream, 40)
    made.stream.history.broken = True
    made.filler.begin(made.stream, "then", 40)
    assert made.stream.status == "failed"
    assert made.stream.history.marks == ["then", ""]
    assert not made.pending.is_filling(7)
    assert made.written() == []


def test_a_stretch_that_fails_is_the_last(made):
    made.filler.hold(made.stream, 40)
    made.filler.begin(made.stream, "then", 40)
    made.stream.fill_history = lambda *_: made.stream.fail("why")
    made.filler.fill(made.stream, made.written()[-1], 50)
    assert [c.kind for c in made.written()] == ["fill"]
    assert not made.pending.is_filling(7)


def test_a_stretch_that_kills_is_given_up_with_its_stream(made):
    made.filler.hold(made.stream, 40)
    made.filler.abandon(made.stream)
    assert made.stream.status == "failed"
    assert made.touched == [7]
    assert not made.pending.is_filling(7)

"""A standby rehearses once, leaves nothing, and ends it when it has to lead."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_jobs import rehearsal
from spark_jobs.app import _lead
from spark_jobs.rehearsal import Rehearsal, pass_by


class _Query:
    isActive = True

    def __init__(self) -> None:
        self.lastProgress: dict[str, Any] | None = None
        self.failure: Exception | None = None
        self.stopped = threading.Event()

    def exception(self) -> Exception | None:
        return self.failure

    def stop(self) -> None:
        self.stopped.set()


class _Sessions:
    def __init__(self, master: str = "local") -> None:
        self.settings = SimpleNamespace(master=master)
        self.query = _Query()
        self.begun: list[str] = []
        self.first: list[dict[int, int]] = []
        self.twice = threading.Event()

    def rehearse(
        self, wanted: Any, operator: Any, checkpoint: str, first: dict[int, int]
    ) -> _Query:
        assert operator is pass_by
        self.first.append(first)
        if len(self.first) == 2:
            self.twice.set()
        self.begun.append(checkpoint)
        return self.query


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "_LOOK_SECONDS", 0.001)


def _made(**given: Any) -> tuple[_Sessions, Rehearsal]:
    sessions: Any = _Sessions(**given)
    return sessions, Rehearsal(sessions, lambda: {0: 7})


def test_without_records_it_is_ready_and_plays_again_with_the_first_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rehearsal, "_EMPTY_SECONDS", 0.001)
    sessions: Any = _Sessions()
    sessions.query.lastProgress = {"numInputRows": 3}
    found = iter([{}, {}, {0: 7}])
    played = Rehearsal(sessions, lambda: next(found))
    played.begin()
    assert sessions.twice.wait(5)
    played.end()
    assert played.is_over
    assert sessions.first == [{0: -2}, {0: 7}]


def test_it_is_over_with_the_first_record_and_leaves_nothing() -> None:
    sessions, played = _made()
    assert not played.is_over
    sessions.query.lastProgress = {"numInputRows": 0}
    played.begin()
    assert not sessions.query.stopped.wait(0.05)
    sessions.query.lastProgress = {"numInputRows": 3}
    assert sessions.query.stopped.wait(5)
    played.end()
    played.begin()
    assert played.is_over and len(sessions.begun) == 1
    assert not Path(sessions.begun[0]).exists()


def test_who_has_to_lead_does_not_wait_for_its_end() -> None:
    sessions, played = _made()
    played.begin()
    played.end()
    assert sessions.query.stopped.is_set() and played.is_over


def test_one_that_fails_keeps_nobody_from_leading() -> None:
    sessions, played = _made()
    sessions.query.isActive = False
    sessions.query.failure = RuntimeError("no such topic")
    played.begin()
    played.end()
    assert played.is_over


def test_on_a_cluster_there_is_none() -> None:
    sessions, played = _made(master="spark://there:7077")
    played.begin()
    assert played.is_over and not sessions.begun


def test_its_operator_reads_to_the_end_and_gives_nothing() -> None:
    batches: Any = iter(["one", "two"])
    assert list(pass_by(batches)) == []
    assert next(batches, None) is None


def test_a_standby_is_ready_once_it_has_rehearsed() -> None:
    sessions, played = _made()
    said: list[tuple[bool, str]] = []
    health: Any = SimpleNamespace(ready=lambda name, ready, why: said.append((ready, why)))

    class _Leadership:
        def wait(self, stop: threading.Event, waiting: Any) -> bool:
            waiting("Redis does not answer: away")
            assert not sessions.begun
            waiting("node 1 runs the jobs")
            sessions.query.lastProgress = {"numInputRows": 3}
            assert sessions.query.stopped.wait(5)
            played.end()
            waiting("node 1 runs the jobs")
            return True

    leadership: Any = _Leadership()
    assert _lead(leadership, health, threading.Event(), played)
    assert said == [
        (False, "Redis does not answer: away"),
        (False, "node 1 runs the jobs"),
        (True, "node 1 runs the jobs"),
    ]

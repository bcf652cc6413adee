"""What moves is slow, what does not stands still."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.mesh.movement import STILL_SECONDS, Movement
from penstock.mesh.process import cpu_seconds

_LATER = STILL_SECONDS + 1


def test_what_does_nothing_stands_still_after_a_while() -> None:
    movement = Movement(since=0.0)
    movement.note(1.0, "catalog", 100, 3.0)
    movement.note(STILL_SECONDS, "catalog", 100, 3.0)
    assert not movement.stands_still
    movement.note(_LATER + 1, "catalog", 100, 3.05)
    assert movement.stands_still


@pytest.mark.parametrize(
    ("why", "log_bytes", "cpu"),
    [("topics", 100, 3.0), ("catalog", 101, 3.0), ("catalog", 100, 3.5), ("catalog", 100, 0.1)],
    ids=["it waits for something else", "its log grows", "it works", "it was started again"],
)
def test_what_moves_does_not_stand_still(why: str, log_bytes: int, cpu: float) -> None:
    movement = Movement(since=0.0)
    movement.note(1.0, "catalog", 100, 3.0)
    movement.note(_LATER, why, log_bytes, cpu)
    assert not movement.stands_still


def test_it_moves_again() -> None:
    movement = Movement(since=0.0)
    movement.note(0.0, "", 0, 0.0)
    movement.note(_LATER, "", 0, 0.0)
    assert movement.stands_still
    movement.note(_LATER + 5, "", 9, 0.0)
    assert not movement.stands_still


def test_a_look_is_taken_from_time_to_time(tmp_path: Path) -> None:
    log = tmp_path / "store.log"
    movement = Movement(since=0.0)
    movement.look(_LATER, "catalog", log, 0)
    log.write_text("more\n", encoding="utf-8")
    movement.look(_LATER + 1, "catalog", log, 0)
    assert movement.since == _LATER  # that was too soon to look
    movement.look(_LATER + 6, "catalog", log, 0)
    assert movement.since == _LATER + 6


def test_processor_time_is_that_of_all_below(tmp_path: Path) -> None:
    work = "sum(range(10**7))"
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', '{work}; print(1, flush=True); input()'], stdin=0).wait()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        assert cpu_seconds(parent.pid) > 0.1
        parent.communicate(b"\n")
    assert cpu_seconds(parent.pid) == 0.0

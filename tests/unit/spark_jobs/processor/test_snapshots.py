"""Snapshots are written once everything published before them is in the log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_jobs.output import Outbox
from spark_jobs.processor.snapshots import Snapshots
from spark_jobs.replay import Replay
from spark_jobs.state import Snapshot, StateFiles
from tests.unit.spark_jobs.publisher_kit import HeldPublisher


class _Taken:
    def __init__(self, root: Path, **ends: int) -> None:
        self.root = root
        self.publisher: Any = HeldPublisher()
        self.outbox = Outbox(self.publisher, Replay())
        self.files = StateFiles(str(root))
        self.snapshots = Snapshots(self.files, "me", self.outbox, ends)
        self.written: list[int] = []

    def take(self, position: int, *, full: bool = True) -> None:
        self.snapshots.take(
            Snapshot(position), full=full, written=lambda: self.written.append(position)
        )

    def saved(self) -> Snapshot | None:
        return StateFiles(str(self.root)).load()


def test_the_state_is_left_to_whoever_comes_next(tmp_path):
    taken = _Taken(tmp_path)
    assert not taken.files.claim("me", 0)
    taken.snapshots.release(7)
    assert taken.files.claim("next", 7)
    taken.snapshots.release(9)
    assert not taken.files.claim("third", 9), "the next one has it"


def test_a_snapshot_waits_for_the_outputs_before_it(tmp_path):
    taken = _Taken(tmp_path)
    taken.outbox.post("t", b"x", partition=0)
    taken.take(5)
    assert taken.saved() is None
    assert 0 < taken.snapshots.due(0.0) < 1
    taken.publisher.acknowledge()
    taken.snapshots.wait()
    assert taken.written == [5]
    state = taken.saved()
    assert state is not None
    assert (state.next, state.ends) == (5, {"t:0": 1})
    taken.snapshots.close()


def test_outputs_behind_it_do_not_hold_it_up(tmp_path):
    taken = _Taken(tmp_path)
    taken.take(5)
    taken.outbox.post("t", b"x", partition=0)
    taken.snapshots.wait()
    assert taken.written == [5]
    taken.snapshots.close()


def test_a_full_one_knows_all_ends_and_a_delta_those_that_moved(tmp_path, monkeypatch):
    taken = _Taken(tmp_path, **{"t:0": 3, "u:0": 9})
    saved: list[tuple[bool, dict[str, int]]] = []
    monkeypatch.setattr(
        taken.files, "save", lambda state, *, full: saved.append((full, state.ends))
    )
    taken.take(5, full=False)
    taken.snapshots.wait()
    taken.outbox.post("t", b"x", partition=0)
    taken.publisher.acknowledge()
    taken.take(6)
    taken.snapshots.wait()
    assert saved == [(False, {}), (True, {"t:0": 1, "u:0": 9})]
    taken.snapshots.close()


def test_what_made_a_snapshot_fail_is_raised(tmp_path, monkeypatch):
    taken = _Taken(tmp_path)
    taken.snapshots.check()
    taken.snapshots.wait()

    def fail(state: Snapshot, *, full: bool) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(taken.files, "save", fail)
    taken.take(5)
    with pytest.raises(OSError, match="no space"):
        taken.snapshots.wait()
    with pytest.raises(OSError, match="no space"):
        taken.snapshots.check()
    assert taken.written == []
    taken.snapshots.close()


def test_the_first_one_is_full_and_the_next_is_due_after_the_interval(tmp_path):
    taken = _Taken(tmp_path)
    assert taken.snapshots.full_due
    taken.take(5)
    taken.snapshots.wait()
    assert not taken.snapshots.full_due
    assert 3500 < taken.snapshots.due(3600.0) <= 3600
    assert taken.snapshots.due(0.0) == 0.0
    taken.snapshots.close()

"""State and checkpoints of topics that are gone are removed, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem

from penstock import names
from penstock.catalog.model import Database
from spark_jobs.leftovers import Leftovers
from spark_jobs.queries import Wanted
from spark_jobs.settings import SparkSettings
from tests.unit.spark_jobs.driver_kit import Reader, database


class _Kept:
    """Directories of state and checkpoints, and a catalog with the database 5."""

    def __init__(self, root: Path, entry: Database | None = None) -> None:
        self.settings = SparkSettings(data_dir=root, state_dir=str(root / "state"))
        self.state = root / "state"
        self.checkpoints = Path(self.settings.checkpoint_dir)
        self.reader: Any = Reader(entry or database())
        self.leftovers = Leftovers(self.settings, self.reader)

    def make(self, *names_of: str) -> None:
        for parent in (self.state, self.checkpoints):
            for name in names_of:
                (parent / name / "topic").mkdir(parents=True)

    def left(self) -> tuple[set[str], set[str]]:
        in_state = {p.name for p in self.state.iterdir()} - {self.checkpoints.name}
        return in_state, {p.name for p in self.checkpoints.iterdir()}


def test_directories_of_unknown_topics_go(tmp_path):
    kept = _Kept(tmp_path)
    kept.make("0", "5", "9", "notes")  # 0 is the exchange
    kept.leftovers.due = True
    kept.leftovers.remove_all()
    assert kept.left() == ({"0", "5", "notes"}, {"0", "5", "notes"})
    assert not kept.leftovers.due


def test_without_any_directory_there_is_nothing_to_do(tmp_path):
    _Kept(tmp_path).leftovers.remove_all()


def test_topics_of_earlier_generations_go_once_they_are_removed(tmp_path):
    entry = database(former=((7,), (8, 9)), removed=1)
    kept = _Kept(tmp_path, entry)
    places = {}
    for topic, _ in entry.lineage:
        state = Path(names.state_directory(str(kept.state), "5", topic, 0))
        checkpoint = Path(kept.settings.checkpoint(topic, 5))
        state.mkdir(parents=True)
        checkpoint.mkdir(parents=True)
        places[topic] = (state, checkpoint)
    kept.leftovers.remove_all()
    there = {topic: [p.exists() for p in paths] for topic, paths in places.items()}
    first, second, third = (topic for topic, _ in entry.lineage)
    assert there == {first: [False, False], second: [True, True], third: [True, True]}


def test_a_dropped_topic_leaves_nothing(tmp_path):
    kept = _Kept(tmp_path)
    kept.make("5", "9")
    kept.leftovers.remove_topic(Wanted("in.gone", 1, 9))
    assert kept.left() == ({"5"}, {"5"})


def test_what_the_next_generation_takes_over_stays(tmp_path):
    kept = _Kept(tmp_path)
    kept.make("5")
    kept.leftovers.remove_topic(Wanted("in.db-g0", 1, 5))
    assert kept.left() == ({"5"}, {"5"})


def test_a_checkpoint_goes_alone(tmp_path):
    kept = _Kept(tmp_path)
    checkpoint = Path(kept.settings.checkpoint("in.db", 5))
    checkpoint.mkdir(parents=True)
    (kept.state / "5").mkdir(parents=True, exist_ok=True)
    kept.leftovers.remove_checkpoint(Wanted("in.db", 2, 5))
    assert not checkpoint.exists()
    assert (kept.state / "5").exists()


def test_what_is_still_being_written_is_removed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = _Kept(tmp_path)
    kept.make("9")

    def refuse(*_: object, **__: object) -> None:
        raise OSError("Directory not empty")

    with monkeypatch.context() as patched:
        patched.setattr(LocalFileSystem, "rm", refuse)
        kept.leftovers.remove_topic(Wanted("in.gone", 1, 9))
    assert kept.leftovers.due
    kept.leftovers.remove_all()
    assert kept.left() == (set(), set())

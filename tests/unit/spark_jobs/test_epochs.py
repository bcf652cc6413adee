"""Manifests: each epoch of a query is published once, with its offsets and state files."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from penstock import names
from penstock.records import Manifest, decode
from penstock.runtime.clock import ManualClock
from spark_jobs.epochs import Epochs
from spark_jobs.operator import state_directory
from spark_jobs.queries import Wanted
from spark_jobs.settings import SparkSettings
from tests.unit.spark_jobs.driver_kit import TOPIC

_WANTED = Wanted(TOPIC, 2, 5)


class _Publisher:
    def __init__(self) -> None:
        self.manifests: list[Manifest] = []

    def send(self, topic: str, value: bytes, *, key: bytes, partition: int) -> None:
        assert (topic, key, partition) == (names.EPOCHS, TOPIC.encode(), 0)
        self.manifests.append(decode(Manifest, value))


class _Watched:
    def __init__(self, root: Path) -> None:
        self.settings = SparkSettings(data_dir=root, state_dir=str(root / "state"))
        self.publisher: Any = _Publisher()
        self.epochs = Epochs(self.settings, self.publisher, ManualClock(7_000_000_000))

    def report(self, batch: int | None, run: str = "r1", ends: Any = None) -> bool:
        progress = None
        if batch is not None:
            text = None if ends is None else json.dumps(ends)
            progress = {"batchId": batch, "sources": [{"endOffset": text}]}
        query: Any = SimpleNamespace(lastProgress=progress, runId=run)
        return self.epochs.report(_WANTED, query)


def test_an_epoch_is_reported_once(tmp_path):
    watched = _Watched(tmp_path)
    reported = [watched.report(n, ends={TOPIC: {"0": n}}) for n in (0, 0, 1, 1, 0)]
    assert reported == [True, False, True, False, False]
    assert [m.batch for m in watched.publisher.manifests] == [0, 1]


def test_a_query_without_an_epoch_has_none(tmp_path):
    watched = _Watched(tmp_path)
    assert not watched.report(None)
    assert watched.publisher.manifests == []


def test_a_query_that_was_started_anew_counts_for_itself(tmp_path):
    watched = _Watched(tmp_path)
    assert watched.report(3, "r1")
    assert watched.report(3, "r2")


def test_a_manifest_says_up_to_where_and_in_which_files(tmp_path):
    watched = _Watched(tmp_path)
    for partition, file in ((0, "10.full"), (0, "20.delta"), (0, "20.tmp"), (1, "7.full")):
        directory = Path(state_directory(watched.settings, TOPIC, 5, partition))
        directory.mkdir(parents=True, exist_ok=True)
        (directory / file).touch()
    watched.report(4, ends={TOPIC: {"0": 20, "1": 7}})
    [manifest] = watched.publisher.manifests
    assert (manifest.query, manifest.batch, manifest.time) == (TOPIC, 4, 7_000)
    assert manifest.offsets == {f"{TOPIC}:0": 20, f"{TOPIC}:1": 7}
    assert manifest.checkpoint == watched.settings.checkpoint(TOPIC, 5)
    assert [Path(f).name for f in manifest.files] == ["10.full", "20.delta", "7.full"]


def test_without_offsets_and_files_a_manifest_is_empty(tmp_path):
    watched = _Watched(tmp_path)
    watched.report(0)
    [manifest] = watched.publisher.manifests
    assert (manifest.offsets, manifest.files) == ({}, ())

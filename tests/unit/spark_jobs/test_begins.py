"""A query begins where the state files are."""

from __future__ import annotations

import json
from pathlib import Path

from penstock.storage.statefile import file_name
from spark_jobs.begins import EARLIEST, begins, newest, starting_offsets
from spark_jobs.operator import state_directory
from spark_jobs.queries import Wanted
from spark_jobs.settings import SparkSettings


def test_the_newest_file_says_how_far_a_partition_is() -> None:
    files = [file_name(9, full=True), file_name(120, full=False), file_name(30, full=True)]
    assert newest(files) == 120
    assert newest(["owner", f"{file_name(500, full=True)}.tmp"]) == EARLIEST


def test_each_partition_has_its_own_place_and_one_without_state_begins_at_the_first(
    tmp_path: Path,
) -> None:
    settings = SparkSettings(data_dir=tmp_path, state_dir=str(tmp_path / "state"))
    wanted = Wanted("in.db", 2, 5)
    assert begins(settings, wanted) == {0: EARLIEST, 1: EARLIEST}
    directory = Path(state_directory(settings, "in.db", 5, 1))
    directory.mkdir(parents=True)
    (directory / file_name(42, full=True)).touch()
    assert begins(settings, wanted) == {0: EARLIEST, 1: 42}


def test_spark_is_told_every_partition() -> None:
    assert json.loads(starting_offsets("in.db", {0: EARLIEST, 1: 42})) == {
        "in.db": {"0": -2, "1": 42}
    }

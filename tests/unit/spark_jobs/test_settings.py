from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ConfigError
from spark_jobs.operator import state_directory
from spark_jobs.settings import SparkSettings


def test_state_on_a_shared_directory_has_checkpoints_and_notes_beside_it(tmp_path: Path) -> None:
    for url in (str(tmp_path / "shared"), f"file://{tmp_path}/shared"):
        settings = SparkSettings.load(data_dir=tmp_path / "own", state_dir=url)
        assert (
            settings.checkpoint_dir == f"{tmp_path}/shared/checkpoints"
            and settings.scratch_dir == tmp_path / "shared/notes"
        )


def test_state_in_an_object_store_leaves_checkpoints_and_notes_on_disk(tmp_path: Path) -> None:
    settings = SparkSettings.load(data_dir=tmp_path, state_dir="s3://bucket/mesh/state")
    assert (
        settings.checkpoint_dir == f"{tmp_path}/state/checkpoints"
        and settings.scratch_dir == tmp_path / "state/notes"
    )
    assert state_directory(settings, "in.d", 7, 2) == "s3://bucket/mesh/state/7/in.d-2"


def test_an_unknown_file_system_is_a_fault_of_the_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="PENSTOCK_STATE_DIR: .*no file system for it"):
        SparkSettings.load(data_dir=tmp_path, state_dir="nothing://bucket")

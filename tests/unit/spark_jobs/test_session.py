"""Where Spark and its workers meet, and how it writes its offsets."""

from __future__ import annotations

from pathlib import Path

from spark_jobs.session import checkpoint_files, socket_directory


def test_a_long_data_directory_has_no_room_for_a_socket() -> None:
    assert socket_directory("/var/lib/penstock/run/tmp") == "/var/lib/penstock/run/tmp"
    assert socket_directory("/home/somebody/" + "long/" * 20) == "/tmp"


def test_offsets_on_a_disk_are_written_by_renaming_and_those_in_an_object_store_as_spark_does(
    tmp_path: Path,
) -> None:
    for directory in (str(tmp_path), f"file://{tmp_path}"):
        [(setting, manager)] = checkpoint_files(directory).items()
        assert setting == "spark.sql.streaming.checkpointFileManagerClass"
        assert manager.endswith(".FileSystemBasedCheckpointFileManager")
    assert checkpoint_files("memory://penstock/state") == {}

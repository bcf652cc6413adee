"""Where Spark and its workers meet, and how it writes its offsets."""

from __future__ import annotations

import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from spark_jobs.queries import Wanted
from spark_jobs.session import (
    SparkSessions,
    _is_new,
    _position_name,
    checkpoint_files,
    socket_directory,
)
from spark_jobs.settings import SparkSettings


def test_a_long_data_directory_has_no_room_for_a_socket() -> None:
    assert socket_directory("/var/lib/penstock/run/tmp") == "/var/lib/penstock/run/tmp"
    assert socket_directory("/home/somebody/" + "long/" * 20) == "/tmp"


def test_offsets_on_a_disk_are_written_by_renaming_and_those_in_an_object_store_as_spark_does(
    tmp_path: Path,
) -> None:
    for directory in (str(tmp_path), f"file://{tmp_path}"):
        settings = checkpoint_files(directory)
        manager = settings["spark.sql.streaming.checkpointFileManagerClass"]
        assert manager.endswith(".FileSystemBasedCheckpointFileManager")
        assert settings["spark.hadoop.fs.file.impl"].endswith(".RawLocalFileSystem")
    assert checkpoint_files("memory://penstock/state") == {}


def test_a_topic_that_takes_the_name_of_another_does_not_inherit_its_position() -> None:
    first, second = Wanted("in.db", 2, 5), Wanted("in.db", 2, 9)
    assert _position_name(first, 1) == "penstock.position.in.db.5-1"
    assert "'penstock.position.in.db.5-'" in _is_new(first)
    assert _is_new(first) != _is_new(second)


class _Proxy:
    """Of an object in the JVM, and in a cycle, as those of ended queries are."""

    def __init__(self) -> None:
        self.itself = self


def test_the_jvm_collects_when_the_proxies_here_are_gone() -> None:
    proxy = _Proxy()
    alive = weakref.ref(proxy)
    found: list[_Proxy | None] = []
    system = SimpleNamespace(gc=lambda: found.append(alive()))
    jvm = SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=system)))
    sessions = SparkSessions(SparkSettings(), cast(Any, SimpleNamespace(_jvm=jvm)), {})
    del proxy
    sessions.give_back_memory()
    assert found == [None]

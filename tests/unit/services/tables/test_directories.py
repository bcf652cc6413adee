from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from penstock.errors import ConfigError
from services.tables.copy_directory import CopyDirectory
from services.tables.settings import TablesSettings


def directory(path: Path) -> CopyDirectory:
    loop = asyncio.new_event_loop()
    loop.close()
    return CopyDirectory(TablesSettings.load(persistence_dir=path), loop)


def test_d25_a_directory_that_cannot_be_used_is_named_at_the_start(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ConfigError) as wrong:
        TablesSettings.load(persistence_dir=file / "copies")
    assert f"{file} is no directory" in wrong.value.detail
    assert (
        TablesSettings.load(persistence_dir=tmp_path / "a" / "b").directory == tmp_path / "a" / "b"
    )


def test_d25_each_node_has_a_directory_of_its_own(tmp_path: Path) -> None:
    first = directory(tmp_path / "copies")
    with pytest.raises(ConfigError, match="copies of another node"):
        directory(tmp_path / "copies")
    first.release()
    directory(tmp_path / "copies").release()

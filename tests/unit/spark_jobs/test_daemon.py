"""The worker daemon's change of how archives are read."""

from __future__ import annotations

import importlib
import zipfile
import zipimport
from pathlib import Path

import pytest

from spark_jobs.daemon import keep_lists_of_archives


def test_lists_of_archives_are_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as it is now, for whoever comes after this test
    monkeypatch.setattr(
        zipimport.zipimporter, "invalidate_caches", zipimport.zipimporter.invalidate_caches
    )
    archive = tmp_path / "packed.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("packed_for_a_test.py", "VALUE = 7")
    monkeypatch.syspath_prepend(str(archive))
    assert importlib.import_module("packed_for_a_test").VALUE == 7
    read: list[str] = []
    monkeypatch.setattr(zipimport, "_read_directory", lambda path: read.append(path) or {})
    importlib.invalidate_caches()
    assert str(archive) in read, "else there is nothing to keep anybody from"
    read.clear()
    keep_lists_of_archives()
    importlib.invalidate_caches()
    assert not read

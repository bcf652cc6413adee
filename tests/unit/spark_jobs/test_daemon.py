"""The worker daemon's changes: how archives are read, and what its workers inherit."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import zipfile
import zipimport
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.catalog.model import Database
from penstock.catalog.view import Catalog
from penstock.config.environment import ENTRY_FILE_VARIABLE
from spark_jobs.daemon import keep_lists_of_archives
from spark_jobs.entry_file import EntryFile
from spark_jobs.session import _options
from spark_jobs.settings import SparkSettings

_FORKS = """
import os
from spark_jobs.daemon import build_before_forks
from spark_jobs.entry_file import BUILT
build_before_forks()
print(len(BUILT), flush=True)
if os.fork() == 0:
    print(len(BUILT), flush=True)
    os._exit(0)
os.wait()
"""


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


def test_workers_inherit_what_is_in_the_file_that_the_driver_names(tmp_path: Path) -> None:
    settings = SparkSettings(data_dir=tmp_path)
    reader: Any = SimpleNamespace(catalog=Catalog([Database(10, "home")]), listen=lambda _: None)
    EntryFile(settings.entry_file, reader).begin()
    named = _options(settings)[f"spark.executorEnv.{ENTRY_FILE_VARIABLE}"]
    environment = {**os.environ, ENTRY_FILE_VARIABLE: named}
    done = subprocess.run(
        [sys.executable, "-c", _FORKS], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["0", "1"], done.stderr

"""Workers inherit the definitions that the driver has read, and believe the log alone."""

from __future__ import annotations

import dataclasses
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from penstock import names
from penstock.bus import Batch
from penstock.catalog import entries
from penstock.catalog.apply import Changed, LogApplier
from penstock.catalog.built import BuiltEntries
from penstock.catalog.model import Database, Entry, User
from penstock.catalog.view import Catalog
from spark_jobs import entry_file
from spark_jobs.entry_file import EntryFile, EntryFileReader

HOME = Database(10, "home")
AWAY = Database(11, "away")
ANN = User(12, "ann", "hash-of-ann")


class _Driver:
    """A driver's catalog and its file."""

    def __init__(self, path: Path, *found: Entry) -> None:
        self.catalog = Catalog(found)
        self._listeners: list[Callable[[list[Changed]], None]] = []
        reader: Any = SimpleNamespace(catalog=self.catalog, listen=self._listeners.append)
        self.file = EntryFile(path, reader)
        self.file.begin()

    def change(self, entry: Entry) -> None:
        old = self.catalog.put(entry)
        for listener in self._listeners:
            listener([Changed(old, entry)])


class _Daemon:
    """What a daemon has built."""

    def __init__(self, path: Path) -> None:
        self.built = BuiltEntries()
        self.reader = EntryFileReader(str(path), self.built)

    def has(self, entry: Entry) -> bool:
        self.reader.catch_up()
        return is_built(self.built, entry)


def is_built(built: BuiltEntries, entry: Entry) -> bool:
    """Whether two who ask get the same object."""
    record = entries.read(entries.to_value(entry, 5))
    found = built.entry_of(record)
    assert found == entry
    return found is built.entry_of(record)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "notes" / "entries"


def test_a_worker_inherits_what_was_there_and_each_change(path: Path) -> None:
    driver, daemon = _Driver(path, HOME), _Daemon(path)
    assert daemon.has(HOME)
    assert not daemon.has(AWAY)
    driver.change(AWAY)
    assert daemon.has(AWAY)
    other = dataclasses.replace(AWAY, partitions=7)
    driver.change(other)
    assert daemon.has(other)
    assert not daemon.has(AWAY)


def test_no_user_is_in_the_file_and_it_is_its_owners(path: Path) -> None:
    driver = _Driver(path, HOME, ANN)
    driver.change(dataclasses.replace(ANN, password="another-hash"))
    assert b"hash" not in path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_file_of_the_next_driver_is_read_from_its_beginning(path: Path) -> None:
    _Driver(path, HOME)
    daemon = _Daemon(path)
    assert daemon.has(HOME)
    _Driver(path, AWAY)
    assert daemon.has(AWAY)
    assert not daemon.has(HOME), "else what was dropped stays in memory for ever"


def test_a_record_that_is_half_written_is_read_when_it_is_whole(path: Path) -> None:
    driver, daemon = _Driver(path, HOME), _Daemon(path)
    driver.change(AWAY)
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    assert daemon.has(HOME)
    assert not daemon.has(AWAY)
    path.write_bytes(whole)
    assert daemon.has(AWAY)


@pytest.mark.parametrize("text", [b"", b"short", b"m" * 16 + b"\0\0\0\3abc"])
def test_a_broken_file_is_left_out(path: Path, text: bytes) -> None:
    daemon = _Daemon(path)
    assert not daemon.has(HOME)
    path.parent.mkdir()
    path.write_bytes(text)
    assert not daemon.has(HOME)
    _Driver(path, HOME)
    assert daemon.has(HOME)


def test_a_file_with_many_changes_is_written_anew(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_file, "_SLACK_BYTES", 1000)
    driver, daemon = _Driver(path, HOME), _Daemon(path)
    for n in range(2, 200):
        driver.change(dataclasses.replace(HOME, partitions=n))
        assert daemon.has(dataclasses.replace(HOME, partitions=n))
    assert path.stat().st_size < 2000


def test_a_driver_that_cannot_write_goes_on(path: Path) -> None:
    path.parent.write_text("no directory")
    _Driver(path, HOME).change(AWAY)
    assert not _Daemon(path).has(HOME)


def test_after_a_write_that_failed_the_file_begins_anew(path: Path) -> None:
    driver, daemon = _Driver(path, HOME), _Daemon(path)
    path.unlink()
    path.mkdir()
    driver.change(AWAY)
    assert not daemon.has(AWAY)
    path.rmdir()
    driver.change(dataclasses.replace(HOME, partitions=7))
    assert daemon.has(AWAY)


def test_what_is_built_stands_for_no_record_that_the_log_refuses(path: Path) -> None:
    built = BuiltEntries()
    built.build(entries.read(entries.to_value(HOME, 1)))
    catalog = Catalog()
    applier = LogApplier(catalog, children=False, registry=None, built=built)
    records = [
        (entries.LEADER_KEY, entries.leader_value(3, 20)),
        (entries.key_of(HOME), entries.to_value(HOME, 3)),
        # of a writer that has lost its lease, and one that names another entry
        (entries.key_of(HOME), entries.to_value(HOME, 2)),
        (entries.key_of(AWAY), entries.to_value(HOME, 3)),
    ]
    numbers = np.arange(len(records))
    keys, values = [list(column) for column in zip(*records, strict=True)]
    changes = applier.apply(Batch(names.CATALOG, 0, numbers, numbers, keys, values))
    assert changes == [Changed(None, HOME)]
    assert catalog.database("home") is built.entry_of(entries.read(entries.to_value(HOME, 9)))
    assert applier.spoiled == {entries.key_of(HOME), entries.key_of(AWAY)}

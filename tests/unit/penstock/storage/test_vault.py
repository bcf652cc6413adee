"""A backup is whole or it is not there; whatever is damaged is noticed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import StateError
from penstock.storage.backup_list import Backup, Item
from penstock.storage.vault import PART, Vault, mask_login
from tests.rsync_daemon import needs_rsync, rsync_daemon


def made(vault: Vault, number: int, **files: bytes) -> Backup:
    items = tuple(vault.put("q.1", name, data) for name, data in files.items())
    backup = Backup("q.1", number * 1000, number, items, {"n": number})
    vault.publish(backup)
    return backup


@pytest.fixture(params=["directory", "object store", pytest.param("rsync", marks=needs_rsync)])
def vault(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Vault]:
    if request.param == "rsync":
        with rsync_daemon(tmp_path / "daemon") as (url, _):
            yield Vault(f"{url}/below/here")
        return
    yield Vault(str(tmp_path / "v") if request.param == "directory" else f"memory://{tmp_path}")


def test_what_is_published_comes_back_newest_first(vault: Vault, tmp_path: Path) -> None:
    assert vault.subjects() == [] and vault.backups("q.1") == []
    one = made(vault, 1, a=b"x", b=b"y")
    two = made(vault, 2, a=b"x", b=b"z")
    assert vault.backups("q.1") == [two, one]
    assert vault.subjects() == ["q.1"]
    assert (two.size, vault.faults(two), vault.read(two, two.items[1])) == (2, [], b"z")
    vault.extract(two, two.items[1], tmp_path / "out" / "b")
    assert (tmp_path / "out" / "b").read_bytes() == b"z"


def test_nothing_is_published_that_is_not_whole(vault: Vault) -> None:
    kept = vault.put("q.1", "a", b"x")
    with pytest.raises(StateError, match="not whole"):
        vault.publish(Backup("q.1", 1, 1, (kept, Item("b", "0" * 32, 5))))
    assert vault.backups("q.1") == []


def test_a_death_before_publishing_leaves_nothing_visible(vault: Vault) -> None:
    item = vault.put("q.1", "a", b"x")

    def die() -> None:
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        vault.publish(Backup("q.1", 1, 1, (item,)), die)
    assert vault.backups("q.1") == []


def test_damage_is_noticed(tmp_path: Path) -> None:
    vault = Vault(str(tmp_path))
    one = made(vault, 1, a=b"old")
    two = made(vault, 2, a=b"new", b=b"more")
    objects = {p.name: p for p in (tmp_path / "q.1" / "objects").rglob("*") if p.is_file()}
    objects[two.items[0].digest].write_bytes(b"NEW")
    objects[two.items[1].digest].unlink()
    assert vault.faults(two) == ["a: damaged", "b: missing"]
    with pytest.raises(StateError, match="damaged"):
        vault.extract(two, two.items[0], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "q.1" / f"{one.name}.backup").write_bytes(b"PENSTOCK BACKUP 1 00\n{}")
    assert vault.backups("q.1") == [two], "a torn list does not count"


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    vault = Vault(str(tmp_path))
    made(vault, 1, a=b"x")
    (tmp_path / "q.1" / "00000000000000009-000000001.backup").write_bytes(
        b"PENSTOCK BACKUP 99 00\n{}"
    )
    with pytest.raises(StateError, match="version 99"):
        vault.backups("q.1")


def test_what_no_backup_names_is_swept_when_it_is_old(tmp_path: Path) -> None:
    vault = Vault(str(tmp_path))
    one = made(vault, 1, a=b"x")
    two = made(vault, 2, a=b"y")
    vault.remove(one)
    files = [p for p in (tmp_path / "q.1" / "objects").rglob("*") if p.is_file()]
    now = files[0].stat().st_mtime
    assert vault.sweep("q.1", now) == 0, "somebody may be making a backup with it"
    for path in files:
        os.utime(path, (now - 7200, now - 7200))
    assert vault.sweep("q.1", now) == 1
    assert vault.faults(two) == []


def test_a_large_file_goes_in_parts_and_what_has_grown_is_not_kept_twice(tmp_path: Path) -> None:
    vault = Vault(str(tmp_path / "v"))
    source = tmp_path / "big"
    source.write_bytes(os.urandom(PART + 5))
    first = vault.put_file("d", "big", source)
    with open(source, "ab") as out:
        out.write(b"more")
    second = vault.put_file("d", "big", source)
    assert [(i.part, i.size) for i in second] == [(0, PART), (1, 9)]
    assert first[0] == second[0]
    vault.publish(backup := Backup("d", 1, 1, tuple(second)))
    for item in backup.items:
        vault.extract(backup, item, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == source.read_bytes()
    (tmp_path / "empty").touch()
    assert [i.size for i in vault.put_file("d", "empty", tmp_path / "empty")] == [0]


def test_addresses_are_shown_without_their_secrets() -> None:
    assert mask_login("s3://key:secret@host/bucket") == "s3://host/bucket"
    assert mask_login("/var/backup") == "/var/backup"

"""A directory behind a real rsync daemon, file by file."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from penstock.errors import StateError
from penstock.storage.backup_list import Backup
from penstock.storage.rsync import RsyncFileSystem, open_place
from penstock.storage.vault import Vault, mask_login
from tests.rsync_daemon import PASSWORD, needs_rsync, rsync_daemon


@pytest.mark.parametrize(
    ("place", "path"),
    [
        ("rsync://keeper:s%20e@host:8730/vault/a/", "rsync://keeper@host:8730/vault/a"),
        ("rsync://host/vault", "rsync://host/vault"),
        ("backup.example.com:/srv/penstock", "backup.example.com:/srv/penstock"),
        ("keeper@host:penstock/", "keeper@host:penstock"),
        ("host::vault/a", "host::vault/a"),
        ("/srv/penstock", None),
        ("relative/path:x", None),
        ("s3://bucket/a", None),
        ("memory://a", None),
    ],
)
def test_what_is_meant_for_rsync(place: str, path: str | None) -> None:
    found = open_place(place)
    assert (None if found is None else found[1]) == path


HOSTILE = [
    "-e:module",
    "--rsh:x",
    "-oProxyCommand:x",
    "user@-oProxyCommand:x",
    "-user@host:x",
    "--:x",
    "rsync://-host/m",
    "rsync://-user@host/m",
    "rsync://user:secret@-host/m",
    "host:a\nb",
    "rsync://host/a\x00b",
]


@pytest.mark.parametrize("place", HOSTILE)
def test_no_place_is_an_option(place: str) -> None:
    with pytest.raises(StateError, match="no place for rsync") as refused:
        Vault(place)
    assert "secret" not in str(refused.value)


def test_what_a_listing_names_is_no_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program in place of rsync writes down what it is given."""
    program = tmp_path / "rsync"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >>{tmp_path}/given\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    fs = RsyncFileSystem()
    fs.pipe_file("--rsh=evil", b"x")
    fs.ls("--rsh=evil")
    fs.rm_file("--rsh=evil/name")
    with pytest.raises(OSError):
        fs.cat_file("--rsh=evil")
    given = (tmp_path / "given").read_text().split("--no-motd\n")[1:]
    assert len(given) == 4
    assert not [call for call in given if "--rsh=evil" in call.partition("\n--\n")[0]]


@needs_rsync
def test_files_are_written_listed_read_and_removed(tmp_path: Path) -> None:
    with rsync_daemon(tmp_path) as (url, there):
        assert PASSWORD not in mask_login(url)
        fs, root = open_place(url) or pytest.fail("not meant for rsync")
        with pytest.raises(FileNotFoundError):
            fs.info(f"{root}/a/b/one")
        assert fs.ls(root, detail=False) == []
        with fs.open(f"{root}/a/b/one", "wb") as out:
            out.write(b"\0first\n")
        fs.pipe_file(f"{root}/a/b/wo*[x]", b"x" * 3_000_000)
        fs.pipe_file(f"{root}/a/b/wow", b"stays")
        assert (
            (there / "a" / "b" / "one").read_bytes()
            == fs.cat_file(f"{root}/a/b/one")
            == b"\0first\n"
        )
        assert (fs.info(f"{root}/a/b/wo*[x]")["size"], fs.isdir(f"{root}/a")) == (3_000_000, True)
        assert abs(fs.modified(f"{root}/a/b/one").timestamp() - time.time()) < 60
        assert (fs.ls(root, detail=False), sorted(fs.find(root))) == (
            [f"{root}/a"],
            [f"{root}/a/b/{n}" for n in ("one", "wo*[x]", "wow")],
        )
        fs.rm_file(f"{root}/a/b/wo*[x]")
        assert sorted(p.name for p in (there / "a" / "b").iterdir()) == ["one", "wow"]
        with pytest.raises(RuntimeError), fs.open(f"{root}/a/half", "wb") as out:
            out.write(b"half of it")
            raise RuntimeError
        assert not (there / "a" / "half").exists()


@needs_rsync
def test_a_daemon_that_is_away_is_an_error_and_nothing_is_swept(tmp_path: Path) -> None:
    with rsync_daemon(tmp_path) as (url, there):
        vault = Vault(url)
        backup = Backup("q.1", 1, 1, (vault.put("q.1", "a", b"x"),))
        vault.publish(backup)
    assert vault.sweep("q.1", time.time() + 10_000) == 0
    with pytest.raises(OSError, match="rsync"):
        vault.put("q.1", "b", b"y")
    with pytest.raises(StateError, match="missing"):
        vault.read(backup, backup.items[0])
    assert len([p for p in there.rglob("*") if p.is_file()]) == 2

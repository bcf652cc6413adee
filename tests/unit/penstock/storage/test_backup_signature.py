"""A backup is restored when the mesh's key has signed its list, or when the operator says that it
may be without.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli import app, backup
from penstock.errors import ConfigError, PenstockError, StateError
from penstock.storage.backup_list import Backup
from penstock.storage.checkpoints import newest_verified
from penstock.storage.vault import Vault
from spark_jobs.queries import Wanted
from spark_jobs.recovery import recover
from spark_jobs.settings import SparkSettings
from spark_jobs.state import Snapshot, StateFiles
from tests.unit.formats.make import DATA

assert backup.app is app  # importing it adds the commands


def command(*arguments: str) -> None:
    done = CliRunner().invoke(app, list(arguments))
    if isinstance(done.exception, PenstockError):
        raise done.exception
    assert done.exit_code == 0, done.output


def published(vault: Vault, number: int) -> Backup:
    vault.publish(Backup("q.1", number, number, (vault.put("q.1", "a", b"%d" % number),), {}))
    return vault.backups("q.1")[0]


def list_file(root: Path) -> Path:
    (path,) = root.rglob("*.backup")
    return path


def test_the_key_decides(tmp_path: Path) -> None:
    place = str(tmp_path)
    ours = Vault(place, b"ours")
    theirs = Vault(place, b"theirs")
    none = Vault(place)
    signed = published(ours, 1)
    ours.require_trusted(signed)
    none.require_trusted(signed)
    for foreign in (published(theirs, 2), published(none, 3)):
        (seen,) = [b for b in ours.backups("q.1") if b.name == foreign.name]
        with pytest.raises(StateError, match="not to be trusted") as refused:
            ours.require_trusted(seen)
        assert "--unsigned" in str(refused.value.hint)
        Vault(place, b"ours", unsigned=True).require_trusted(seen)
    assert newest_verified(ours, "q.1") == signed, "what others have added is passed over"


def test_whoever_makes_new_digests_makes_no_signature(tmp_path: Path) -> None:
    vault = Vault(str(tmp_path), b"ours")
    published(vault, 1)
    path = list_file(tmp_path)
    head, signature, body = path.read_bytes().split(b"\n")
    forged = {**json.loads(body), "facts": {"positions": {"x-0": 9}}}
    sealed = signature + b"\n" + json.dumps(forged, separators=(",", ":")).encode()
    digest = hashlib.blake2b(sealed, digest_size=16).hexdigest().encode()
    path.write_bytes(head.rpartition(b" ")[0] + b" " + digest + b"\n" + sealed)
    (made,) = vault.backups("q.1")
    with pytest.raises(StateError, match="not to be trusted"):
        vault.require_trusted(made)


def test_a_list_of_another_subject_or_time_does_not_count(tmp_path: Path) -> None:
    vault = Vault(str(tmp_path), b"ours")
    published(vault, 1)
    path = list_file(tmp_path)
    (tmp_path / "other.2").mkdir()
    shutil.copy(path, tmp_path / "other.2" / path.name)
    shutil.copy(path, path.with_name("00000000000000009-000000009.backup"))
    assert vault.backups("other.2") == []
    assert [b.time for b in vault.backups("q.1")] == [1]


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b'{"items": 1}', b"[" * 100_000, b'{"items": [{"path": 1}]}', b"\xff"],
)
def test_nonsense_under_a_right_digest_does_not_count(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "q.1").mkdir()
    sealed = b"-\n" + body
    head = b"PENSTOCK BACKUP 2 " + hashlib.blake2b(sealed, digest_size=16).hexdigest().encode()
    (tmp_path / "q.1" / "00000000000000009-000000009.backup").write_bytes(head + b"\n" + sealed)
    assert Vault(str(tmp_path)).backups("q.1") == []


@pytest.fixture
def mesh(tmp_path: Path) -> Path:
    (tmp_path / "one" / "kafka" / "log").mkdir(parents=True)
    (tmp_path / "one" / "kafka" / "log" / "00.log").write_text("rows")
    return tmp_path / "one"


def test_a_mesh_is_restored_with_the_key_of_the_one_that_made_the_backup(
    tmp_path: Path, mesh: Path
) -> None:
    copies = str(tmp_path / "copies")
    command("backup", copies, "--data-dir", str(mesh))
    key = mesh / "secrets" / "backup.password"
    assert key.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ConfigError, match="no key"):
        command("restore", copies, "--data-dir", str(tmp_path / "two"))
    wrong = tmp_path / "wrong"
    wrong.write_text("another")
    with pytest.raises(StateError, match="not to be trusted"):
        command("restore", copies, "--data-dir", str(tmp_path / "two"), "--key", str(wrong))
    assert not (tmp_path / "two").exists()
    command("restore", copies, "--data-dir", str(tmp_path / "two"), "--key", str(key))
    command("restore", copies, "--data-dir", str(tmp_path / "three"), "--unsigned")
    assert (
        (tmp_path / "two/kafka/log/00.log").read_text()
        == (tmp_path / "three/kafka/log/00.log").read_text()
        == "rows"
    )


def test_a_backup_of_an_older_version_is_restored_unsigned(tmp_path: Path) -> None:
    shutil.copytree(DATA / "vault.v1", tmp_path / "v")
    (made,) = Vault(str(tmp_path / "v"), b"key").backups("q.1")
    with pytest.raises(StateError, match="not to be trusted"):
        Vault(str(tmp_path / "v"), b"key").require_trusted(made)
    allowed = Vault(str(tmp_path / "v"), b"key", unsigned=True)
    allowed.require_trusted(made)
    assert allowed.read(made, made.items[0]) == b"bytes"


def settings(tmp_path: Path, **own: object) -> SparkSettings:
    return SparkSettings.load(
        data_dir=tmp_path / "lost", checkpoint_backup_dir=str(tmp_path / "v"), **own
    )


def test_the_jobs_restore_what_their_mesh_has_signed(tmp_path: Path) -> None:
    files = StateFiles(str(tmp_path / "state/7/in.k-0"))
    files.save(Snapshot(42), full=True)
    (path,) = (tmp_path / "state/7/in.k-0").iterdir()
    vault = Vault(str(tmp_path / "v"), b"theirs")
    items = tuple(vault.put_file("in.k.7", f"state/in.k-0/{path.name}", path))
    vault.publish(Backup("in.k.7", 1, 1, items, {"positions": {"in.k-0": 42}}))
    wanted = [Wanted("in.k", 1, 7)]
    assert recover(settings(tmp_path), wanted) == []
    assert recover(settings(tmp_path, backup_key="ours"), wanted) == []
    assert not os.path.exists(tmp_path / "lost" / "state" / "7")
    assert recover(settings(tmp_path, backup_key="theirs"), wanted) == ["in.k"]
    shutil.rmtree(tmp_path / "lost" / "state")
    assert recover(settings(tmp_path, backup_key="ours", backup_unsigned=True), wanted) == ["in.k"]

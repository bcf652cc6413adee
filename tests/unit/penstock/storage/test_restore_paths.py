"""Names that come out of a backup stay in the directory of the restore."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import StateError
from penstock.mesh.deployment import restore as restore_mesh
from penstock.mesh.layout import Layout
from penstock.storage.backup_list import Backup
from penstock.storage.checkpoints import CheckpointPlace
from penstock.storage.checkpoints import restore as restore_state
from penstock.storage.restore_paths import open_below, path_fault, path_faults
from penstock.storage.vault import Vault

HOSTILE = [
    "/etc/cron.d/evil",
    "//host/share",
    "../evil",
    "a/../../evil",
    "a/..",
    "..",
    ".",
    "",
    "a//b",
    "a/./b",
    "a/",
    "\\evil",
    "..\\evil",
    "C:/evil",
    "c:evil",
    "a\x00b",
    "a\nb",
    "a/\u202egnp",
    "CON",
    "a/nul",
    "aux.txt",
    "COM1",
    "lpt9.log",
    "x" * 256,
    "\ud800",
]


def vault_with(tmp_path: Path, subject: str, *paths: str) -> tuple[Vault, Backup]:
    """A vault and a published backup whose files have these names."""
    vault = Vault(str(tmp_path / "v"))
    items = tuple(vault.put(subject, path, b"evil") for path in paths)
    vault.publish(Backup(subject, 1, 1, items, {"positions": {}}))
    return vault, vault.backups(subject)[0]


def listed(directory: Path) -> list[str]:
    return sorted(
        str(p.relative_to(directory))
        for p in directory.rglob("*")
        if "v" not in p.relative_to(directory).parts
    )


@pytest.mark.parametrize("path", HOSTILE)
def test_a_mesh_is_restored_into_its_directory_only(tmp_path: Path, path: str) -> None:
    vault, made = vault_with(tmp_path, "deployment", "kafka/log/a", path)
    before = listed(tmp_path)
    with pytest.raises(StateError, match="not to be trusted"):
        restore_mesh(Layout(tmp_path / "new"), vault, made)
    assert listed(tmp_path) == before, "refused before the first file"


@pytest.mark.parametrize(
    "path",
    [
        "secrets/root.password",
        "run/mesh.json",
        "logs/audit.log",
        "backup/x",
        "redis/redis.conf",
        "kafka/a.tmp",
    ],
)
def test_a_mesh_is_restored_without_what_no_backup_holds(tmp_path: Path, path: str) -> None:
    vault, made = vault_with(tmp_path, "deployment", path)
    with pytest.raises(StateError, match="belong into no backup"):
        restore_mesh(Layout(tmp_path / "new"), vault, made)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("kind", ["state/in.k-0/{}", "state/{}", "checkpoint/{}"])
@pytest.mark.parametrize("path", [p for p in HOSTILE if p])
def test_state_is_restored_into_its_directory_only(tmp_path: Path, kind: str, path: str) -> None:
    vault, made = vault_with(tmp_path, "in.k.7", kind.format(path))
    kept = tmp_path / "state" / "7" / "in.k-0" / "p00000000000000000010.full"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"mine")
    with pytest.raises(StateError):
        restore_state(
            vault,
            made,
            CheckpointPlace(
                "in.k", 7, str(tmp_path / "state"), str(tmp_path / "state" / "checkpoints")
            ),
        )
    assert kept.read_bytes() == b"mine", "refused before anything is removed"


@pytest.mark.parametrize(
    "path",
    [
        "state/in.other-0/p00000000000000000010.full",
        "state/in.k-0/evil.sh",
        "state/x",
        "state/in.k-0/a/b",
    ],
)
def test_state_of_another_query_is_not_restored(tmp_path: Path, path: str) -> None:
    vault, made = vault_with(tmp_path, "in.k.7", path)
    with pytest.raises(StateError, match="no state of in.k"):
        restore_state(
            vault,
            made,
            CheckpointPlace("in.k", 7, str(tmp_path / "state"), str(tmp_path / "checkpoints")),
        )


def test_files_come_once_and_their_parts_in_order() -> None:
    assert path_faults([("a", 0), ("a", 1), ("b/c", 0), ("b/d", 0)]) == []
    for items in ([("a", 0), ("a", 0)], [("a", 1)], [("a", 0), ("a", 2)], [("a", 0), ("a", -1)]):
        assert path_faults(items) == ["path 'a' comes twice, or a part of it is missing"]
    assert (
        path_faults([("a", 0), ("a/b", 0)])
        == path_faults([("a/b", 0), ("a", 0)])
        == ["path 'a' is a file and a directory"]
    )


@given(st.text(max_size=40))
def test_what_passes_stays_below(path: str) -> None:
    if path_fault(path) == "":
        assert os.path.normpath(f"/root/{path}") == f"/root/{path}"


def test_links_on_the_way_are_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    outside = tmp_path / "outside"
    (root / "plain").mkdir(parents=True)
    outside.mkdir()
    (outside / "victim").write_bytes(b"mine")
    (root / "directory").symlink_to(outside)
    (root / "file").symlink_to(outside / "victim")
    os.link(outside / "victim", root / "hard")
    os.mkfifo(root / "pipe")
    for name in ("directory/victim", "directory/new", "file", "hard", "pipe", "plain"):
        with pytest.raises(StateError):
            open_below(root, root / name, append=False)
    for target in (outside / "victim", root, root / ".." / "outside" / "new"):
        with pytest.raises(StateError, match="outside of"):
            open_below(root, target, append=False)
    assert [p.name for p in outside.iterdir()] == ["victim"] and (
        outside / "victim"
    ).read_bytes() == b"mine"
    (tmp_path / "link").symlink_to(root)
    with open_below(tmp_path / "link", tmp_path / "link" / "new" / "file", append=False) as out:
        out.write(b"fine")
    assert (root / "new" / "file").read_bytes() == b"fine"

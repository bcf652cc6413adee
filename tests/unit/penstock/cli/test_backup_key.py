"""The key that signs backups: where it comes from, and who may do without."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.cli.backup_key import open_vault, signing_key
from penstock.errors import ConfigError
from penstock.mesh.layout import Layout
from penstock.storage.vault import Vault


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    monkeypatch.delenv("PENSTOCK_BACKUP_KEY", raising=False)
    monkeypatch.delenv("PENSTOCK_BACKUP_KEY_FILE", raising=False)
    return Layout(tmp_path / "mesh")


def _key(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_mesh_makes_its_key_once(layout):
    made = signing_key(layout)
    assert len(made) > 15
    assert signing_key(layout) == made
    file = layout.secrets / "backup.password"
    assert file.read_text(encoding="utf-8").strip().encode() == made
    assert layout.secrets.stat().st_mode & 0o077 == 0


def test_the_environment_names_another(layout, tmp_path, monkeypatch):
    monkeypatch.setenv("PENSTOCK_BACKUP_KEY_FILE", str(_key(tmp_path / "k", "from a file\n")))
    assert signing_key(layout) == b"from a file"
    monkeypatch.setenv("PENSTOCK_BACKUP_KEY", "given")
    assert signing_key(layout) == b"given"
    assert not (layout.secrets / "backup.password").exists()


def test_without_any_key_nothing_is_restored_unless_it_is_said(layout, tmp_path):
    with pytest.raises(ConfigError, match="no key to check the backup"):
        open_vault(str(tmp_path), layout, None, unsigned=False)
    open_vault(str(tmp_path), layout, None, unsigned=True)
    assert not layout.secrets.exists()  # a key made now would fit no backup


@pytest.mark.parametrize("source", ["own", "environment", "file"])
def test_a_backup_opens_with_the_key_that_signed_it(layout, tmp_path, monkeypatch, source):

    opened: list[bytes | None] = []
    monkeypatch.setattr(
        "penstock.storage.vault.Vault",
        lambda url, key, *, unsigned: opened.append(key) or Vault(url, key, unsigned=unsigned),
    )
    given = None
    _key(layout.secrets / "backup.password", "own\n")
    if source == "environment":
        monkeypatch.setenv("PENSTOCK_BACKUP_KEY", "environment")
    if source == "file":
        monkeypatch.setenv("PENSTOCK_BACKUP_KEY", "not this one")
        given = _key(tmp_path / "k", "file\n")
    open_vault(str(tmp_path / "v"), layout, given, unsigned=False)
    assert opened == [source.encode()]


def test_a_file_that_is_not_there_is_said(layout, tmp_path):
    with pytest.raises(ConfigError, match="no secret in"):
        open_vault(str(tmp_path), layout, tmp_path / "absent", unsigned=False)

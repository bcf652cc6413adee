"""penstock backup: a place makes a backup, `list` lists them."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from penstock.cli import app
from penstock.errors import StateError
from penstock.mesh.deployment import SUBJECT
from penstock.mesh.layout import Layout
from penstock.storage.backup_list import Backup
from penstock.storage.vault import Vault


def run(layout: Layout, *words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--data-dir", str(layout.root)])


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    monkeypatch.delenv("PENSTOCK_BACKUP_KEY", raising=False)
    monkeypatch.delenv("PENSTOCK_BACKUP_KEY_FILE", raising=False)
    made = Layout(tmp_path / "mesh")
    made.secrets.mkdir(parents=True)
    (made.secrets / "backup.password").write_text("the key\n", encoding="utf-8")
    return made


def publish(place: Path, number: int, key: bytes | None) -> None:
    vault = Vault(str(place), key)
    item = vault.put(SUBJECT, "kafka/log", b"x" * 2_000_000)
    time = 1_772_355_600_000 + number * 1000
    vault.publish(Backup(SUBJECT, time, number, (item,), {"files": 7}))


def test_backups_are_listed_the_newest_first(layout: Layout, tmp_path: Path) -> None:
    publish(tmp_path / "copies", 1, b"the key")
    publish(tmp_path / "copies", 2, None)
    done = run(layout, "backup", "list", str(tmp_path / "copies"))
    assert done.exit_code == 0, done.exception
    head, *lines = (line.split() for line in done.stdout.splitlines())
    assert head == ["backup", "taken", "files", "MB", "signed"]
    assert lines == [
        ["00001772355602000-000000002", "2026-03-01", "09:00:02Z", "7", "2.0", "no"],
        ["00001772355601000-000000001", "2026-03-01", "09:00:01Z", "7", "2.0", "yes"],
    ]


def test_where_no_backup_is_it_is_said(layout: Layout, tmp_path: Path) -> None:
    done = run(layout, "backup", "list", str(tmp_path / "nothing"))
    assert isinstance(done.exception, StateError)
    assert "there are no backups" in str(done.exception)


@pytest.mark.parametrize("words", [("there",), ("./list",)])
def test_a_place_makes_a_backup(
    layout: Layout, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def note(_: Layout, vault: Vault, *more: object) -> None:
        made.append(vault.url)
        raise StateError("that is enough")

    monkeypatch.setattr("penstock.mesh.deployment.backup", note)
    for order in (("backup", *words), ("backup", "--data-dir", str(layout.root), *words)):
        assert "that is enough" in str(run(layout, *order).exception)
    assert made == [words[0], words[0]]


def test_help_says_both() -> None:
    done = CliRunner().invoke(app, ["backup", "--help"])
    assert "penstock backup PLACE" in done.stdout and "list" in done.stdout

"""penstock snode: from files that are there into a vault and back, without a mesh."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli import app, snode
from penstock.errors import ConfigError, PenstockError, StateError
from spark_jobs.state import Snapshot, StateFiles

RUNNER = CliRunner()
assert snode.commands  # importing it adds the commands


def run(*arguments: str) -> str:
    """What a command prints; raises what it raises."""
    done = RUNNER.invoke(app, ["snode", *arguments])
    if isinstance(done.exception, PenstockError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return str(done.stdout)


@pytest.fixture(autouse=True)
def _lax() -> Iterator[None]:
    """A process that lets everybody read what it makes; commands change that."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with the state of one query."""
    files = StateFiles(str(tmp_path / "data/state/7/in.k-0"))
    files.save(Snapshot(42), full=True)
    offsets = tmp_path / "data/state/checkpoints/7/in.k/offsets/0"
    offsets.parent.mkdir(parents=True)
    offsets.write_text("v1")
    return tmp_path / "data"


def test_backup_list_verify_restore(data: Path, tmp_path: Path) -> None:
    at = ("--data-dir", str(data))
    run("backup", *at)
    (line,) = run("list", *at).splitlines()[1:]
    assert line.startswith("in.k") and line.endswith("42")
    assert "1 backups, 0 faults" in run("verify", *at)
    with pytest.raises(ConfigError, match="there is state of in.k already"):
        run("restore", *at)
    run("restore", *at, "--state-dir", str(tmp_path / "new"))
    assert (tmp_path / "new/checkpoints/7/in.k/offsets/0").read_text() == "v1"
    state = StateFiles(str(tmp_path / "new/7/in.k-0")).load()
    assert state is not None and state.next == 42
    made = [*(data / "backup").rglob("*"), *(tmp_path / "new").rglob("*")]
    assert made and not [p for p in made if p.stat().st_mode & 0o077], "others may read it"


def test_damage_is_said_and_not_restored(data: Path, tmp_path: Path) -> None:
    at = ("--data-dir", str(data))
    run("backup", *at)
    for path in (data / "backup/in.k.7/objects").rglob("*"):
        if path.is_file():
            path.write_bytes(b"broken")
    done = RUNNER.invoke(app, ["snode", "verify", *at])
    assert done.exit_code == 1 and "damaged" in done.stdout and "2 faults" in done.stdout
    with pytest.raises(StateError, match="is damaged"):
        run("restore", *at, "--state-dir", str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


def test_where_there_is_nothing(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="no query has a checkpoint"):
        run("backup", "--data-dir", str(tmp_path))
    with pytest.raises(StateError, match="no such backup"):
        run("verify", "--data-dir", str(tmp_path))

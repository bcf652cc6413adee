"""What a query needs is taken while the jobs go on writing, and put back where it was lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import StateError
from penstock.storage import checkpoints
from penstock.storage.checkpoints import (
    CheckpointPlace,
    local_positions,
    newest_verified,
    places,
    restore,
    subject_query,
    take,
)
from penstock.storage.vault import Vault
from spark_jobs.recovery import behind
from spark_jobs.state import Snapshot, StateFiles


def place(tmp_path: Path) -> CheckpointPlace:
    return CheckpointPlace(
        "in.k", 7, str(tmp_path / "state"), str(tmp_path / "state" / "checkpoints")
    )


def running(at: CheckpointPlace, *positions: int) -> None:
    """Leave behind what the jobs do: state of partition 0 up to these positions, the first one
    full, and Spark's checkpoint.
    """
    files = StateFiles(f"{at.state}/in.k-0")
    files.load()
    for position in positions:
        files.save(Snapshot(position), full=files.newest == "")
    for name in ("metadata", "offsets/0", "commits/0", "offsets/.0.crc"):
        path = Path(at.checkpoint) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def test_a_query_goes_into_the_vault_and_back(tmp_path: Path) -> None:
    here = place(tmp_path)
    vault = Vault(str(tmp_path / "v"))
    assert take(vault, here, time=1, number=1) is None
    running(here, 10, 20)
    backup = take(vault, here, time=5, number=3, offsets={"in.k:0": 15})
    assert backup is not None and backup.facts["positions"] == {"in.k-0": 20}
    assert [i.path for i in backup.items] == [
        "checkpoint/commits/0",
        "checkpoint/metadata",
        "checkpoint/offsets/0",
        "state/in.k-0/p00000000000000000010.full",
        "state/in.k-0/p00000000000000000020.delta",
    ]
    assert places(here.state_dir, here.checkpoint_dir) == [here]
    assert subject_query(here.subject) == ("in.k", 7)

    there = CheckpointPlace(
        "in.k", 7, str(tmp_path / "elsewhere"), str(tmp_path / "elsewhere" / "checkpoints")
    )
    restore(vault, backup, there)
    assert local_positions(there) == {"in.k-0": 20}
    state = StateFiles(f"{there.state}/in.k-0").load()
    assert state is not None and state.next == 20
    assert (Path(there.checkpoint) / "offsets/0").read_text() == "offsets/0"


def test_a_torn_newest_file_is_left_out(tmp_path: Path) -> None:
    here = place(tmp_path)
    vault = Vault(str(tmp_path / "v"))
    running(here, 10, 20)
    torn = next(Path(here.state).glob("in.k-0/*.delta"))
    torn.write_bytes(torn.read_bytes()[:-3])
    backup = take(vault, here, time=5, number=3)
    assert backup is not None and backup.facts["positions"] == {"in.k-0": 10}


def test_state_that_is_nowhere_whole_is_no_backup(tmp_path: Path) -> None:
    here = place(tmp_path)
    vault = Vault(str(tmp_path / "v"))
    running(here, 10)
    next(Path(here.state).glob("in.k-0/*.full")).write_bytes(b"torn")
    with pytest.raises(StateError, match="none that is whole"):
        take(vault, here, time=5, number=3)
    assert vault.backups(here.subject) == []


def test_files_pruned_on_the_way_are_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the list and the copy the jobs write a full file and remove the chain that was
    listed.
    """
    here = place(tmp_path)
    vault = Vault(str(tmp_path / "v"))
    running(here, 10, 20)
    listed = checkpoints._list
    pruned = []

    def late(fs: object, path: str) -> list[str]:
        found: list[str] = listed(fs, path)
        if path.endswith("in.k-0") and not pruned:
            pruned.append(True)
            files = StateFiles(f"{here.state}/in.k-0")
            files.load()
            for position in (30, 40):
                files.save(Snapshot(position), full=True)
            for old in Path(path).glob("*1?.full"):
                old.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(checkpoints, "_list", late)
    backup = take(vault, here, time=5, number=3)
    assert backup is not None and backup.facts["positions"] == {"in.k-0": 40}


def test_a_damaged_backup_is_passed_over(tmp_path: Path) -> None:
    here = place(tmp_path)
    vault = Vault(str(tmp_path / "v"))
    running(here, 10)
    old = take(vault, here, time=1, number=1)
    running(here, 20)
    new = take(vault, here, time=2, number=2)
    assert new is not None
    digest = new.items[-1].digest
    (tmp_path / "v" / here.subject / "objects" / digest[:2] / digest).write_bytes(b"broken")
    assert newest_verified(vault, here.subject) == old


def test_only_what_is_behind_is_restored() -> None:
    assert behind({}, {"t-0": 0, "t-1": 5}) == {"t-0", "t-1"}
    assert behind({"t-0": 7, "t-1": 4}, {"t-0": 7, "t-1": 5}) == {"t-1"}
    assert behind({"t-0": 9}, {"t-0": 7}) == set()

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from penstock import names
from penstock.runtime.clock import ManualClock
from penstock.storage.vault import Vault
from services.snode.report import SnodeReport
from services.snode.settings import SnodeSettings
from tests.unit.services.memory_redis import MemoryRedis


class Told:
    """A report, and what Redis has of it."""

    def __init__(self, directory: Path) -> None:
        self.clock = ManualClock(1_800_000_000 * 10**9)
        self.redis = MemoryRedis()
        client: Any = self.redis
        settings = SnodeSettings(data_dir=directory, node=3)
        vault = Vault(str(directory / "vault"))
        self.report = SnodeReport(settings, client, vault, self.clock, "h:1")

    def tell(self) -> dict[str, Any] | None:
        """What Redis was told, if it was."""
        self.redis.texts.clear()
        self.report.tell()
        said = self.redis.texts.get(names.snode_report(3))
        return json.loads(said) if said is not None else None


def test_a_report_is_not_repeated_before_it_runs_out(tmp_path: Path):
    told = Told(tmp_path)
    first = told.tell()
    assert first is not None and (first["backups"], first["newest"]) == (0, None)
    assert told.tell() is None
    told.clock.advance(30)
    assert told.tell() is not None


def test_a_fault_is_told_at_once_and_until_there_is_a_backup(tmp_path: Path):
    told = Told(tmp_path)
    told.tell()
    told.report.note_failure("q", OSError("the disk is full"))
    said = told.tell()
    assert said is not None and said["note"] == "q: the disk is full"
    told.report.note_backup("q", "q-1")
    said = told.tell()
    assert said is not None and said["note"] == ""

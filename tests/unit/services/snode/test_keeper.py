"""Backups of queries at their newest manifests, and what SHOW SNODES hears of them."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.registry import CollectorRegistry

from penstock import names
from penstock.catalog.model import Database, Snode, Table, TableVersion
from penstock.catalog.view import Catalog
from penstock.errors import BusError
from penstock.records import Manifest, encode
from penstock.runtime.clock import ManualClock
from penstock.sql.plan import Column
from penstock.storage.vault import Vault
from penstock.types import ColumnType
from services.snode import keeper as subject
from services.snode.keeper import BackupKeeper, place_of
from services.snode.settings import SnodeSettings
from tests.unit.services.kit import MemoryLog
from tests.unit.services.memory_redis import MemoryRedis

QUERY = "in.d"
DATABASE = Database(1, "d", partitions=1)
TABLE = Table(
    7,
    "d",
    "t",
    "plain",
    QUERY,
    1,
    "ms",
    (TableVersion(107, (Column("ts", ColumnType("TIMESTAMP")),)),),
)
NOW = 1_800_000_000_000_000_000


class Keeping:
    """A snode on node 3, the log of manifests, and what queries have written."""

    def __init__(
        self, directory: Path, monkeypatch: pytest.MonkeyPatch, *entries: Any, **settings: Any
    ) -> None:
        self.directory = directory
        self.clock = ManualClock(NOW)
        self.log = MemoryLog(self.clock)
        self.redis = MemoryRedis(self.clock)
        self.catalog = Catalog(entries or (DATABASE, TABLE, Snode(90, 3)))
        self.vault = Vault(str(directory / "vault"))
        self.registry = CollectorRegistry()
        self.failures: list[BusError] = []
        self.positions: list[int] = []
        self.stop = threading.Event()
        reader: Any = SimpleNamespace(catalog=self.catalog)
        client: Any = self.redis
        health: Any = SimpleNamespace(registry=self.registry)
        given = {"keep_hours": 0, "keep_days": 0} | settings
        self.settings = SnodeSettings(data_dir=directory, node=3, **given)
        monkeypatch.setattr(subject, "Reader", self._reader)
        monkeypatch.setattr(subject, "_RETRY_SECONDS", 0.0)
        self.keeper = BackupKeeper(
            self.settings, reader, client, self.vault, health, self.clock, "h:1"
        )

    def _reader(self, bootstrap: str, offsets: Any, **_: Any) -> Any:
        keeping = self
        self.positions.append(offsets[names.EPOCHS, 0])
        if self.failures:
            raise self.failures.pop(0)
        start = max(offsets[names.EPOCHS, 0], 0)

        class Reader:
            """Ends the keeper's run at the end of the log."""

            def __enter__(self) -> Reader:
                self._reader = keeping.log.reader(bootstrap, {(names.EPOCHS, 0): start})
                return self

            def __exit__(self, *_: object) -> None:
                pass

            def read(self, timeout: float = 0.0) -> Any:
                found = self._reader.read(1_000, 0.0)
                if not found:
                    keeping.stop.set()
                return found

        return Reader()

    def write(self, text: str, query: str = QUERY, owner: int = DATABASE.id) -> None:
        """The jobs write their checkpoint."""
        path = self.directory / "checkpoints" / str(owner) / query / "metadata"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def announce(self, batch: int, query: str = QUERY, owner: int = DATABASE.id) -> None:
        checkpoint = str(self.directory / "checkpoints" / str(owner) / query)
        manifest = Manifest(query, batch, 5, checkpoint, {f"{query}:0": batch})
        self.log.append(names.EPOCHS, encode(manifest))

    def run(self) -> int:
        """Follow the log to its end; say how often the keeper was ready."""
        ready: list[int] = []
        self.stop.clear()
        self.keeper.run(self.stop, lambda: ready.append(1))
        return len(ready)

    def backups(self, query: str = QUERY, owner: int = DATABASE.id) -> list[int]:
        return sorted(b.number for b in self.vault.backups(f"{query}.{owner}"))

    def said(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.redis.texts[names.snode_report(3)])
        return found

    def count(self, metric: str, query: str = QUERY) -> float:
        return self.registry.get_sample_value(metric, {"query": query}) or 0.0


@pytest.fixture
def keeping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Keeping:
    return Keeping(tmp_path, monkeypatch)


def test_the_newest_manifest_of_a_query_is_backed_up(keeping: Keeping) -> None:
    keeping.write("one")
    for batch in (4, 5, 6):
        keeping.announce(batch)
    assert keeping.run() > 0
    assert keeping.backups() == [6], "those between are left out"
    (backup,) = keeping.vault.backups(f"{QUERY}.1")
    assert backup.facts["offsets"] == {f"{QUERY}:0": 6}
    assert keeping.count("penstock_snode_backups_total") == 1
    said = keeping.said()
    assert (said["endpoint"], said["backups"], said["note"]) == ("h:1", 1, "")
    assert said["newest"] == NOW // 10**6


def test_a_query_has_a_backup_now_and_then(keeping: Keeping) -> None:
    keeping.write("one")
    keeping.announce(1)
    keeping.run()
    keeping.write("two")
    keeping.announce(2)
    keeping.run()
    assert keeping.backups() == [1], "too soon"
    keeping.clock.advance(1.1)
    keeping.run()
    assert keeping.backups() == [1, 2]


def test_old_backups_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keeping = Keeping(tmp_path, monkeypatch, keep_newest=2)
    for batch in range(5):
        keeping.write(f"state {batch}")
        keeping.announce(batch)
        keeping.run()
        keeping.clock.advance(2)
    assert keeping.backups() == [3, 4]
    keeping.run()
    assert keeping.said()["backups"] == 2


def test_without_a_snode_in_the_catalog_nothing_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping = Keeping(tmp_path, monkeypatch, DATABASE, TABLE, Snode(90, 4))
    assert not keeping.keeper.active
    keeping.write("one")
    keeping.announce(1)
    keeping.run()
    assert keeping.backups() == [] and not keeping.redis.texts
    keeping.catalog.put(Snode(91, 3))
    assert keeping.keeper.active
    keeping.run()
    assert keeping.backups() == [1], "the manifest has waited"


def test_manifests_of_what_was_dropped_are_left(keeping: Keeping) -> None:
    keeping.write("one", owner=99)
    keeping.announce(1, owner=99)
    keeping.write("one", query=names.EXCHANGE, owner=0)
    keeping.announce(2, query=names.EXCHANGE, owner=0)
    keeping.run()
    assert keeping.backups(owner=99) == []
    assert keeping.backups(names.EXCHANGE, 0) == [2], "the exchange is nobody's"


def test_what_fails_is_said_and_tried_again_with_the_next_manifest(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping.write("one")
    keeping.announce(1)

    def fail(*_: Any, **__: Any) -> Any:
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(subject, "take", fail)
        keeping.run()
    assert "the disk is full" in keeping.said()["note"]
    assert keeping.count("penstock_snode_failures_total") == 1
    keeping.clock.advance(2)
    keeping.announce(2)
    keeping.run()
    assert keeping.backups() == [2]
    assert keeping.said()["note"] == ""


def test_records_that_cannot_be_used_are_passed_over(keeping: Keeping) -> None:
    keeping.write("one")
    keeping.log.append(names.EPOCHS, b"junk")
    keeping.log.append(names.EPOCHS, None)
    keeping.announce(1)
    keeping.run()
    assert keeping.backups() == [1]


def test_a_query_without_files_has_no_backup(keeping: Keeping) -> None:
    keeping.announce(1)
    keeping.run()
    assert keeping.backups() == []
    assert keeping.count("penstock_snode_backups_total") == 0


def test_kafka_that_is_away_is_asked_again(keeping: Keeping) -> None:
    keeping.write("one")
    keeping.announce(1)
    keeping.failures = [
        BusError("Kafka is away"),
        BusError("gone", code="E_OFFSET_GONE"),
    ]
    keeping.run()
    assert keeping.backups() == [1]
    assert len(keeping.positions) == 3


def test_redis_that_is_away_stops_nothing(keeping: Keeping) -> None:
    keeping.redis.down = True
    keeping.write("one")
    keeping.announce(1)
    keeping.run()
    assert keeping.backups() == [1]


def test_a_report_lives_for_a_minute(keeping: Keeping) -> None:
    keeping.run()
    assert keeping.said()["backups"] == 0
    assert keeping.said()["newest"] is None
    keeping.clock.advance(61)
    assert keeping.redis.get(names.snode_report(3)) is None
    keeping.run()
    assert keeping.said()["backups"] == 0


def test_where_the_files_of_a_manifest_are() -> None:
    place = place_of(
        Manifest("in.d", 1, 2, "s3://bucket/checkpoints/17/in.d/"), "s3://bucket/state"
    )
    assert (place.query, place.id) == ("in.d", 17)
    assert place.checkpoint_dir == "s3://bucket/checkpoints"
    assert place.state == "s3://bucket/state/17"
    assert place_of(Manifest("in.d", 1, 2, "/a/x/in.d"), "/s").id == -1

"""A node keeps copies of the tables of its groups, as the catalog names them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.catalog.model import Database, Table
from penstock.catalog.view import Catalog
from penstock.config.raft import Group
from penstock.errors import BusError
from penstock.runtime.clock import SystemClock
from services.tables import keeper as module
from services.tables.keeper import ReplicaKeeper
from services.tables.settings import TablesSettings
from tests.unit.services.tables.kit import Log, stream_table
from tests.unit.services.tables.test_log_follower import Kafka

_SECONDS = 60


class Here:
    """A node whose Kafka has one log, and fails so many times."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.table: Table = stream_table()
        self.log = Log(self.table.topic)
        self.kafka = Kafka(self.log)
        self.failures = 0
        monkeypatch.setattr(module, "Reader", self._open)
        monkeypatch.setattr(module, "_RETRY_SECONDS", 0.01)
        self.catalog = Catalog([Database(100, "ha"), self.table])
        self.loop = asyncio.new_event_loop()
        reader: Any = SimpleNamespace(catalog=self.catalog)
        self.keeper = ReplicaKeeper(
            TablesSettings.load(persistence_dir=directory),
            (Group(11, ("N1",)),),
            reader,
            cast(Any, self.kafka),
            SystemClock(),
            self.loop,
        )

    def _open(self, *_: Any, **__: Any) -> Any:
        if self.failures:
            self.failures -= 1
            raise BusError("Kafka is away")
        self.kafka.places.clear()
        return self.kafka

    def wait(self) -> None:
        assert self.keeper.caught_up.wait(_SECONDS)

    def close(self) -> None:
        self.keeper.stop()
        self.loop.close()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    made = Here(tmp_path, monkeypatch)
    yield made
    made.close()


def test_what_the_log_has_at_the_start_is_read(here: Here) -> None:
    here.log.add(b"not ours")
    here.log.add(b"nor this")
    here.keeper.start()
    here.wait()
    (replica,) = here.keeper.of_group(11)
    assert replica.copy.offset == 2
    assert here.keeper.find("HA", "Trades") is replica
    assert here.keeper.of_group(12) == []


def test_a_kafka_that_is_away_is_tried_again(here: Here) -> None:
    here.failures = 2
    here.log.add(b"not ours")
    here.keeper.start()
    here.wait()
    assert here.keeper.all()[0].copy.offset == 1 and here.keeper.failed is None


def test_a_table_that_was_dropped_leaves_no_file(here: Here, tmp_path: Path) -> None:
    left = tmp_path / "7"  # of a table that was dropped while the node was away
    left.mkdir()
    here.catalog.put(Database(900, "later"))
    dropped = threading.Event()
    here.keeper.start()
    here.wait()
    (replica,) = here.keeper.all()
    assert not left.exists()
    replica.drop = lambda: dropped.set()  # type: ignore[method-assign]
    here.catalog.remove(here.table.id)
    here.catalog.revision += 1
    assert dropped.wait(_SECONDS)
    here.keeper.stop()
    assert here.keeper.all() == [] and not (tmp_path / str(here.table.id)).exists()
    assert here.kafka.places == {}

"""Copies are written when it is time, when much waits, and when the node ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.tables.copy_files import CopyFiles
from services.tables.settings import TablesSettings
from tests.unit.services.tables.kit import NOW, Log, Node, stream_table
from tests.unit.services.tables.test_copy import put

NOW_MS = NOW // 10**6


class Here:
    def __init__(self, directory: Path, loop: asyncio.AbstractEventLoop) -> None:
        table = stream_table()
        node = Node("N1", table, Log(table.topic), directory, loop)
        self.replica = node.replica
        self.copy: Any = node.replica.copy
        self.halt = threading.Event()
        settings = TablesSettings.load(
            persistence_dir=directory / "copies", flush_rows=5, flush_seconds=2, sweep_seconds=1
        )
        self.files = CopyFiles(settings, node.log.clock, lambda: [self.replica], self.halt)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    loop = asyncio.new_event_loop()
    yield Here(tmp_path, loop)
    loop.close()


def test_a_few_rows_are_written_in_time(here: Here) -> None:
    put(here.copy, 0, 3, at=NOW_MS)
    here.files.save(10.0)
    assert here.copy.waiting == 3
    here.files.save(11.9)
    assert here.copy.waiting == 3
    here.files.save(12.0)
    assert here.copy.waiting == 0


def test_many_rows_are_written_at_once(here: Here) -> None:
    put(here.copy, 0, 60, at=NOW_MS)
    here.files.save(10.0)
    assert here.copy.waiting == 0


def test_all_rows_are_written_in_the_end(here: Here) -> None:
    put(here.copy, 0, 3, at=NOW_MS)
    here.halt.set()
    here.files.start()
    here.files.join()
    assert here.copy.waiting == 0


def test_a_disk_that_is_full_is_tried_again(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    put(here.copy, 0, 3, at=NOW_MS)
    with monkeypatch.context() as full:
        full.setattr(here.copy, "finish_flush", _refuse)
        here.files.save(10.0, everything=True)
    assert here.copy.waiting == 3
    here.files.save(10.1, everything=True)
    assert here.copy.waiting == 0


def test_rows_over_their_retention_go_now_and_then(here: Here) -> None:
    put(here.copy, 0, 3, at=1)
    here.files.save(10.0, everything=True)
    assert here.copy.earliest == 3


def test_the_log_waits_while_too_many_rows_do(here: Here) -> None:
    put(here.copy, 0, 21, at=NOW_MS)
    reader = threading.Thread(target=here.files.wait_for_room, args=(here.replica,), daemon=True)
    reader.start()
    reader.join(0.05)
    assert reader.is_alive()
    here.files.save(10.0, everything=True)
    reader.join(30)
    assert not reader.is_alive()


def test_nobody_waits_for_room_in_a_node_that_ends(here: Here) -> None:
    put(here.copy, 0, 21, at=NOW_MS)
    here.halt.set()
    here.files.wait_for_room(here.replica)
    assert here.copy.waiting == 21


def _refuse(*_: Any) -> None:
    raise OSError("no space left on device")

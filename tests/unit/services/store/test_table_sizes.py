"""What the store tells of the size of tables."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from penstock import names
from penstock.storage import segments
from services.store import flush, table_sizes
from services.store.partitions import layout_of
from services.store.table_sizes import TableSize, TableSizes
from tests.unit.services.store.kit import DATABASE, PLAIN, STABLE, TOPIC, MemoryStore


class Sized(MemoryStore):
    def __init__(self, directory: Path, *entries: Any) -> None:
        super().__init__(directory, *entries)
        self.sizes = TableSizes(self.reader, self.partitions, self.redis)

    def told(self) -> dict[str, TableSize]:
        held = self.redis.hgetall(names.table_sizes())
        return {field.decode(): TableSize(**json.loads(text)) for field, text in held.items()}

    def bytes_of_files(self) -> int:
        where = Path(segments.directory(self.partitions.root, PLAIN.id, 0, TOPIC))
        return sum(path.stat().st_size for path in where.glob("*.parquet"))


def test_rows_of_files_and_of_tails_are_added_up(tmp_path: Path) -> None:
    sized = Sized(tmp_path)
    sized.put(PLAIN, ("plain", 1_000, 1, "a"), ("plain", 2_000, 2, "b"))
    assert sized.sizes.measure()[PLAIN.id] == TableSize(tail_rows=2)
    sized.flush()
    sized.put(PLAIN, ("plain", 1_000, 3, "again"))
    sized.put(STABLE, ("d1", 1_000, 1, "a", 1))
    found = sized.sizes.measure()
    assert found[PLAIN.id] == TableSize(2, sized.bytes_of_files(), 1, 1)
    assert found[STABLE.id] == TableSize(tail_rows=1)
    sized.flush()
    found = sized.sizes.measure()
    assert found[PLAIN.id] == TableSize(3, sized.bytes_of_files(), 2, 0), "each version counts"


def test_a_merged_file_counts_once(tmp_path: Path) -> None:
    sized = Sized(tmp_path)
    for at in range(flush.MERGE_WIDTH):
        sized.put(PLAIN, ("plain", at, at, "a"))
        sized.flush()
    assert sized.sizes.measure()[PLAIN.id].files == flush.MERGE_WIDTH
    next_offset = sized.partitions.open(TOPIC, 0).position.next
    flush.merge(sized.partitions.root, layout_of(PLAIN), 0, next_offset, topic=TOPIC)
    found = sized.sizes.measure()[PLAIN.id]
    assert (found.rows, found.files) == (flush.MERGE_WIDTH, 1)
    assert found.bytes < sized.bytes_of_files(), "its parts stay a while and count no more"


def test_nothing_is_said_of_tables_that_are_not_read_yet_or_keep_nothing(tmp_path: Path) -> None:
    virtual = dataclasses.replace(PLAIN, id=9, name="room", kind="virtual")
    sized = Sized(tmp_path, DATABASE, PLAIN, virtual)
    assert sized.sizes.measure() == {}
    sized.partitions.open(TOPIC, 0)
    assert sized.sizes.measure() == {PLAIN.id: TableSize()}


def test_what_changed_is_told_and_what_redis_lost_is_told_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sized = Sized(tmp_path)
    sized.put(PLAIN, ("plain", 1_000, 1, "a"))
    sized.memory_redis.down = True
    sized.sizes.tell()
    sized.memory_redis.down = False
    sized.sizes.tell()
    assert sized.told()[str(PLAIN.id)].tail_rows == 1
    sized.catalog.remove(PLAIN.id)
    sized.catalog.revision += 1  # as the log has it
    sized.sizes.tell()
    assert sized.told().keys() == {str(STABLE.id)}
    sized.memory_redis.delete(names.table_sizes())
    sized.sizes.tell()
    assert sized.told() == {}, "nothing has changed"
    monkeypatch.setattr(table_sizes, "_AGAIN_SECONDS", 0.0)
    sized.sizes.tell()
    assert sized.told().keys() == {str(STABLE.id)}


def test_nothing_is_looked_at_while_nothing_is_read_but_after_a_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sized = Sized(tmp_path)
    sized.put(PLAIN, ("plain", 1_000, 1, "a"))
    sized.flush()
    looks: list[int] = []
    measure = sized.sizes.measure
    monkeypatch.setattr(sized.sizes, "measure", lambda: looks.append(1) or measure())
    for _ in range(3):
        sized.sizes.tell()
    assert len(looks) == 1
    for file in Path(segments.directory(sized.partitions.root, PLAIN.id, 0, TOPIC)).iterdir():
        file.unlink()
    sized.sizes.forget()
    sized.sizes.tell()
    assert (len(looks), sized.told()[str(PLAIN.id)].files) == (2, 0)
    sized.put(PLAIN, ("plain", 2_000, 1, "a"))
    sized.sizes.tell()
    assert sized.told()[str(PLAIN.id)].tail_rows == 1

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from services.tables.chunk import Chunk
from services.tables.segment_files import SegmentFiles, delete
from tests.unit.services.tables.kit import shape, stream_table


def chunk(first: int, count: int, at: int = 0) -> Chunk:
    ids = pa.array(range(first, first + count), pa.int64())
    return Chunk(first, pa.record_batch({"row_id": ids}), at, at)


def files_of(directory: Path) -> SegmentFiles:
    return SegmentFiles(directory, shape(stream_table()), threading.RLock())


def put(files: SegmentFiles, first: int, count: int, at: int = 0) -> None:
    files.add(files.write(chunk(first, count, at)))


def test_a_row_is_found_in_its_file(tmp_path: Path):
    files = files_of(tmp_path)
    put(files, 10, 5)
    put(files, 15, 5)
    assert (files.first, files.rows, len(files)) == (10, 10, 2)
    found = files.find(17)
    assert found is not None and files.open(found).since(17).first == 17
    assert files.find(9) is None and files.find(20) is None


def test_files_before_a_hole_are_left_out_and_those_beyond_deleted(tmp_path: Path):
    files = files_of(tmp_path)
    for first in (0, 10, 15, 20):
        put(files, first, 5)
    again = files_of(tmp_path)
    again.load(20)
    assert [s.first for s in again] == [10, 15]
    assert not any(path.name.startswith(f"{20:016d}-") for path in tmp_path.iterdir())
    none = files_of(tmp_path)
    none.load(30)
    assert none.first is None


def test_small_files_become_one_and_hold_the_same_rows(tmp_path: Path):
    files = files_of(tmp_path)
    for first in range(0, 35, 5):
        put(files, first, 5)
    files.merge()
    assert len(files) == 7, "there are too few yet"
    put(files, 35, 5)
    files.merge()
    (merged,) = files
    assert files.open(merged).batch.column("row_id").to_pylist() == list(range(40))
    assert [path for path in tmp_path.iterdir()] == [merged.path]


def test_old_files_are_removed_before_they_are_deleted(tmp_path: Path):
    files = files_of(tmp_path)
    put(files, 0, 5, at=100)
    put(files, 5, 5, at=200)
    old = files.take_older(200)
    assert [s.first for s in old] == [0] and files.first == 5
    delete(old)
    with pytest.raises(FileNotFoundError):
        files.open(old[0])
    delete(old)

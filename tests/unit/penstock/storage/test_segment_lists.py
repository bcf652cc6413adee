"""Lists of segments are remembered only while their directory does not change."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.storage import segments

ROWS = pa.table({"tbname": ["a"], "ts": [1]})


def write(directory: Path, first: int, last: int, *, age: float = 0.0) -> None:
    segments.write(str(directory), ROWS, "ts", first, last, fresh=True, low=1, high=1)
    settle(directory, age)


def settle(directory: Path, age: float) -> None:
    """Let the last change of a directory be *age* seconds old."""
    then = time.time() - age
    os.utime(directory, (then, then))


def listed(directory: Path, below: int | None = None) -> list[tuple[int, int]]:
    return [(s.first, s.last) for s in segments.segments(str(directory), below)]


def test_there_may_be_no_directory(tmp_path: Path) -> None:
    assert listed(tmp_path / "none") == []


@pytest.mark.parametrize("age", [0.0, 60.0])
def test_files_that_come_and_go_are_seen(tmp_path: Path, age: float) -> None:
    write(tmp_path, 0, 4, age=age + 30)
    assert listed(tmp_path) == [(0, 4)]
    write(tmp_path, 5, 9, age=age + 20)
    assert listed(tmp_path) == listed(tmp_path) == [(0, 4), (5, 9)]
    assert listed(tmp_path, 7) == [(0, 4)]
    write(tmp_path, 0, 9, age=age + 10)
    assert listed(tmp_path) == [(0, 9)]
    assert listed(tmp_path, 9) == [(0, 4)]
    (tmp_path / f"{0:020d}-{9:020d}.parquet").unlink()
    settle(tmp_path, age)
    assert listed(tmp_path) == [(0, 4), (5, 9)]


def test_a_fresh_change_is_not_believed_to_be_the_last(tmp_path: Path) -> None:
    write(tmp_path, 0, 4)
    before = os.stat(tmp_path).st_mtime_ns
    assert listed(tmp_path) == [(0, 4)]
    write(tmp_path, 5, 9)
    # the clock of the file system has not moved
    os.utime(tmp_path, ns=(before, before))
    assert listed(tmp_path) == [(0, 4), (5, 9)]


def test_an_old_change_is_not_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, 0, 4, age=60)
    first = segments.segments(str(tmp_path))
    monkeypatch.setattr(Path, "glob", lambda *_: pytest.fail("it is listed again"))
    again = segments.segments(str(tmp_path))
    assert again == first
    again.clear()
    assert segments.segments(str(tmp_path)) == first

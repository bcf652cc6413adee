from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.catalog.model import Purge
from penstock.errors import BusError
from services.tables.chunk import Chunk, segments
from services.tables.copy import Copy
from tests.nightly import drawn
from tests.unit.services.tables.kit import shape, stream_table


def chunk(first: int, count: int, at: int = 0, sym: str | None = None) -> Chunk:
    ids = list(range(first, first + count))
    batch = pa.record_batch(
        {"row_id": pa.array(ids, pa.int64()), "sym": [sym or f"s{i}" for i in ids]}
    )
    return Chunk(first, batch, at, at)


def put(copy: Copy, first: int, count: int, at: int = 0) -> None:
    copy.append(chunk(first, count, at))
    copy.advance(first + count)


def save(copy: Copy) -> None:
    pending = copy.begin_flush()
    if pending is not None:
        copy.finish_flush(pending)


def ids(copy: Copy, first: int | None = None) -> list[int]:
    found: list[int] = []
    at = copy.earliest if first is None else first
    while (part := copy.read(at, 7)) is not None:
        found += part.batch.column("row_id").to_pylist()
        at = part.next
    return found


def identity_holds(copy: Copy) -> None:
    meta = copy.meta()
    assert meta["memoryOffset"] == meta["totalSize"] - meta["sizeInMemory"]
    assert meta["sizeInMemory"] <= meta["cacheLimit"]


def test_d5_d40_memory_holds_the_newest_rows_and_the_rest_is_in_files(tmp_path: Path) -> None:
    copy = Copy(tmp_path, shape(stream_table(limit=10)))
    for first in range(0, 100, 5):
        put(copy, first, 5)
        identity_holds(copy)
        if first % 20 == 0:
            save(copy)
    save(copy)
    meta = copy.meta()
    assert (
        meta["totalSize"],
        meta["sizeInMemory"],
        meta["memoryOffset"],
        meta["sizeOnDisk"],
        meta["diskOffset"],
    ) == (100, 10, 90, 100, 0)
    assert ids(copy) == list(range(100))
    assert sum(c.rows for c in copy.resident()) == 10


def test_what_is_kept_of_a_large_append_does_not_keep_all_of_it(tmp_path: Path) -> None:
    copy = Copy(tmp_path, shape(stream_table(limit=10)))
    put(copy, 0, 100_000)
    save(copy)
    assert [c.rows for c in copy.resident()] == [10]
    assert copy.resident()[0].batch.get_total_buffer_size() < 10_000
    assert ids(copy, 99_985) == list(range(99_985, 100_000))


def test_d21_d22_a_restart_has_the_rows_and_loads_as_many_as_asked(tmp_path: Path) -> None:
    wanted = shape(stream_table(limit=50), pre_cache=20)
    copy = Copy(tmp_path, wanted)
    for first in range(0, 200, 10):
        put(copy, first, 10)
    save(copy)
    put(copy, 200, 10)  # in memory only: to be read from the log again
    again = Copy(tmp_path, wanted)
    assert (again.next, again.offset, again.meta()["sizeInMemory"]) == (200, 200, 20)
    put(again, 200, 10)
    assert ids(again) == list(range(210))


@pytest.mark.parametrize("damage", ["position", "segment", "hole"])
def test_damaged_files_mean_reading_the_log_again(tmp_path: Path, damage: str) -> None:
    wanted = shape(stream_table(limit=5))
    copy = Copy(tmp_path, wanted)
    for first in range(0, 30, 10):
        put(copy, first, 10)
        save(copy)
    paths = [s.path for s in segments(tmp_path)]
    if damage == "position":
        (tmp_path / "position.json").write_text("{")
    elif damage == "segment":
        paths[-1].unlink()
    else:
        paths[0].unlink()
    again = Copy(tmp_path, wanted)
    if damage == "hole":
        assert ids(again) == list(range(10, 30))
    elif damage == "position":
        assert (again.next, again.offset, segments(tmp_path)) == (0, 0, [])
    else:
        assert again.earliest == again.next == 30


def test_d7_rows_go_by_their_time_and_still_count(tmp_path: Path) -> None:
    minute = 60_000
    copy = Copy(tmp_path, shape(stream_table(limit=1000, minutes=1)))
    put(copy, 0, 10, at=0)
    save(copy)
    put(copy, 10, 10, at=minute // 2)
    copy.expire(minute)
    assert copy.earliest == 0
    assert copy.expire(minute + 1) == 10
    assert (copy.earliest, copy.meta()["totalSize"], ids(copy)) == (10, 20, list(range(10, 20)))
    with pytest.raises(BusError, match="row 3 is no longer kept") as gone:
        copy.read(3, 10)
    assert gone.value.code == "E_OFFSET_GONE" and "earliest row is 10" in gone.value.detail
    copy.expire(10 * minute)
    assert (copy.earliest, copy.read(20, 1)) == (20, None)


def test_keys_go_with_their_rows(tmp_path: Path) -> None:
    wanted = shape(stream_table(limit=1000, minutes=1, keys=("sym",)))
    copy = Copy(tmp_path, wanted)
    put(copy, 0, 3, at=0)
    save(copy)
    put(copy, 3, 3, at=50_000)
    save(copy)
    assert list(copy.keys.rows) == [f"s{i}" for i in range(6)]
    assert Copy(tmp_path, wanted).keys.rows == copy.keys.rows
    copy.expire(60_001)
    assert list(copy.keys.rows) == ["s3", "s4", "s5"]


def test_small_files_are_merged(tmp_path: Path) -> None:
    copy = Copy(tmp_path, shape(stream_table(limit=5)))
    for first in range(0, 400, 4):
        put(copy, first, 4, at=first)
        save(copy)
    assert copy.meta()["files"] < 20
    assert ids(copy) == list(range(400))
    assert ids(Copy(tmp_path, copy.shape)) == list(range(400))


def test_files_of_another_table_are_not_taken(tmp_path: Path) -> None:
    wanted = shape(stream_table())
    copy = Copy(tmp_path, wanted)
    put(copy, 0, 10)
    save(copy)
    other = Copy(tmp_path, dataclasses.replace(wanted, table_id=999))
    assert other.next == 0 and not list(tmp_path.glob("*.arrow"))


def test_a_log_that_lost_its_beginning_leaves_what_follows(tmp_path: Path) -> None:
    copy = Copy(tmp_path, shape(stream_table()))
    put(copy, 0, 10)
    save(copy)
    put(copy, 50, 10)
    assert (copy.earliest, ids(copy)) == (50, list(range(50, 60)))


@settings(max_examples=drawn(60), deadline=None)
@given(
    some.lists(
        some.tuples(some.sampled_from(["put", "save", "expire", "restart"]), some.integers(1, 40)),
        max_size=40,
    ),
    some.integers(1, 60),
)
def test_any_order_of_events_keeps_rows_together(
    tmp_path_factory: pytest.TempPathFactory, plan: list[tuple[str, int]], limit: int
) -> None:
    directory = tmp_path_factory.mktemp("copy")
    wanted = shape(stream_table(limit=limit, minutes=1))
    copy = Copy(directory, wanted)
    now = 0
    written = 0
    for what, count in plan:
        now += 1_000 * count
        if what == "put":
            put(copy, copy.next, count, at=now)
            written = copy.next
        elif what == "save":
            save(copy)
        elif what == "expire":
            copy.expire(now)
        else:
            copy = Copy(directory, wanted)
            while copy.next < written:
                put(copy, copy.next, min(count, written - copy.next), at=now)
        identity_holds(copy)
        assert ids(copy) == list(range(copy.earliest, copy.next))


@settings(max_examples=drawn(60), deadline=None)
@given(
    some.lists(some.integers(0, 90), min_size=1, max_size=120),
    some.lists(some.integers(1, 40), min_size=1),
    some.integers(1, 60),
)
def test_d39_how_rows_come_together_does_not_change_what_leaves_memory(
    tmp_path_factory: pytest.TempPathFactory, pauses: list[int], sizes: list[int], keep: int
) -> None:
    wanted = shape(stream_table(limit=1000, purge=Purge("ts", 300, keep)))
    times = np.cumsum(pauses).astype("datetime64[ms]")
    alone, together = (Copy(tmp_path_factory.mktemp("copy"), wanted) for _ in range(2))

    def rows(first: int, until: int) -> Chunk:
        batch = pa.record_batch(
            {
                "row_id": pa.array(range(first, until), pa.int64()),
                "ts": pa.array(times[first:until]),
            }
        )
        return Chunk(first, batch, 0, 0)

    for row in range(len(times)):
        alone.append(rows(row, row + 1))
    first = 0
    for size in itertools.cycle(sizes):
        if first >= len(times):
            break
        together.append(rows(first, min(first + size, len(times))))
        first += size
    assert together.meta()["sizeInMemory"] == alone.meta()["sizeInMemory"]
    memory = times[len(times) - alone.meta()["sizeInMemory"] :]
    assert memory[-1] - memory[0] < np.timedelta64(300, "ms")

"""The newest rows in memory: how many stay, for how long, and how small chunks grow together."""

from __future__ import annotations

import dataclasses

import pyarrow as pa

from services.tables.chunk import Chunk
from services.tables.recent_rows import RecentRows, drop_older, holding, join_small
from tests.unit.services.tables.kit import shape, stream_table

SHAPE = dataclasses.replace(shape(stream_table()), cache_limit=10)


def chunk(first: int, *times: int | None, appended: int = 0) -> Chunk:
    batch = pa.record_batch({"ts": pa.array(times, pa.timestamp("ms", "UTC"))})
    return Chunk(first, batch, appended, appended)


def ids(rows: RecentRows) -> list[int]:
    return [row for c in rows.chunks() for row in range(c.first, c.next)]


def test_old_rows_leave_for_new_ones() -> None:
    rows = RecentRows(SHAPE)
    assert not rows and rows.first is None and rows.bytes == 0
    rows.append(chunk(0, *range(6)))
    rows.append(chunk(6, *range(6)))
    assert rows.first == 2
    assert ids(rows) == list(range(2, 12))
    assert rows.bytes > 0
    rows.append(chunk(12, *range(20)))
    assert ids(rows) == list(range(22, 32)), "only a part of a large chunk stays"
    rows.clear()
    assert not rows


def test_a_row_is_found_in_its_chunk() -> None:
    rows = RecentRows(SHAPE)
    rows.append(chunk(5, 1, 2))
    rows.append(chunk(7, 3))
    found = rows.find(6)
    assert found is not None and found.first == 5
    last = rows.find(7)
    assert last is not None and last.first == 7
    assert rows.find(4) is None
    assert rows.find(8) is None
    assert holding([], 0) is None


def test_rows_that_were_there_before_this_process_are_filled_in() -> None:
    rows = RecentRows(SHAPE)
    rows.fill(chunk(0, *range(20)))
    assert ids(rows) == list(range(20)), "who fills decides how many"


def test_chunks_expire_whole_by_when_they_were_appended() -> None:
    rows = RecentRows(SHAPE)
    rows.append(chunk(0, 1, appended=100))
    rows.append(chunk(1, 1, appended=200))
    rows.expire(200)
    assert ids(rows) == [1]
    rows.expire(201)
    assert ids(rows) == []
    listed = [chunk(0, 1, appended=5)]
    drop_older(listed, 5)
    assert len(listed) == 1


def test_many_small_chunks_are_joined_and_large_ones_are_not() -> None:
    listed = [chunk(i, i) for i in range(47)]
    join_small(listed)
    assert len(listed) == 47
    listed.append(chunk(47, 47))
    join_small(listed)
    assert [(c.first, c.next) for c in listed] == [(0, 48)]
    large = [chunk(i * 1_000, *range(1_000)) for i in range(48)]
    join_small(large)
    assert len(large) == 48


def purging(every: int, keep: int) -> RecentRows:
    return RecentRows(dataclasses.replace(SHAPE, cache_limit=1_000, purge=("ts", every, keep)))


def test_memory_is_purged_once_it_spans_too_long_a_time() -> None:
    rows = purging(every=100, keep=30)
    rows.append(chunk(0, 0, 50, 80))
    assert ids(rows) == [0, 1, 2]
    rows.append(chunk(3, 99))
    assert ids(rows) == [0, 1, 2, 3]
    rows.append(chunk(4, 100))
    assert ids(rows) == [2, 3, 4], "rows from 70 on stay"


def test_a_purge_does_not_depend_on_how_rows_came_together() -> None:
    times = [0, 20, 50, 80, 100, 130, 160, 260, 265]
    together = purging(every=100, keep=30)
    together.append(chunk(0, *times))
    one_by_one = purging(every=100, keep=30)
    for row, time in enumerate(times):
        one_by_one.append(chunk(row, time))
    assert ids(together) == ids(one_by_one) == [7, 8]


def test_rows_without_a_time_count_as_the_oldest() -> None:
    rows = purging(every=100, keep=30)
    rows.append(chunk(0, None, 99))
    assert ids(rows) == [0, 1]
    rows.append(chunk(2, 120))
    assert ids(rows) == [1, 2]

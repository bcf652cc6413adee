"""Records are cut into chunks at controls, at a predecessor's limits and around a suspect."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import names
from spark_jobs.input import Records
from spark_jobs.poison import Poison
from spark_jobs.processor.cutter import cut
from spark_jobs.replay import Published, Replay
from tests.nightly import drawn

#: schema id of data records
_DATA = names.FIRST_TABLE_SCHEMA_ID


def _records(first: int, kinds: str) -> Records:
    """Records from offset *first* on: `.` is data, `c` a control."""
    offsets = np.arange(first, first + len(kinds))
    ids = np.array([names.CONTROL_SCHEMA_ID if k == "c" else _DATA for k in kinds], np.int64)
    return Records("in.db", 0, offsets, offsets, [b""] * len(kinds), ids)


def _cut(replay: Replay, poison: Poison, records: Records) -> list[list[int]]:
    return [chunk.offsets.tolist() for chunk in cut(records, replay, poison)]


@pytest.fixture
def poison(tmp_path: Path) -> Poison:
    return Poison(tmp_path / "mark", "driver")


def _after_death(tmp_path: Path, first: int, last: int, deaths: int = 1) -> Poison:
    """The mark as it is after *deaths* of workers at the records first..last."""
    for _ in range(deaths):
        dying = Poison(tmp_path / "mark", "driver")
        dying.begin(first, last)
        dying.close()
    return Poison(tmp_path / "mark", "driver")


def test_a_control_stands_alone(poison):
    assert _cut(Replay(), poison, _records(5, "..c.cc.")) == [[5, 6], [7], [8], [9], [10], [11]]


def test_data_alone_is_one_chunk_and_nothing_is_none(poison):
    assert _cut(Replay(), poison, _records(5, "....")) == [[5, 6, 7, 8]]
    assert _cut(Replay(), poison, _records(5, "")) == []


def test_chunks_end_where_those_of_the_predecessor_did(poison):
    replay = Replay([Published("p", "t", 0, 7, 9, 0)], 5)
    assert _cut(replay, poison, _records(5, "." * 8)) == [[5, 6], [7, 8, 9], [10, 11, 12]]


def test_a_record_that_may_have_killed_stands_alone(tmp_path):
    poison = _after_death(tmp_path, 7, 7)
    assert _cut(Replay(), poison, _records(5, "." * 5)) == [[5, 6], [7], [8, 9]]


def test_all_records_of_the_chunk_of_a_death_are_suspects(tmp_path):
    poison = _after_death(tmp_path, 6, 7)
    assert _cut(Replay(), poison, _records(5, "." * 5)) == [[5], [6], [7], [8, 9]]


def test_limits_of_published_outputs_bind_until_a_second_death(tmp_path):
    replay = Replay([Published("p", "t", 0, 5, 9, 0)], 5)
    once = _after_death(tmp_path, 5, 9)
    assert _cut(replay, once, _records(5, "." * 5)) == [[5, 6, 7, 8, 9]]
    twice = _after_death(tmp_path, 5, 9)
    assert _cut(replay, twice, _records(5, "." * 5)) == [[5], [6], [7], [8], [9]]


def test_offsets_that_the_log_leaves_out_shift_nothing(poison):
    records = _records(5, "....")
    gaps = Records(
        "in.db", 0, np.array([5, 8, 9, 20]), records.timestamps, records.values, records.ids
    )
    replay = Replay([Published("p", "t", 0, 5, 8, 0)], 5)
    assert _cut(replay, poison, gaps) == [[5, 8], [9, 20]]


@settings(max_examples=drawn(100), deadline=None)
@given(st.text("..c", max_size=15), st.sets(st.integers(0, 15), max_size=4))
def test_chunks_hold_every_record_once_and_in_order(tmp_path_factory, kinds, ends):
    replay = Replay([Published("p", "t", n, e, e, 0) for n, e in enumerate(sorted(ends))])
    poison = Poison(tmp_path_factory.mktemp("poison") / "mark", "driver")
    chunks = _cut(replay, poison, _records(0, kinds))
    assert [offset for chunk in chunks for offset in chunk] == list(range(len(kinds)))
    for chunk in chunks:
        assert "c" not in {kinds[offset] for offset in chunk} or len(chunk) == 1
        assert not any(chunk[0] <= end < chunk[-1] for end in ends)
    poison.close()

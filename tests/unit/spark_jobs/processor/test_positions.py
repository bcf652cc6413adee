"""How far a processor has come, and what of that a snapshot has to hold."""

from __future__ import annotations

import numpy as np
import pytest

from spark_jobs.input import Records
from spark_jobs.processor.positions import Positions


def _chunk(*lines: tuple[int, int]) -> Records:
    """Records of (offset, append time)."""
    offsets, times = (np.array(column) for column in zip(*lines, strict=True))
    return Records("in.db", 0, offsets, times, [b""] * len(lines), offsets)


def test_a_chunk_moves_the_position_behind_its_last_record():
    positions = Positions(3, 50, {})
    assert not positions.dirty
    positions.advance(_chunk((3, 60), (9, 70)))
    assert (positions.next, positions.time, positions.dirty) == (10, 70, True)


def test_time_does_not_go_back_with_a_broker_whose_clock_is_behind():
    positions = Positions(3, 50, {})
    positions.advance(_chunk((3, 40)))
    assert positions.time == 50


@pytest.mark.parametrize(
    ("offset", "ordinal", "repeat"),
    [(7, 2, True), (7, 1, True), (6, 9, True), (7, 3, False), (8, 0, False)],
)
def test_what_a_producer_has_said_before_is_a_repeat(offset, ordinal, repeat):
    positions = Positions(0, 0, {"p": (7, 2)})
    assert positions.is_repeat("p", offset, ordinal) is repeat
    assert positions.is_repeat("p", offset, ordinal) is True
    assert positions.seen["p"] == max((7, 2), (offset, ordinal))


def test_records_without_a_producer_never_are():
    positions = Positions(0, 0, {})
    assert not positions.is_repeat(None, 1, 0)
    assert not positions.is_repeat(None, 1, 0)
    assert positions.seen == {}


def test_a_snapshot_holds_what_is_new_or_everything():
    positions = Positions(0, 0, {"old": (1, 0)})
    positions.is_repeat("p", 5, 0)
    positions.advance(_chunk((0, 1)))
    assert positions.take_changes(full=False) == {"p": (5, 0)}
    assert not positions.dirty
    assert positions.take_changes(full=False) == {}
    positions.is_repeat("q", 6, 1)
    assert positions.take_changes(full=True) == {"old": (1, 0), "p": (5, 0), "q": (6, 1)}
    positions.is_repeat("q", 7, 0)
    assert positions.take_changes(full=False) == {"q": (7, 0)}


def test_what_was_given_away_does_not_change_any_more():
    positions = Positions(0, 0, {})
    positions.is_repeat("p", 5, 0)
    taken = positions.take_changes(full=True)
    positions.is_repeat("p", 6, 0)
    assert taken == {"p": (5, 0)}

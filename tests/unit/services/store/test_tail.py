"""A tail keeps its rows in few frames, in the order of the log."""

from __future__ import annotations

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.storage.segments import Position
from services.store import tail
from services.store.tail import Tail
from tests.nightly import drawn


def frames_of(sizes: list[int]) -> tuple[list[pl.DataFrame], list[int]]:
    """Return the frames of a tail that took pieces of *sizes* rows, and all their numbers."""
    made = Tail(Position("in.a", 0, 1))
    first = 0
    for number, size in enumerate(sizes):
        rows = pl.DataFrame({"n": range(first, first + size)}, schema={"n": pl.Int64})
        made.append(number + 1, {7: rows}, [], 1.0)
        first += size
    assert made.rows == first
    return list(made.view().frames.get(7, ())), list(range(first))


def test_many_small_pieces_become_few_frames() -> None:
    found, numbers = frames_of([10] * 1000)
    assert len(found) <= 14
    assert pl.concat(found)["n"].to_list() == numbers


def test_a_large_frame_is_left_as_it_is() -> None:
    large = tail._JOINED_ROWS
    found, _ = frames_of([large, large, 5, 5])
    assert [frame.height for frame in found] == [large, large, 10]


@given(st.lists(st.integers(1, 50), max_size=40))
@settings(max_examples=drawn(50), deadline=None)
def test_no_row_is_lost_or_moved(sizes: list[int]) -> None:
    found, numbers = frames_of(sizes)
    assert [n for frame in found for n in frame["n"].to_list()] == numbers
    heights = [frame.height for frame in found]
    assert heights == sorted(heights, reverse=True)
    assert len(set(heights)) == len(heights)


def test_a_view_keeps_what_it_has_seen() -> None:
    made = Tail(Position("in.a", 0, 1))
    made.append(1, {7: pl.DataFrame({"n": [1]})}, [], 1.0)
    before = made.view()
    made.append(2, {7: pl.DataFrame({"n": [2]})}, [], 1.0)
    assert [frame["n"].to_list() for frame in before.frames[7]] == [[1]]
    assert [frame["n"].to_list() for frame in made.view().frames[7]] == [[1, 2]]

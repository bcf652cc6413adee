"""A call's rows in pieces, none of which holds two writes of one group."""

from __future__ import annotations

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.windows.assign.events import Stamp
from penstock.windows.rows.write_order import by_write, stamp_of
from tests.nightly import drawn


def _rows(lines: list[tuple[int, int]]) -> pl.DataFrame:
    """Rows of (group, write), numbered in their order and appended a second apart."""
    return pl.DataFrame(
        {
            "_g": [g for g, _ in lines],
            "_step": [s for _, s in lines],
            "_now": [1000 * s for _, s in lines],
            "n": range(len(lines)),
        },
        schema_overrides={"_g": pl.Int64, "_step": pl.UInt32, "_now": pl.Int64, "n": pl.Int64},
    )


_LINES = [(0, 5), (1, 5), (0, 6), (0, 7), (1, 7), (2, 7)]


def _numbers(pieces: list[pl.DataFrame]) -> list[list[int]]:
    return [piece.get_column("n").to_list() for piece in pieces]


def test_without_whole_groups_each_write_is_a_piece():
    assert _numbers(by_write(_rows(_LINES), whole=False)) == [[0, 1], [2], [3, 4, 5]]


def test_with_whole_groups_the_first_writes_of_all_go_together():
    made = by_write(_rows(_LINES), whole=True)
    assert _numbers(made) == [[0, 1, 5], [2, 4], [3]]
    assert made[0].columns == _rows(_LINES).columns


_calls = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=15).map(
    lambda lines: sorted(lines, key=lambda line: line[1])
)


@settings(max_examples=drawn(100), deadline=None)
@given(_calls)
def test_each_group_meets_its_writes_one_by_one_and_in_order(lines):
    pieces = by_write(_rows(lines), whole=True)
    met: dict[int, list[int]] = {}
    for piece in pieces:
        for group, steps in piece.group_by("_g").agg(pl.col("_step").unique()).iter_rows():
            assert len(steps) == 1
            met.setdefault(group, []).extend(steps)
    assert all(steps == sorted(set(steps)) for steps in met.values())
    assert sorted(n for piece in _numbers(pieces) for n in piece) == list(range(len(lines)))
    assert len(pieces) == max(len(steps) for steps in met.values())


def test_one_stamp_for_all_or_one_a_group():
    rows = _rows([(0, 5), (1, 6), (0, 6)])
    assert stamp_of(rows, 77, each_group=False) == Stamp(5, 77)
    own = stamp_of(rows, 77, each_group=True)
    assert own.of(0) == (5, 6000)
    assert own.of(1) == (6, 6000)
    assert own.of(9) == (5, 77)  # a group that no row of the piece names

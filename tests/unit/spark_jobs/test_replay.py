"""Where a successor cuts and what it holds back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.replay import Published, Replay


def one(
    first: int, last: int, ordinal: int = 0, partition: int = 0, producer: str = "s:1"
) -> Published:
    return Published(producer, "t", partition, first, last, ordinal)


def test_nothing_published_binds_nothing() -> None:
    replay = Replay()
    assert not replay
    assert replay.until == -1
    assert replay.limit(5, 90) == 90
    assert not replay.holds_back(("s:1", "t", 0), 5, 0)


def test_a_half_published_unit_is_cut_out_and_only_the_rest_goes_out() -> None:
    replay = Replay([one(10, 19, 0), one(10, 19, 1), one(10, 19, 0, partition=1)], 3)
    assert replay.limit(3, 50) == 9
    assert replay.limit(10, 50) == 19
    assert replay.limit(20, 50) == 50
    assert replay.holds_back(("s:1", "t", 0), 19, 1)
    assert not replay.holds_back(("s:1", "t", 0), 19, 2)
    assert replay.holds_back(("s:1", "t", 1), 19, 0)
    assert not replay.holds_back(("s:1", "t", 1), 19, 1)
    assert not replay.holds_back(("s:1", "t", 2), 19, 0)
    assert not replay.holds_back(("s:2", "t", 0), 19, 0)


def test_what_is_below_the_state_is_forgotten() -> None:
    assert not Replay([one(0, 4)], 5)
    replay = Replay([one(5, 9), one(10, 12)], 5)
    replay.forget_below(10)
    assert replay.pending() == [one(10, 12)]
    replay.forget_below(13)
    assert not replay


def test_a_snapshot_in_mid_replay_carries_every_cut() -> None:
    replay = Replay([one(0, 4), one(5, 9), one(10, 12, producer="s:2")], 0)
    again = Replay(replay.pending(), 0)
    first = 0
    cuts = []
    while first <= 12:
        cuts.append(again.limit(first, 99))
        assert cuts[-1] == replay.limit(first, 99)
        first = cuts[-1] + 1
    assert cuts == [4, 9, 12]
    assert again.has_outputs_within(10, 12)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=12), st.data())
def test_the_old_units_come_back_whatever_is_there_to_take(
    sizes: list[int], data: st.DataObject
) -> None:
    ends = []
    at = -1
    for size in sizes:
        at += size
        ends.append(at)
    units = list(zip([0, *(e + 1 for e in ends[:-1])], ends, strict=True))
    replay = Replay([one(*u) for u in units], 0)
    found = []
    first = 0
    while first <= at:
        taken = data.draw(st.integers(first, at + 5))
        last = replay.limit(first, taken)
        found.append(last)
        first = last + 1
    # every old end is an end again, so outputs can be told apart by position
    assert set(ends) <= set(found) | {e for e in ends if e > at}

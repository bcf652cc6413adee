"""A track gives every parcel once, in order, whatever of it came live and whatever from the log,
and holds a bounded queue.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.notifier.parcel import Parcel
from services.notifier.track import Mark, Track

from .kit import parcel


def offsets(parcels: list[Parcel]) -> list[int]:
    return [p.offset for p in parcels]


def test_live_parcels_go_through_in_order() -> None:
    track = Track(Mark(5), bound=1000, behind=False)
    for offset in (5, 6, 8):
        track.offer(parcel(offset))
    window = track.waiting(2, 1000)
    assert offsets(window) == [5, 6]
    assert offsets(track.waiting(2, 1000)) == [5, 6], "they stay until settled"
    track.settle(window)
    assert track.mark == Mark(7, {"p": (6, 0)})
    assert offsets(track.waiting(9, 1000)) == [8]


def test_window_is_bounded_but_never_empty() -> None:
    track = Track(Mark(0), bound=1000, behind=False)
    for offset in range(4):
        track.offer(parcel(offset, size=30))
    assert offsets(track.waiting(9, 70)) == [0, 1]
    assert offsets(track.waiting(9, 1)) == [0]


def test_past_the_bound_the_log_is_read() -> None:
    track = Track(Mark(0), bound=25, behind=False)
    for offset in range(5):
        track.offer(parcel(offset))
    assert (len(track), track.behind) == (2, 2)
    track.settle(track.waiting(9, 99))
    track.refill([parcel(2), parcel(3)], until=4, live=5)
    assert track.behind == 4
    track.settle(track.waiting(9, 99))
    track.refill([parcel(4), parcel(5)], until=6, live=5)
    assert track.behind is None
    track.offer(parcel(5))  # the live reader comes to it later
    track.settle(track.waiting(9, 99))
    track.offer(parcel(6))
    assert offsets(track.waiting(9, 99)) == [6]


def test_one_too_large_parcel_passes() -> None:
    track = Track(Mark(0), bound=5, behind=False)
    track.offer(parcel(0, size=100))
    assert offsets(track.waiting(9, 1)) == [0]


def test_after_a_restart_nothing_settled_comes_again() -> None:
    track = Track(Mark(3, {"p": (7, 0)}), bound=1000, behind=True)
    track.offer(parcel(9))
    assert not track.waiting(9, 999), "first what is in the log"
    track.refill(
        [parcel(3, position=7), parcel(4, position=8), parcel(9, position=9)], until=10, live=10
    )
    assert offsets(track.waiting(9, 999)) == [4, 9]


def test_what_a_restarted_stream_publishes_twice_is_sent_once() -> None:
    track = Track(Mark(0), bound=1000, behind=False)
    for offset, position in ((0, 5), (1, 6), (2, 5), (3, 6), (4, 7)):
        track.offer(parcel(offset, position=position))
    track.offer(parcel(5, position=1, producer="other"))
    assert offsets(track.waiting(9, 999)) == [0, 1, 4, 5]


def test_barriers_wait_for_what_is_before_them() -> None:
    track = Track(Mark(0), bound=1000, behind=False)
    assert track.has_settled(100)
    track.offer(parcel(3))
    assert track.has_settled(3) and not track.has_settled(4)
    track.settle(track.waiting(1, 99))
    assert track.has_settled(4)
    late = Track(Mark(2), bound=1000, behind=True)
    assert late.has_settled(2) and not late.has_settled(3)


def test_idle_marks_follow() -> None:
    track = Track(Mark(0), bound=1000, behind=False)
    assert track.rest(50) and track.mark.offset == 50
    assert not track.rest(50)
    track.offer(parcel(60))
    assert not track.rest(61)


def test_marks_as_json() -> None:
    mark = Mark(4, {"s:1:in.db:0": (3, 1)})
    assert Mark.from_json(mark.to_json()) == mark


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.integers(5, 60), st.integers(1, 5))
def test_any_pace_of_delivery_gives_everything_once(
    settles: list[bool], bound: int, batch: int
) -> None:
    log: list[Parcel] = []
    track = Track(Mark(0), bound=bound, behind=False)
    out: list[int] = []

    def work() -> None:
        if not len(track) and track.behind is not None:
            start = track.behind
            track.refill(log[start : start + batch], min(start + batch, len(log)), len(log))
        window = track.waiting(3, 100)
        out.extend(offsets(window))
        track.settle(window)

    for settle in settles:
        log.append(parcel(len(log)))
        track.offer(log[-1])
        if settle:
            work()
    for _ in range(4 * len(log)):
        work()
    assert out == list(range(len(log)))
    assert track.behind is None and track.has_settled(len(log))


@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=60),
    st.integers(5, 60),
)
def test_what_waits_is_counted_right_however_far_the_log_was_read(
    steps: list[tuple[bool, bool, bool]], bound: int
) -> None:
    log: list[Parcel] = []
    track = Track(Mark(0), bound=bound, behind=True)
    offered = waiting = 0

    def work() -> int:
        if not len(track) and track.behind is not None:
            start = track.behind
            track.refill(log[start:], len(log), offered)
        window = track.waiting(3, 100)
        track.settle(window)
        return sum(track.was_offered(p) for p in window)

    for repeats, offers, settles in steps:
        log.append(parcel(len(log), position=max(len(log) - 1, 0) if repeats else len(log)))
        if offers:
            waiting += track.offer(log[offered])
            offered += 1
        if settles:
            waiting -= work()
    while offered < len(log):
        waiting += track.offer(log[offered])
        offered += 1
    for _ in range(2 * len(log)):
        waiting -= work()
    assert waiting == 0

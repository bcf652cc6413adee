"""A cursor gives every message once, in order, whatever of it came live and whatever from the log,
and holds a bounded queue.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.notifier.cursor import Mark, PartitionCursor
from services.notifier.message import NotifyMessage

from .kit import message


def offsets(messages: list[NotifyMessage]) -> list[int]:
    return [p.offset for p in messages]


def test_live_parcels_go_through_in_order() -> None:
    cursor = PartitionCursor(Mark(5), bound=1000, behind=False)
    for offset in (5, 6, 8):
        cursor.offer(message(offset))
    window = cursor.waiting(2, 1000)
    assert offsets(window) == [5, 6]
    assert offsets(cursor.waiting(2, 1000)) == [5, 6], "they stay until settled"
    cursor.settle(window)
    assert cursor.mark == Mark(7, {"p": (6, 0)})
    assert offsets(cursor.waiting(9, 1000)) == [8]


def test_window_is_bounded_but_never_empty() -> None:
    cursor = PartitionCursor(Mark(0), bound=1000, behind=False)
    for offset in range(4):
        cursor.offer(message(offset, size=30))
    assert offsets(cursor.waiting(9, 70)) == [0, 1]
    assert offsets(cursor.waiting(9, 1)) == [0]


def test_past_the_bound_the_log_is_read() -> None:
    cursor = PartitionCursor(Mark(0), bound=25, behind=False)
    for offset in range(5):
        cursor.offer(message(offset))
    assert (len(cursor), cursor.behind) == (2, 2)
    cursor.settle(cursor.waiting(9, 99))
    cursor.refill([message(2), message(3)], until=4, live=5)
    assert cursor.behind == 4
    cursor.settle(cursor.waiting(9, 99))
    cursor.refill([message(4), message(5)], until=6, live=5)
    assert cursor.behind is None
    cursor.offer(message(5))  # the live reader comes to it later
    cursor.settle(cursor.waiting(9, 99))
    cursor.offer(message(6))
    assert offsets(cursor.waiting(9, 99)) == [6]


def test_one_too_large_parcel_passes() -> None:
    cursor = PartitionCursor(Mark(0), bound=5, behind=False)
    cursor.offer(message(0, size=100))
    assert offsets(cursor.waiting(9, 1)) == [0]


def test_after_a_restart_nothing_settled_comes_again() -> None:
    cursor = PartitionCursor(Mark(3, {"p": (7, 0)}), bound=1000, behind=True)
    cursor.offer(message(9))
    assert not cursor.waiting(9, 999), "first what is in the log"
    cursor.refill(
        [message(3, position=7), message(4, position=8), message(9, position=9)], until=10, live=10
    )
    assert offsets(cursor.waiting(9, 999)) == [4, 9]


def test_what_a_restarted_stream_publishes_twice_is_sent_once() -> None:
    cursor = PartitionCursor(Mark(0), bound=1000, behind=False)
    for offset, position in ((0, 5), (1, 6), (2, 5), (3, 6), (4, 7)):
        cursor.offer(message(offset, position=position))
    cursor.offer(message(5, position=1, producer="other"))
    assert offsets(cursor.waiting(9, 999)) == [0, 1, 4, 5]


def test_barriers_wait_for_what_is_before_them() -> None:
    cursor = PartitionCursor(Mark(0), bound=1000, behind=False)
    assert cursor.has_settled(100)
    cursor.offer(message(3))
    assert cursor.has_settled(3) and not cursor.has_settled(4)
    cursor.settle(cursor.waiting(1, 99))
    assert cursor.has_settled(4)
    late = PartitionCursor(Mark(2), bound=1000, behind=True)
    assert late.has_settled(2) and not late.has_settled(3)


def test_idle_marks_follow() -> None:
    cursor = PartitionCursor(Mark(0), bound=1000, behind=False)
    assert cursor.rest(50) and cursor.mark.offset == 50
    assert not cursor.rest(50)
    cursor.offer(message(60))
    assert not cursor.rest(61)


def test_marks_as_json() -> None:
    mark = Mark(4, {"s:1:in.db:0": (3, 1)})
    assert Mark.from_json(mark.to_json()) == mark


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.integers(5, 60), st.integers(1, 5))
def test_any_pace_of_delivery_gives_everything_once(
    settles: list[bool], bound: int, batch: int
) -> None:
    log: list[NotifyMessage] = []
    cursor = PartitionCursor(Mark(0), bound=bound, behind=False)
    out: list[int] = []

    def work() -> None:
        if not len(cursor) and cursor.behind is not None:
            start = cursor.behind
            cursor.refill(log[start : start + batch], min(start + batch, len(log)), len(log))
        window = cursor.waiting(3, 100)
        out.extend(offsets(window))
        cursor.settle(window)

    for settle in settles:
        log.append(message(len(log)))
        cursor.offer(log[-1])
        if settle:
            work()
    for _ in range(4 * len(log)):
        work()
    assert out == list(range(len(log)))
    assert cursor.behind is None and cursor.has_settled(len(log))


@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=60),
    st.integers(5, 60),
)
def test_what_waits_is_counted_right_however_far_the_log_was_read(
    steps: list[tuple[bool, bool, bool]], bound: int
) -> None:
    log: list[NotifyMessage] = []
    cursor = PartitionCursor(Mark(0), bound=bound, behind=True)
    offered = waiting = 0

    def work() -> int:
        if not len(cursor) and cursor.behind is not None:
            start = cursor.behind
            cursor.refill(log[start:], len(log), offered)
        window = cursor.waiting(3, 100)
        cursor.settle(window)
        return sum(cursor.was_offered(p) for p in window)

    for repeats, offers, settles in steps:
        log.append(message(len(log), position=max(len(log) - 1, 0) if repeats else len(log)))
        if offers:
            waiting += cursor.offer(log[offered])
            offered += 1
        if settles:
            waiting -= work()
    while offered < len(log):
        waiting += cursor.offer(log[offered])
        offered += 1
    for _ in range(2 * len(log)):
        waiting -= work()
    assert waiting == 0

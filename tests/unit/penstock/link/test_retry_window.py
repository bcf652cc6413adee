"""For how long, and how often, a lost link is tried again."""

from __future__ import annotations

import pytest

from penstock.link import retry_window
from penstock.link.retry_window import RetryWindow


class Clock:
    """Seconds as a test says them."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(retry_window, "time", made)
    return made


def test_it_is_over_when_its_time_is(clock: Clock) -> None:
    window = RetryWindow(1_000, 0)
    clock.now += 1.0
    assert not window.is_over(1_000_000)
    clock.now += 0.001
    assert window.is_over(0)


def test_it_is_over_after_so_many_attempts(clock: Clock) -> None:
    window = RetryWindow(1_000, 3)
    assert [window.is_over(n) for n in (0, 2, 3, 4)] == [False, False, True, True]


def test_no_time_means_no_attempt(clock: Clock) -> None:
    assert RetryWindow(0, 0).is_over(0)


def test_a_loss_counts_from_when_it_was_noticed(clock: Clock) -> None:
    window = RetryWindow(1_000, 0)
    clock.now += 60
    window.note_loss()
    assert not window.is_over(0)
    clock.now += 60
    window.begin()
    assert not window.is_over(0)


def test_pauses_grow_to_a_limit_and_begin_anew(clock: Clock) -> None:
    window = RetryWindow(1_000, 0)
    pauses = [window.pause() for _ in range(8)]
    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    window.note_loss()
    assert window.pause() == 2.0
    window.begin()
    assert window.pause() == 0.05

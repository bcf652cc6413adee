"""One thread reads at a time: the connection's own, or a caller who waits anyway."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from penstock.client import reading_turn
from penstock.client.reading_turn import ReadingTurn


class _Turn:
    """A turn, its lock, and a clock that a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        monkeypatch.setattr(reading_turn.time, "monotonic", lambda: self.now)
        self.lock = threading.RLock()
        self.turn = ReadingTurn(self.lock)

    def taken_by_thread(
        self, usable: Callable[[], bool] = lambda: True
    ) -> tuple[threading.Thread, list[str], threading.Event]:
        """Have another thread take the turn; its trouble, and whether it waits by now."""
        trouble: list[str] = []
        waits = threading.Event()

        def look() -> bool:
            waits.set()
            return usable()

        def take() -> None:
            with self.lock:
                trouble.append(self.turn.take(look))

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        return thread, trouble, waits


@pytest.fixture
def turn(monkeypatch: pytest.MonkeyPatch) -> _Turn:
    return _Turn(monkeypatch)


def test_a_turn_is_taken_once(turn):
    assert turn.turn.try_take()
    assert not turn.turn.try_take()
    turn.turn.give_up()
    assert turn.turn.try_take()


def test_nobody_takes_it_where_there_is_trouble(turn):
    turn.turn.trouble = "broken"
    assert not turn.turn.try_take()


def test_the_thread_takes_a_free_turn_at_once(turn):
    with turn.lock:
        assert turn.turn.take(lambda: True) == ""
        assert not turn.turn.try_take()


def test_the_thread_is_told_of_trouble_without_waiting_for_callers(turn):
    with turn.lock:
        turn.turn.leave_to_callers()
        turn.turn.trouble = "again"
        assert turn.turn.take(lambda: True) == "again"


def test_a_connection_that_is_of_no_use_is_not_waited_for(turn):
    with turn.lock:
        turn.turn.leave_to_callers()
        assert turn.turn.take(lambda: False) == ""


def test_the_thread_waits_while_callers_are_about_to_read(turn):
    with turn.lock:
        turn.turn.leave_to_callers()
    thread, trouble, waits = turn.taken_by_thread()
    assert waits.wait(5)
    with turn.lock:  # it waits, and has left the lock
        assert trouble == []
        assert turn.turn.try_take()  # a caller may still read
        turn.turn.give_up()
        turn.turn.hand_back()
    thread.join(5)
    assert trouble == [""]


def test_it_waits_for_the_caller_who_reads_even_when_told_to_go_on(turn):
    with turn.lock:
        assert turn.turn.try_take()
    thread, trouble, waits = turn.taken_by_thread(usable=lambda: False)
    assert waits.wait(5)
    with turn.lock:
        assert trouble == []
        turn.turn.give_up()
        turn.turn.hand_back()
    thread.join(5)
    assert trouble == [""]


def test_callers_who_do_not_come_back_are_waited_for_a_second(turn):
    with turn.lock:
        turn.turn.leave_to_callers()
        turn.now += 1.1
        assert turn.turn.take(lambda: True) == ""

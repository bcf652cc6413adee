from __future__ import annotations

import signal
import threading

import pytest

from penstock.service.stop import SIGNALS, StopRequest, StopSignals
from tests.unit.penstock.service.kit import terminate


def test_a_stop_is_told_once() -> None:
    heard: list[str] = []
    request = StopRequest()
    with request.heard_by(lambda: heard.append("first")):
        request.ask()
        request.ask()
        assert request.event.is_set()
        with request.heard_by(lambda: heard.append("late")):
            pass
    assert heard == ["first", "late"], "who listens late is told at once"


def test_nothing_is_told_after_the_block() -> None:
    heard: list[str] = []
    request = StopRequest()
    with request.heard_by(lambda: heard.append("told")):
        pass
    request.ask()
    assert heard == []


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_asks_for_a_stop(number: signal.Signals) -> None:
    request = StopRequest()
    before = signal.getsignal(number)
    with StopSignals(request.ask):
        signal.raise_signal(number)
        assert request.event.wait(5)
    assert signal.getsignal(number) == before


def test_a_signal_may_come_while_the_main_thread_holds_what_the_stop_needs() -> None:
    lock = threading.Lock()
    asked = threading.Event()

    def ask() -> None:
        with lock:
            asked.set()

    with StopSignals(ask):
        with lock:
            terminate()
            assert not asked.is_set()
        assert asked.wait(5)


def test_a_signal_ends_a_wait_that_says_so_and_no_other() -> None:
    with StopSignals(lambda: None) as signals:
        with pytest.raises(SystemExit) as ended, signals.ending_process():
            terminate()
            threading.Event().wait(5)
        assert ended.value.code == 0
        terminate()


def test_a_signal_that_came_before_ends_the_wait_as_well() -> None:
    with StopSignals(lambda: None) as signals:
        terminate()
        with pytest.raises(SystemExit), signals.ending_process():
            pytest.fail("the block began")


def test_a_handler_of_a_library_is_replaced() -> None:
    request = StopRequest()
    with StopSignals(request.ask) as signals:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signals.hear()
        signal.raise_signal(signal.SIGINT)
        assert request.event.wait(5)

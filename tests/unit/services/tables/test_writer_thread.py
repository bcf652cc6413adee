"""The thread that sends writes: every session gets its turn, and a fault costs only its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from services.tables.writer_thread import WriterThread


class _Session:
    """Has something to do *turns* times, and fails instead if it is told to."""

    def __init__(self, name: str, turns: int = 1, fault: Exception | None = None) -> None:
        self.replica = SimpleNamespace(name=name)
        self.done = threading.Event()
        self.turns = turns
        self._fault = fault

    def work(self) -> bool:
        if self._fault is not None:
            raise self._fault
        self.turns = max(self.turns - 1, 0)
        if not self.turns:
            self.done.set()
        return self.turns > 0


class _Election:
    def __init__(self, *sessions: _Session) -> None:
        self.standings = {
            group: SimpleNamespace(sessions={group: session})
            for group, session in enumerate(sessions)
        }


@pytest.fixture
def started() -> Iterator[Any]:
    threads: list[WriterThread] = []

    def start(*sessions: _Session) -> WriterThread:
        thread = WriterThread(cast(Any, _Election(*sessions)))
        threads.append(thread)
        thread.start()
        return thread

    yield start
    for thread in threads:
        thread.stop()
        assert not thread.is_alive()


def test_a_session_works_until_it_has_nothing_left(started: Any) -> None:
    session = _Session("d.a", turns=3)
    started(session).wake()
    assert session.done.wait(5) and session.turns == 0


def test_a_session_that_fails_keeps_no_other_from_its_turn(started: Any) -> None:
    good = _Session("d.good")
    thread = started(_Session("d.bad", fault=ValueError("broken")), good)
    thread.wake()
    assert good.done.wait(5) and thread.is_alive()

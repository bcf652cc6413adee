from __future__ import annotations

from concurrent.futures import Future

from services.tables import waiting_writes
from services.tables.waiting_writes import WaitingWrites
from services.tables.writes import Offset


class Queue:
    def __init__(self) -> None:
        self.woken = 0
        self.waiting = WaitingWrites(self._wake)

    def _wake(self) -> None:
        self.woken += 1


def entry(size: int) -> Offset:
    return Offset("o:s", 0, Future(), size)


def test_the_writer_thread_is_woken_for_what_waits_only():
    queue = Queue()
    queue.waiting.remind()
    assert queue.woken == 0
    queue.waiting.put(entry(1))
    queue.waiting.remind()
    assert queue.woken == 2


def test_as_many_are_taken_as_go_together_in_their_order(monkeypatch):
    monkeypatch.setattr(waiting_writes, "_TOGETHER", 10)
    queue = Queue()
    entries = [entry(size) for size in (4, 6, 1, 20, 3)]
    for one in entries:
        queue.waiting.put(one)
    assert queue.waiting.take() == entries[:2]
    assert queue.waiting.take() == entries[2:3]
    assert queue.waiting.take() == entries[3:4], "one that is too large goes alone"
    assert queue.waiting.take_all() == entries[4:]
    assert not queue.waiting and queue.waiting.take() == []

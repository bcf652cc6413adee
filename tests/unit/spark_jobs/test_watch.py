"""The watch over topics at rest tells of each once, and goes on after errors."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.errors import BusError
from spark_jobs import watch
from spark_jobs.watch import SleepWatch

_made: list[_Reader] = []


class _Reader:
    """Gives what a test puts in: the topic of a record, or an error."""

    def __init__(self, bootstrap: str, offsets: dict[tuple[str, int], int], **_: Any) -> None:
        self.offsets = dict(offsets)
        self.given: queue.Queue[str | BusError] = queue.Queue()
        _made.append(self)

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def add(self, offsets: dict[tuple[str, int], int]) -> None:
        self.offsets |= offsets

    def remove(self, places: Iterable[tuple[str, int]]) -> None:
        for place in places:
            del self.offsets[place]

    def shows(self, offsets: dict[tuple[str, int], int]) -> bool:
        """Whether these are watched, soon."""
        end = time.monotonic() + 10
        while self.offsets != offsets and time.monotonic() < end:
            time.sleep(0.01)
        return self.offsets == offsets

    def read(self, most: int, timeout: float) -> list[Any]:
        try:
            found = self.given.get(timeout=0.05)
        except queue.Empty:
            return []
        if isinstance(found, BusError):
            raise found
        return [SimpleNamespace(topic=found)]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[SleepWatch, Any, threading.Event]]:
    """A watch over two topics, its reader, and whether it has told something."""
    monkeypatch.setattr(watch, "Reader", _Reader)
    made = SleepWatch("broker")
    told = threading.Event()
    made.listen(told.set)
    made.add({"in.a": (5, 3)})
    made.add({"in.b": (0,)})
    while not _made:
        time.sleep(0.01)
    reader = _made.pop()
    assert reader.shows({("in.a", 0): 5, ("in.a", 1): 3, ("in.b", 0): 0})
    yield made, reader, told
    made.close()


def test_topics_are_watched_from_where_they_ended(watched):
    made, reader, _ = watched
    made.remove(["in.a", "in.unknown"])
    assert reader.shows({("in.b", 0): 0})
    made.add({"in.a": (7, 3)})
    assert reader.shows({("in.a", 0): 7, ("in.a", 1): 3, ("in.b", 0): 0})


def test_a_record_is_told_of_once_and_its_topic_watched_no_more(watched):
    made, reader, told = watched
    reader.given.put("in.a")
    reader.given.put("in.a")
    assert told.wait(5)
    assert made.take_woken() == ["in.a"]
    assert reader.shows({("in.b", 0): 0})
    assert made.take_woken() == []


def test_a_topic_that_cannot_be_watched_wakes_and_others_are_watched_on(watched):
    made, reader, told = watched
    reader.given.put(BusError("the offset asked for is not in the log", topic="in.b"))
    assert told.wait(5)
    assert made.take_woken() == ["in.b"]
    told.clear()
    reader.given.put("in.a")
    assert told.wait(5)
    assert made.take_woken() == ["in.a"]


def test_without_topics_there_is_no_reader(monkeypatch):
    monkeypatch.setattr(watch, "Reader", None)
    made = SleepWatch("broker")
    made.add({})
    made.remove(["in.a"])
    assert made.take_woken() == []
    made.close()

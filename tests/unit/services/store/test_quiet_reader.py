"""The store's reader asks seldom while nothing happens, and loses nothing on the way there and
back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.bus import Offsets
from penstock.errors import BusError
from services.store import quiet_reader
from services.store.quiet_reader import QuietReader
from tests.unit.services.kit import MemoryLog, MemoryReader

TOPIC = "in.d"
#: a test does not wait for seconds
CALM, LOOK = 0.05, 0.3


class _Opened(MemoryReader):
    """Counts how often it is asked."""

    def __init__(self, log: MemoryLog, offsets: Offsets, rests: bool) -> None:
        super().__init__(log, offsets)
        self.rests = rests
        self.asked = 0
        self.begun = dict(offsets)

    def read(self, max_records: int = 10_000, timeout: float = 1.0) -> list[Any]:
        self.asked += 1
        return super().read(max_records, timeout)


class _Reading:
    def __init__(self) -> None:
        self.log = MemoryLog()
        self.opened: list[_Opened] = []
        self.refusal: BusError | None = None
        self.reader = QuietReader(self._open)

    def _open(self, offsets: Offsets, at_rest: bool) -> Any:
        if self.refusal is not None and at_rest:
            raise self.refusal
        self.opened.append(_Opened(self.log, offsets, at_rest))
        return self.opened[-1]

    def read(self) -> list[bytes]:
        return [v for batch in self.reader.read(100, 0.01) for v in batch.values]

    def fall_asleep(self) -> None:
        end = time.monotonic() + 5
        while not (self.opened and self.opened[-1].rests) and time.monotonic() < end:
            assert self.read() == []
        assert self.opened[-1].rests and self.opened[-2].closed

    def read_soon(self) -> list[bytes]:
        """What comes within few reads."""
        for _ in range(5):
            if found := self.read():
                return found
        return []


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Reading]:
    monkeypatch.setattr(quiet_reader, "_CALM_SECONDS", CALM)
    monkeypatch.setattr(quiet_reader, "_LOOK_SECONDS", LOOK)
    made = _Reading()
    made.log.append(TOPIC, b"old")
    made.log.append(TOPIC, b"one")
    made.reader.add({(TOPIC, 0): 1})
    assert made.read() == [b"one"]
    yield made
    made.reader.close()
    assert all(reader.closed for reader in made.opened if not reader.rests)


def test_who_rests_asks_seldom(reading: _Reading) -> None:
    reading.fall_asleep()
    begun = time.monotonic()
    assert reading.read() == [] and reading.read() == []
    assert time.monotonic() - begun >= 1.5 * LOOK
    assert reading.opened[-1].asked <= 4 and len(reading.opened) == 2


def test_a_record_ends_the_rest_at_once_and_comes_once(reading: _Reading) -> None:
    reading.fall_asleep()
    threading.Timer(0.05, lambda: reading.log.append(TOPIC, b"two")).start()
    begun = time.monotonic()
    assert reading.read() == [b"two"]
    assert time.monotonic() - begun < LOOK
    reading.log.append(TOPIC, b"three")
    assert reading.read_soon() == [b"three"] and reading.read() == []
    assert not reading.opened[-1].rests and reading.opened[-1].begun == {(TOPIC, 0): 3}


def test_a_partition_that_is_added_is_read_at_once(reading: _Reading) -> None:
    reading.fall_asleep()
    reading.log.append("in.new", b"first")
    reading.reader.add({("in.new", 0): 0})
    begun = time.monotonic()
    assert reading.read_soon() == [b"first"]
    assert time.monotonic() - begun < LOOK


def test_what_the_sleeper_has_found_counts_for_nobody_once_its_partitions_have_changed(
    reading: _Reading,
) -> None:
    reading.fall_asleep()
    reading.log.append(TOPIC, b"two")
    while not reading.reader._stirred.is_set():
        time.sleep(0.005)
    reading.reader.remove([(TOPIC, 0)])
    assert reading.read_soon() == []
    reading.reader.add({(TOPIC, 0): 0})
    assert reading.read_soon() == [b"old", b"one", b"two"]


def test_a_change_elsewhere_ends_the_rest(reading: _Reading) -> None:
    reading.fall_asleep()
    threading.Timer(0.05, reading.reader.wake).start()
    begun = time.monotonic()
    assert reading.read() == []
    assert time.monotonic() - begun < LOOK
    reading.read()
    assert not reading.opened[-1].rests


def test_a_change_puts_the_rest_off(reading: _Reading) -> None:
    for _ in range(10):
        reading.reader.wake()
        time.sleep(CALM / 2)
        assert reading.read() == []
    assert len(reading.opened) == 1


def test_what_ends_the_sleeper_is_told(reading: _Reading) -> None:
    reading.refusal = BusError("Kafka is away")
    end = time.monotonic() + 5
    with pytest.raises(BusError, match="away"):
        while time.monotonic() < end:
            reading.read()

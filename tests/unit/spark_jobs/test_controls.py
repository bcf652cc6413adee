"""Controls that the driver sends by itself: ticks, and streams that nobody has heard of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from penstock import names
from penstock.bus import Delivery
from penstock.records import ControlRecord, decode
from penstock.runtime.clock import ManualClock
from penstock.sql.announcement import announced
from spark_jobs import controls
from spark_jobs.controls import Controls, find_missing, topics_to_tick
from tests.unit.spark_jobs.driver_kit import TOPIC, MemoryRedis, Reader, database, source, stream

_TIMED = {"trigger": "max_delay"}


class _Clock(ManualClock):
    """Goes on by a second whenever it is asked, and ends the thread after some of them."""

    def __init__(self, seconds: int) -> None:
        super().__init__(50_000_000_000)
        self._left = seconds
        self.stop: Callable[[], None] = lambda: None

    def monotonic(self) -> float:
        self.advance(1)
        self._left -= 1
        if self._left < 0:
            self.stop()
        return super().monotonic()


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses are short; the clock goes its own way."""
    monkeypatch.setattr(controls, "_MIND_SECONDS", 0.004)


class _Publisher:
    def __init__(self) -> None:
        self.sent: list[tuple[str, int, ControlRecord]] = []

    def send(
        self,
        topic: str,
        value: bytes,
        *,
        partition: int,
        on_delivery: Callable[[Any], None] | None = None,
    ) -> None:
        self.sent.append((topic, partition, decode(ControlRecord, value)))
        if on_delivery is not None:
            on_delivery(Delivery(topic, partition, len(self.sent), 0))

    def kinds(self) -> set[str]:
        return {control.kind for *_, control in self.sent}

    def places(self, kind: str) -> list[tuple[str, int]]:
        return [(topic, p) for topic, p, control in self.sent if control.kind == kind]


class _Driver:
    """Controls over the supertable `st`, in a topic with two partitions."""

    def __init__(self, *entries: Any, seconds: int = 4, **given: Any) -> None:
        self.clock = _Clock(seconds)
        self.redis: Any = MemoryRedis()
        self.publisher: Any = _Publisher()
        self.reader: Any = Reader(database(), source(), *entries)
        usual = {"tick_seconds": 0.004, "grace_seconds": 20.0, "snapshot_seconds": 1.0}
        self.controls = Controls(
            self.reader,
            self.redis,
            self.publisher,
            self.clock,
            **{**usual, "ticking": True, **given},
        )
        self.clock.stop = self.controls.stop

    def report(self, stream_id: int, *fields: str) -> None:
        for field in fields:
            self.redis.hset(names.stream_status(stream_id), field, "0")

    def run(self) -> _Publisher:
        self.controls.run()
        return self.publisher


# -------------------------------------------------------------------- what is due


def test_only_running_streams_in_need_of_time_have_their_topics_ticked():
    assert topics_to_tick(Reader(database(), source(), stream(**_TIMED)).catalog) == {TOPIC: 2}
    assert topics_to_tick(Reader(database(), source(), stream()).catalog) == {}
    paused = stream(status="paused", **_TIMED)
    assert topics_to_tick(Reader(database(), source(), paused).catalog) == {}


@pytest.mark.parametrize(
    ("reported", "missing"),
    [
        ([], [(TOPIC, 0), (TOPIC, 1)]),
        ([f"{TOPIC}:1"], [(TOPIC, 0)]),
        ([f"{TOPIC}:1", names.filling(TOPIC, 0)], []),
        ([f"{TOPIC}:1", f"{names.FAILED}{TOPIC}:0"], []),
        ([f"{TOPIC}:1", f"{names.STATS}{TOPIC}:0"], [(TOPIC, 0)]),
    ],
)
def test_partitions_that_have_not_reported_a_stream(reported, missing):
    assert find_missing(stream(), {TOPIC: 2}, reported) == missing


def test_the_exchange_hears_of_a_stream_from_any_partition():

    entry = stream()
    behind = replace(entry, plan=replace(entry.plan, path="exchange"))
    fields = [f"{TOPIC}:0", f"{TOPIC}:1"]
    exchange = [f"{names.EXCHANGE}:{q}" for q in range(names.BUILT_IN_TOPICS[names.EXCHANGE])]
    assert find_missing(behind, {TOPIC: 2}, fields) == [(TOPIC, 0)]
    assert find_missing(behind, {TOPIC: 2}, [*fields, *exchange[1:]]) == [(TOPIC, 0)]
    assert find_missing(behind, {TOPIC: 2}, [*fields, *exchange]) == []
    assert find_missing(behind, {}, []) == []


# -------------------------------------------------------------------- what is sent


def test_each_partition_is_told_the_time():
    driver = _Driver(stream(**_TIMED), seconds=0)
    sent = driver.run()
    assert sent.places("tick") == [(TOPIC, 0), (TOPIC, 1)]
    assert {c.time // 1000 for *_, c in sent.sent} == {51}


def test_nobody_ticks_with_a_manual_clock_or_without_need():
    assert "tick" not in _Driver(stream(**_TIMED), ticking=False).run().kinds()
    assert "tick" not in _Driver(stream()).run().kinds()


def test_a_partition_that_leaves_a_tick_waiting_gets_no_more():
    driver = _Driver(stream(**_TIMED), seconds=12)
    driver.redis.hset(names.query_progress(TOPIC), "0", 1000)  # 1 has passed nothing
    driver.redis.hset(names.query_progress(TOPIC), "1", 0)
    places = driver.run().places("tick")
    assert places.count((TOPIC, 0)) > places.count((TOPIC, 1)) > 0


def test_time_goes_on_without_redis():
    driver = _Driver(stream(**_TIMED), seconds=2)
    driver.redis.answers = False
    assert driver.run().places("tick")


def test_a_stream_that_is_not_reported_is_announced_again_after_a_while():
    driver = _Driver(stream(), seconds=15, grace_seconds=8.0)
    driver.report(7, f"{TOPIC}:1")
    sent = driver.run()
    assert set(sent.places("stream_on")) == {(TOPIC, 0)}
    assert {c.body for *_, c in sent.sent} == {announced(stream().plan)}
    early = _Driver(stream(), seconds=5, grace_seconds=8.0)
    assert early.run().sent == []


def test_a_stream_that_is_reported_or_has_failed_is_not():
    driver = _Driver(stream(), stream(8, "t", "failed"), seconds=15, grace_seconds=2.0)
    driver.report(7, f"{TOPIC}:0", f"{TOPIC}:1")
    assert driver.run().sent == []


def test_a_stream_over_its_quota_is_told_everywhere_that_it_has_to_pause():
    driver = _Driver(stream(max_results=1), seconds=8, grace_seconds=100.0)
    field = f"{names.STATS}{TOPIC}:0"
    status = names.stream_status(7)
    driver.redis.hset(status, field, '{"rows_out": 0}')
    told: list[int] = []
    monotonic = driver.clock.monotonic

    def rise() -> float:
        told.append(1)
        driver.redis.hset(status, field, f'{{"rows_out": {1000 * len(told)}}}')
        return monotonic()

    driver.clock.monotonic = rise  # type: ignore[method-assign]
    assert driver.run().places("pause")[:2] == [(TOPIC, 0), (TOPIC, 1)]


# -------------------------------------------------------------------- how often it looks


class _Pauses:
    """Lets time pass instead of sleeping, and notes how long."""

    def __init__(self, clock: ManualClock, most: int) -> None:
        self._clock = clock
        self._most = most
        self.taken: list[float] = []

    def is_set(self) -> bool:
        return len(self.taken) >= self._most

    def wait(self, seconds: float) -> bool:
        self.taken.append(seconds)
        self._clock.advance(max(seconds, 0.0))
        return self.is_set()


@pytest.mark.parametrize(
    ("ticks", "pauses"),
    [({"ticking": False}, [1.0] * 6), ({"tick_seconds": 2.5}, [1, 1, 0.5, 0.5, 1, 1])],
)
def test_it_sleeps_until_something_is_due(
    monkeypatch: pytest.MonkeyPatch, ticks: dict[str, Any], pauses: list[float]
) -> None:
    monkeypatch.setattr(controls, "_MIND_SECONDS", 1.0)
    driver = _Driver(stream(**_TIMED), **ticks)
    driver.controls._clock = ManualClock(50_000_000_000)
    halt = _Pauses(driver.controls._clock, len(pauses))
    monkeypatch.setattr(driver.controls, "_halt", halt)
    driver.controls.run()
    assert halt.taken == pytest.approx(pauses)

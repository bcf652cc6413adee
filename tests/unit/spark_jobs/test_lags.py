"""How far queries are behind, and which of them stand still."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from penstock import names
from spark_jobs.lags import LAG_SECONDS, Lags, Progress
from spark_jobs.queries import Wanted
from tests.unit.spark_jobs.driver_kit import TOPIC, MemoryRedis, Reader, database

_WANTED = Wanted(TOPIC, 2, 5)


class _Admin:
    """Ends of logs; a partition that is not named ends at zero."""

    def __init__(self) -> None:
        self.ends: dict[tuple[str, int], int] = {}

    def end_offsets(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        return {place: self.ends.get(place, 0) for place in places}


class _Measured:
    """Lags of one topic with two partitions."""

    def __init__(self, **given: Any) -> None:
        self.redis: Any = MemoryRedis()
        self.admin: Any = _Admin()
        self.reader: Any = Reader(database(**given))
        self.registry = CollectorRegistry()
        self.lags = Lags(self.redis, self.admin, self.reader, self.registry, lambda: 8)
        self.existing = {TOPIC: 2}

    def said(self, **positions: int) -> None:
        """Positions by partition (p0, p1)."""
        for partition, offset in positions.items():
            self.redis.hset(names.query_progress(TOPIC), partition[1:], offset)

    def measure(
        self, now: float = 0.0, *, wanted: Wanted = _WANTED, query: Progress | None = None
    ) -> int:
        self.lags.measure([wanted], self.existing, {} if query is None else {TOPIC: query}, now)
        return self.lags.by_topic.get(TOPIC, -1)

    def value(self, name: str) -> float | None:
        labels = {} if name == "penstock_dead_letters" else {"topic": TOPIC}
        return self.registry.get_sample_value(name, labels)


# -------------------------------------------------------------------- one query


def test_a_query_that_has_just_started_is_not_judged_by_an_old_lag():
    progress = Progress(started=10.0, moved=10.0)
    progress.note({"0": 1}, 500, 10.0 + LAG_SECONDS)
    assert progress.lag == 0
    progress.note({"0": 1}, 500, 10.1 + LAG_SECONDS)
    assert progress.lag == 500


def test_a_query_is_stuck_once_until_it_moves_again():
    progress = Progress(started=0.0, moved=0.0)
    assert not progress.note({"0": 1}, 5, 1.0)
    assert not progress.note({"0": 1}, 5, 21.0)
    assert progress.note({"0": 1}, 5, 21.1)
    assert not progress.note({"0": 1}, 5, 60.0)
    assert not progress.note({"0": 2}, 4, 61.0)
    assert progress.note({"0": 2}, 4, 82.0)


def test_a_query_without_records_to_read_may_stand_still():
    progress = Progress(started=0.0, moved=0.0)
    progress.note({"0": 1}, 0, 1.0)
    assert not progress.note({"0": 1}, 0, 100.0)
    assert not progress.note({"0": 1}, 3, 101.0)


# -------------------------------------------------------------------- all of them


def test_the_lag_is_what_lies_behind_the_positions():
    measured = _Measured()
    measured.admin.ends = {(TOPIC, 0): 100, (TOPIC, 1): 40, (names.DEAD_LETTER, 0): 3}
    measured.existing[names.DEAD_LETTER] = 1
    measured.said(p0=90, p1=45)  # a position may be newer than the look at the end
    assert measured.measure() == 10
    assert measured.value("penstock_lag_records") == 10
    assert measured.value("penstock_dead_letters") == 3
    assert measured.lags.position(TOPIC, 0) == 90
    assert measured.lags.position("in.other", 0) == 0


def test_a_query_knows_in_which_partition_most_records_wait():
    measured = _Measured()
    measured.admin.ends = {(TOPIC, 0): 100, (TOPIC, 1): 100}
    measured.said(p0=99, p1=60)
    progress = Progress(started=0.0, moved=0.0)
    measured.measure(LAG_SECONDS + 1, query=progress)
    assert progress.to_beat() == {"lag": 41, "hindmost": 1}


def test_without_a_position_everything_waits():
    measured = _Measured()
    measured.admin.ends = {(TOPIC, 0): 100}
    assert measured.measure() == 100


def test_partitions_that_took_the_place_of_others_begin_behind_them():
    measured = _Measured(former=((50,),))
    topic = database(former=((50,),)).topic
    measured.existing = {topic: 2}
    measured.admin.ends = {(topic, 0): 60, (topic, 1): 51}
    measured.measure(wanted=Wanted(topic, 2, 5))
    assert measured.lags.by_topic == {topic: 9}


def test_positions_that_redis_has_lost_are_remembered():
    measured = _Measured()
    measured.admin.ends = {(TOPIC, 0): 100, (TOPIC, 1): 100}
    measured.said(p0=90, p1=80)
    assert measured.measure() == 30
    measured.redis.delete(names.query_progress(TOPIC))
    measured.said(p1=100)
    assert measured.measure() == 10
    measured.lags.forget(TOPIC)
    assert TOPIC not in measured.lags.by_topic
    assert measured.measure() == 100  # partition 0 from its beginning, 1 has said where it is


def test_other_fields_of_the_progress_are_no_positions():
    measured = _Measured()
    measured.admin.ends = {(TOPIC, 0): 7}
    measured.redis.hset(names.query_progress(TOPIC), "task:0", "{}")
    assert measured.measure() == 7


@pytest.mark.parametrize("existing", [{}, {TOPIC: 1}])
def test_a_topic_that_is_not_there_with_all_its_partitions_is_not_measured(existing):
    measured = _Measured()
    measured.existing = existing
    assert measured.measure() == -1


def test_a_query_that_stands_still_is_counted():
    measured = _Measured()
    measured.admin.ends = {(TOPIC, 0): 7}
    progress = Progress(started=0.0, moved=0.0)
    for now in (10.0, 31.0, 40.0):
        measured.measure(now, query=progress)
    assert measured.value("penstock_query_stuck_total") == 1
    assert progress.lag == 7

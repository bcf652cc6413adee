"""Queries are started, watched, restarted and stopped as the catalog and their lags call for."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from penstock import names
from penstock.errors import BusError
from penstock.runtime.clock import ManualClock
from penstock.storage.statefile import file_name
from spark_jobs import hand_over, supervisor
from spark_jobs.backlog import CAUTIOUS
from spark_jobs.begins import EARLIEST
from spark_jobs.operator import state_directory
from spark_jobs.settings import SparkSettings
from spark_jobs.supervisor import QuerySupervisor
from tests.unit.spark_jobs.driver_kit import (
    TOPIC,
    MemoryRedis,
    Reader,
    database,
    source,
    stream,
    task,
)

_EXCHANGE = names.BUILT_IN_TOPICS[names.EXCHANGE]


class _Query:
    """A query of Spark."""

    def __init__(self, topic: str, mode: str, at_once: int, first: dict[int, int]) -> None:
        self.topic = topic
        self.first = first
        self.mode = mode
        self.at_once = at_once
        self.isActive = True
        self.failure: Exception | None = None
        self.stopped = False

    def exception(self) -> Exception | None:
        return self.failure

    def end(self, failure: str = "") -> None:
        self.isActive = False
        self.failure = Exception(failure) if failure else None

    def stop(self) -> None:
        self.stopped = True
        self.isActive = False


class _Sessions:
    """Starts queries of no Spark."""

    def __init__(self) -> None:
        self.free = 16
        self.started: list[_Query] = []
        self.retried: list[int] = []
        self.positions: dict[str, dict[int, int]] = {}
        self.refuses = False
        self.given_back = 0

    def give_back_memory(self) -> None:
        self.given_back += 1

    def note_positions(self, found: Iterable[tuple[Any, dict[int, int]]]) -> None:
        self.positions = {wanted.topic: offsets for wanted, offsets in found}

    def slots(self) -> int:
        return self.free

    def query(
        self, wanted: Any, mode: str, operator: Any, at_once: int, first: dict[int, int]
    ) -> _Query:
        if self.refuses:
            raise BusError("no JVM")
        self.started.append(_Query(wanted.topic, mode, at_once, first))
        return self.started[-1]

    def retry(self, attempt: int) -> None:
        self.retried.append(attempt)


class _Admin:
    def __init__(self) -> None:
        self.there = {names.EXCHANGE: _EXCHANGE, TOPIC: 2}
        self.ends: dict[tuple[str, int], int] = {}

    def topics(self) -> dict[str, int]:
        return dict(self.there)

    def end_offsets(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        return {place: self.ends.get(place, 0) for place in places}

    def start_offsets(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        return dict.fromkeys(places, 0)


class _Watch:
    """Tells of what a test says has come."""

    def __init__(self) -> None:
        self.watched: dict[str, tuple[int, ...]] = {}
        self.woken: list[str] = []

    def listen(self, listener: Callable[[], None]) -> None:
        pass

    def add(self, ends: dict[str, tuple[int, ...]]) -> None:
        self.watched |= ends

    def remove(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self.watched.pop(topic, None)

    def take_woken(self) -> list[str]:
        woken, self.woken = self.woken, []
        return woken

    def close(self) -> None:
        self.watched.clear()

    def wake(self, topic: str) -> None:
        del self.watched[topic]
        self.woken.append(topic)


class _Driver:
    """A supervisor whose rounds a test plays one by one."""

    def __init__(self, root: Path, *, idle_seconds: float = 0, **settings: Any) -> None:
        self.clock = ManualClock()
        self.watch: Any = _Watch()
        self.redis: Any = MemoryRedis(self.clock)
        self.sessions: Any = _Sessions()
        self.admin: Any = _Admin()
        self.reader: Any = Reader(database(), source())
        #: readiness as it was told last
        self.said: tuple[bool, str] = (False, "")
        self.registry = CollectorRegistry()
        self.ended: list[str] = []
        given: Any = self
        self.supervisor = QuerySupervisor(
            SparkSettings(
                data_dir=root,
                state_dir=str(root / "state"),
                idle_seconds=idle_seconds,
                **settings,
            ),
            self.sessions,
            self.reader,
            self.redis,
            self.admin,
            given,
            given,
            self.clock,
            "token",
            self.watch,
        )

    def ready(self, name: str, ready: bool, why: str = "") -> None:
        """As `Health`."""
        self.said = (ready, why)
        if not self._left:
            self.supervisor.stop()
            return
        self._left.pop(0)()
        self.reader.wake()

    def report(self, wanted: Any, query: Any) -> bool:
        """As `Epochs`: every epoch of these topics is new."""
        return wanted.topic in self.ended

    def play(self, *steps: Callable[[], Any]) -> None:
        """Begin, do one of *steps* behind each round, and end behind the last."""
        self._left = list(steps)
        self.supervisor.run()

    def query(self, topic: str = TOPIC) -> _Query:
        """The query of a topic that was started last."""
        return next(q for q in reversed(self.sessions.started) if q.topic == topic)

    def tasks(self, *topics: str, **about: Any) -> None:
        """All tasks of these topics' queries have begun."""
        for topic in topics:
            for n in range(self.admin.there[topic]):
                field = f"task:{n}"
                self.redis.hset(names.query_progress(topic), field, task(attempt=n, **about))

    def all_begun(self) -> None:
        self.tasks(names.EXCHANGE, TOPIC)

    def later(self, seconds: float) -> Callable[[], None]:
        return lambda: self.clock.advance(seconds)

    def metric(self, name: str) -> float | None:
        return self.registry.get_sample_value(name, {"topic": TOPIC})


@pytest.fixture
def driver(tmp_path: Path) -> _Driver:
    return _Driver(tmp_path)


# -------------------------------------------------------------------- starting


def test_every_topic_gets_a_query(driver):
    driver.play()
    assert {(q.topic, q.mode) for q in driver.sessions.started} == {
        (names.EXCHANGE, "realtime"),
        (TOPIC, "realtime"),
    }
    assert driver.said[0] is False and "not read yet" in driver.said[1]
    assert driver.metric("penstock_query_realtime") == 1
    assert all(q.stopped for q in driver.sessions.started)  # at the end


def test_the_jobs_are_ready_once_all_tasks_have_begun(driver):
    def partly() -> None:
        assert driver.said == (False, f"not read yet: {TOPIC}")
        driver.tasks(TOPIC)

    driver.play(lambda: driver.tasks(names.EXCHANGE), partly, lambda: None)
    assert driver.said == (True, "")


def test_whoever_reads_says_so(driver):
    beats: list[dict[str, Any]] = []

    def look() -> None:
        text = driver.redis.get(names.query_heartbeat(TOPIC))
        beats.append(json.loads(text) if text else {})

    driver.play(driver.all_begun, look)
    assert (beats[0]["mode"], beats[0]["partitions"]) == ("realtime", 2)
    assert driver.redis.get(names.query_heartbeat(TOPIC)) is None  # stopped


def test_tasks_of_an_earlier_query_do_not_count(driver):
    driver.all_begun()
    driver.redis.hset(names.query_progress(TOPIC), "0", 7)
    driver.play(lambda: None)
    assert driver.said[0] is False
    assert driver.redis.hgetall(names.query_progress(TOPIC)) == {"0": "7"}


def test_without_slots_a_topic_waits_and_says_for_what(driver):
    driver.sessions.free = 7
    driver.play(driver.all_begun, lambda: None)
    assert [q.topic for q in driver.sessions.started] == [names.EXCHANGE]
    assert driver.said == (False, f"no task slots for {TOPIC}: set PENSTOCK_SPARK_SLOTS")


def test_a_topic_that_is_not_made_yet_is_not_read(driver):
    driver.admin.there[TOPIC] = 1  # one partition of two

    def make() -> None:
        assert [q.topic for q in driver.sessions.started] == [names.EXCHANGE]
        driver.admin.there[TOPIC] = 2

    driver.play(make, lambda: None)
    assert driver.query().mode == "realtime"


def test_a_long_backlog_is_caught_up_in_batches_first(driver, monkeypatch):
    monkeypatch.setattr(hand_over, "mean_size", lambda *given: 1000.0)
    driver.admin.ends = {(TOPIC, 0): 10**6}
    driver.clock.advance(10)
    driver.supervisor._existing = driver.admin.topics()

    def caught_up() -> None:
        assert (driver.query().mode, driver.query().at_once > CAUTIOUS) == ("microbatch", True)
        driver.redis.hset(names.query_progress(TOPIC), "0", 10**6)
        driver.query().end()

    driver.play(caught_up, lambda: None)
    assert [q.mode for q in driver.sessions.started if q.topic == TOPIC] == [
        "microbatch",
        "realtime",
    ]
    assert "catching_up" not in driver.redis.hgetall(names.query_progress(TOPIC))


def test_a_catch_up_whose_driver_died_goes_on_with_few_at_once(driver):
    driver.admin.ends = {(TOPIC, 0): 10**6}
    driver.clock.advance(10)
    driver.supervisor._existing = driver.admin.topics()
    driver.redis.hset(names.query_progress(TOPIC), "catching_up", "elsewhere")
    driver.play()
    assert (driver.query().mode, driver.query().at_once) == ("microbatch", CAUTIOUS)


# -------------------------------------------------------------------- ending


def test_a_query_that_fails_is_started_again_after_a_pause(driver):
    def fail() -> None:
        driver.query().end("boom")

    def not_yet() -> None:
        assert len([q for q in driver.sessions.started if q.topic == TOPIC]) == 1
        driver.clock.advance(0.6)

    driver.play(driver.all_begun, fail, not_yet, lambda: None)
    assert len([q for q in driver.sessions.started if q.topic == TOPIC]) == 2
    assert driver.metric("penstock_query_failures_total") == 1


def test_a_query_that_cannot_start_has_failed(driver):
    driver.sessions.refuses = True

    def allow() -> None:
        assert driver.metric("penstock_query_failures_total") == 1
        driver.sessions.refuses = False
        driver.clock.advance(0.6)

    driver.play(allow, lambda: None)
    assert {q.topic for q in driver.sessions.started} == {names.EXCHANGE, TOPIC}


def test_a_query_begins_where_the_state_is_and_not_where_a_checkpoint_says(driver):
    checkpoint = Path(driver.supervisor._settings.checkpoint(TOPIC, 5))
    checkpoint.mkdir(parents=True)
    state = Path(state_directory(driver.supervisor._settings, TOPIC, 5, 1))
    state.mkdir(parents=True)
    for position in (3, 7):
        (state / file_name(position, full=True)).touch()
    driver.play()
    assert driver.query().first == {0: EARLIEST, 1: 7}
    assert not checkpoint.exists()


def test_the_jvm_hears_how_far_the_state_is(driver):
    state = Path(state_directory(driver.supervisor._settings, TOPIC, 5, 0))
    state.mkdir(parents=True)

    def save() -> None:
        (state / file_name(11, full=False)).touch()
        driver.redis.hset(names.query_progress(TOPIC), "0", 11)
        driver.clock.advance(3)

    def rest() -> None:
        assert driver.sessions.positions == {TOPIC: {0: 11, 1: EARLIEST}}
        driver.sessions.positions = {}
        driver.clock.advance(3)

    driver.play(driver.all_begun, save, rest, lambda: None)
    assert driver.sessions.positions == {}  # of topics at rest it hears nothing


def test_the_query_of_a_dropped_topic_ends_and_leaves_nothing(driver, tmp_path):
    state = tmp_path / "state" / "5"
    state.mkdir(parents=True)

    def drop() -> None:
        driver.reader.remove(1)
        driver.reader.remove(5)

    driver.play(driver.all_begun, drop, lambda: None)
    assert driver.query().stopped
    assert not state.exists()
    assert driver.redis.hgetall(names.query_progress(TOPIC)) == {}


def test_a_task_whose_worker_has_died_here_is_tried_again_once(driver):
    here = {"host": socket.gethostname(), "pid": 2**22 + 1}
    driver.play(lambda: driver.tasks(TOPIC, **here), lambda: None, lambda: None)
    assert driver.sessions.retried == [0, 1]


def test_of_other_machines_spark_hears_by_itself(driver):
    driver.play(lambda: driver.tasks(TOPIC, host="elsewhere", pid=2**22 + 1), lambda: None)
    assert driver.sessions.retried == []


def test_epochs_are_counted(driver):
    driver.ended = [TOPIC]
    driver.play(lambda: None, driver.later(2), driver.later(1))
    assert driver.metric("penstock_epochs_total") == 2


# -------------------------------------------------------------------- trouble and safe mode


def test_without_redis_or_kafka_the_jobs_go_on(driver):
    def away() -> None:
        driver.redis.answers = False

    def back() -> None:
        assert driver.said == (False, "Redis is away")
        driver.redis.answers = True

    driver.play(driver.all_begun, away, back, lambda: None)
    assert driver.said == (True, "")


def test_in_safe_mode_nothing_runs_and_drops_are_noted(tmp_path):
    driver = _Driver(tmp_path, safe_mode=True)
    driver.reader.put(stream())
    driver.play(lambda: driver.reader.remove(7))
    assert driver.sessions.started == []
    assert driver.said == (True, "safe mode: no stream runs")
    assert driver.redis.get(names.safe_mode()) is not None
    assert driver.redis.sets[names.safe_mode_drops()] == {"7"}


def test_otherwise_safe_mode_is_over(driver):
    driver.redis.set(names.safe_mode(), "")
    driver.play()
    assert driver.redis.get(names.safe_mode()) is None
    driver.reader.put(stream())
    driver.reader.remove(7)
    assert not driver.redis.sets[names.safe_mode_drops()]


# -------------------------------------------------------------------- rest

_IDLE = 60.0


@pytest.fixture
def idle(tmp_path: Path) -> _Driver:
    """A supervisor that lets topics rest."""
    driver = _Driver(tmp_path, idle_seconds=_IDLE)
    driver.clock.advance(1000)
    return driver


def _started(driver: _Driver, topic: str = TOPIC) -> int:
    return len([q for q in driver.sessions.started if q.topic == topic])


def _write(driver: _Driver, end: int, topic: str = TOPIC) -> None:
    driver.admin.ends[topic, 0] = end


def _save(driver: _Driver, position: int, topic_id: int = 5) -> None:
    saved = {"0": position, names.TOPIC_ID: topic_id}
    driver.redis.hset(names.query_progress(TOPIC), mapping=saved)


def test_a_topic_without_records_is_minded_without_a_query(idle):
    idle.play()
    assert idle.sessions.started == []
    assert idle.said == (True, "")
    beat = json.loads(idle.redis.get(names.query_heartbeat(TOPIC)))
    assert (beat["mode"], beat["lag"]) == ("rest", 0)


def test_a_topic_with_ticks_is_read_always(idle):
    idle.reader.put(stream(trigger="max_delay"))
    idle.play(idle.all_begun, idle.later(2 * _IDLE), lambda: None)
    assert (_started(idle), _started(idle, names.EXCHANGE)) == (1, 0)
    assert TOPIC not in idle.watch.watched


def test_a_record_wakes_a_topic_and_quiet_lets_it_rest_again(idle):
    def come() -> None:
        assert idle.watch.watched == {names.EXCHANGE: (0,) * _EXCHANGE, TOPIC: (0, 0)}
        _write(idle, 1)
        idle.watch.wake(TOPIC)

    def read() -> None:
        assert idle.query().mode == "realtime"
        assert idle.said == (True, "")  # it is on its way
        idle.tasks(TOPIC)
        _save(idle, 1)
        idle.clock.advance(2)

    def not_yet() -> None:
        assert not idle.query().stopped
        assert idle.sessions.given_back == 0

    def asleep() -> None:
        assert idle.query().stopped
        assert idle.watch.watched[TOPIC] == (1, 0)
        assert '"rest"' in idle.redis.get(names.query_heartbeat(TOPIC))
        assert idle.sessions.given_back == 0
        idle.clock.advance(5)

    def gives_back() -> None:
        assert idle.sessions.given_back == 1
        idle.clock.advance(40)

    def once_more() -> None:
        assert idle.sessions.given_back == 1
        idle.clock.advance(20)

    def not_a_third_time() -> None:
        assert idle.sessions.given_back == 2
        idle.clock.advance(300)

    def end() -> None:
        assert idle.sessions.given_back == 2

    idle.play(
        come,
        read,
        idle.later(_IDLE - 1),
        not_yet,
        idle.later(2),
        lambda: None,
        asleep,
        lambda: None,
        gives_back,
        lambda: None,
        once_more,
        lambda: None,
        not_a_third_time,
        end,
        lambda: None,
    )
    assert _started(idle) == 1


def test_a_stream_that_is_made_wakes_its_topic_before_the_watch_does(idle):
    def make() -> None:
        assert TOPIC in idle.watch.watched
        idle.reader.put(stream())

    def woken() -> None:
        assert TOPIC not in idle.watch.watched
        assert _started(idle) == 1

    idle.play(make, woken, lambda: None)


def test_what_is_not_saved_is_not_at_rest(idle):
    _write(idle, 5)
    _save(idle, 4)
    idle.play(idle.all_begun, idle.later(2 * _IDLE), idle.later(2 * _IDLE), lambda: None)
    assert _started(idle) == 1
    assert TOPIC not in idle.watch.watched


def test_what_was_said_of_an_earlier_topic_of_the_name_does_not_count(idle):
    _write(idle, 5)
    _save(idle, 5, topic_id=4)
    idle.play()
    assert _started(idle) == 1
    assert "0" not in idle.redis.hgetall(names.query_progress(TOPIC))


def test_all_that_is_saved_already_rests_from_the_start(idle):
    _write(idle, 5)
    _save(idle, 5)
    idle.play()
    assert _started(idle) == 0


def test_a_record_that_the_watch_has_missed_is_found(idle):
    idle.play(lambda: _write(idle, 1), idle.later(61), lambda: None)
    assert _started(idle) == 1


def test_a_topic_at_rest_that_is_dropped_leaves_nothing(idle, tmp_path):
    state = tmp_path / "state" / "5"
    state.mkdir(parents=True)

    def drop() -> None:
        idle.reader.remove(1)
        idle.reader.remove(5)

    def dropped() -> None:
        assert list(idle.watch.watched) == [names.EXCHANGE]
        assert not idle.redis.exists(names.query_heartbeat(TOPIC))

    idle.play(drop, dropped, lambda: None)
    assert not state.exists()


def test_who_waits_for_slots_gets_those_of_the_quiet(idle):
    idle.sessions.free = 2 + 2  # one topic, and two to spare
    idle.reader.put(database(id=6, name="other"))
    idle.admin.there["in.other"] = 2
    idle.admin.ends = {(TOPIC, 0): 1, ("in.other", 0): 1}

    def first() -> None:
        assert (_started(idle), _started(idle, "in.other")) == (1, 0)
        _save(idle, 1)
        idle.tasks(TOPIC)
        idle.clock.advance(2)

    idle.play(first, idle.later(3), idle.later(3), idle.later(3), lambda: None)
    assert idle.query().stopped
    assert _started(idle, "in.other") == 1


def test_who_waits_for_slots_gets_them_when_a_turn_is_over(idle):
    idle.sessions.free = 2 + 2
    idle.reader.put(database(id=6, name="other"))
    idle.admin.there["in.other"] = 2
    idle.admin.ends = {(TOPIC, 0): 1, ("in.other", 0): 1}
    idle.play(idle.later(10), idle.later(11), lambda: None, idle.later(21), lambda: None, int, int)
    assert [q.topic for q in idle.sessions.started] == [TOPIC, "in.other", TOPIC]


def test_few_queries_start_at_once(idle, monkeypatch):
    monkeypatch.setattr(supervisor, "_STARTS_AT_ONCE", 1)
    idle.admin.ends = {(TOPIC, 0): 1, (names.EXCHANGE, 0): 1}

    def first() -> None:
        assert [q.topic for q in idle.sessions.started] == [names.EXCHANGE]
        idle.tasks(names.EXCHANGE)

    idle.play(first, lambda: None, lambda: None)
    assert _started(idle) == 1


def test_a_new_topic_is_minded_before_queries_start_for_long(idle, monkeypatch):
    idle.reader.put(database(id=6, name="other"))
    idle.admin.there["in.other"] = 2
    idle.admin.ends = {(TOPIC, 0): 1, (names.EXCHANGE, 0): 1}
    start = idle.sessions.query

    def query(*args: Any) -> _Query:
        assert idle.redis.get(names.query_heartbeat("in.other")), "it is at rest, and that is said"
        idle.clock.advance(1)
        return start(*args)

    idle.sessions.query = query
    monkeypatch.setattr(supervisor, "_STARTING_SECONDS", 0.5)
    begun: list[int] = []

    def look() -> None:
        begun.append(len(idle.sessions.started))

    idle.play(look, look)
    assert begun == [1, 2], "one a round: the first took longer than a round may start queries"


@pytest.mark.parametrize("rests", [True, False])
def test_a_database_is_minded_as_soon_as_it_is_made_where_topics_rest(
    driver, idle, rests: bool
) -> None:
    one = idle if rests else driver
    one.reader.put(database(id=6, name="other"))
    beat = one.redis.get(names.query_heartbeat("in.other"))
    assert (beat is not None) == rests, "before any round of the driver"
    assert not rests or json.loads(beat)["mode"] == "rest"


def test_a_database_dropped_before_any_round_has_seen_it_is_minded_no_more(idle) -> None:
    def come_and_go() -> None:
        idle.reader.put(database(id=6, name="other"))
        idle.reader.remove(6)
        assert idle.redis.exists(names.query_heartbeat("in.other"))

    idle.play(come_and_go, lambda: None, lambda: None)
    assert not idle.redis.exists(names.query_heartbeat("in.other"))
    assert idle.redis.exists(names.query_heartbeat(TOPIC))


def test_a_database_made_again_before_any_round_stays_minded(idle) -> None:
    def come_and_go() -> None:
        idle.reader.put(database(id=6, name="other"))
        idle.reader.remove(6)
        idle.reader.put(database(id=8, name="other"))

    def look() -> None:
        assert "in.other" in idle.watch.watched
        assert idle.redis.exists(names.query_heartbeat("in.other"))

    idle.admin.there["in.other"] = 2
    idle.play(come_and_go, look, look, look)

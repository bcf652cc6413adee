"""From the log to tails and Redis: dead letters, chores between reads, and the thread of it all."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from penstock import names
from penstock.catalog.model import Database, Move
from penstock.errors import BusError
from penstock.records import DeadLetter, decode
from penstock.repartition import progress
from penstock.storage import segments
from penstock.storage.segments import Position
from services.store import dead_letters, housekeeping, intake, splitting
from services.store.dead_letters import DeadLetters
from services.store.housekeeping import Housekeeping
from services.store.intake import LogIntake
from services.store.latest import LatestRows
from services.store.live_rows import live_rows
from services.store.moving import Moving
from services.store.redis_reports import RedisReports
from services.store.retention import Retention
from services.store.tail_flusher import TailFlusher
from tests.unit.services.store.kit import (
    DATABASE,
    NOW_MS,
    PLAIN,
    STABLE,
    TOPIC,
    MemoryStore,
    frame_of,
    record,
)

ROW = ("plain", NOW_MS, 1, "a")


# -------------------------------------------------------------------- dead letters


def test_a_record_that_cannot_be_used_is_sent_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore(tmp_path)
    monkeypatch.setattr(dead_letters, "Publisher", lambda *_, **__: store.log)
    dead = DeadLetters("kafka:9092")
    store.log.append(TOPIC, b"first")
    store.log.append(TOPIC, b"junk")
    dead.bury(store.log.batch(TOPIC), 1, "E_MALFORMED", "it is junk")
    (value,) = store.log.values(names.DEAD_LETTER)
    letter = decode(DeadLetter, value)
    assert (letter.topic, letter.partition, letter.offset) == (TOPIC, 0, 1)
    assert (letter.code, letter.reason) == ("E_MALFORMED", "it is junk")
    store.log.refusal = BusError("Kafka is away")
    dead.close()


# -------------------------------------------------------------------- chores


class Chores(MemoryStore):
    def __init__(self, directory: Path, *entries: Any) -> None:
        super().__init__(directory, *entries)
        self.settings = self.settings.model_copy(update={"sweep_seconds": 0.001})
        self.latest = LatestRows(self.redis)
        self.flusher = TailFlusher(self.settings, self.reader, self.partitions)
        self.chores = Housekeeping(
            self.settings,
            self.reader,
            self.partitions,
            self.log,
            self.redis,
            self.latest,
            RedisReports(),
            self.flusher,
        )

    def last(self) -> dict[str, str]:
        return self.memory_redis.hashes[names.last_row("d", "plain")]


@pytest.fixture
def chores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Chores:
    monkeypatch.setattr(housekeeping, "_LATEST_SECONDS", 0.0)
    return Chores(tmp_path)


def test_latest_rows_go_to_redis(chores: Chores) -> None:
    chores.latest.note(PLAIN, frame_of(PLAIN, [ROW], 0))
    chores.chores.step()
    assert '"v":1' in chores.last()["plain"]


def test_sizes_of_tables_go_to_redis(chores: Chores) -> None:
    chores.put(PLAIN, ROW)
    chores.chores.step()
    chores.flusher.close()
    assert '"tail_rows": 1' in chores.memory_redis.hashes[names.table_sizes()][str(PLAIN.id)]


def test_a_sweep_has_sizes_looked_at_again(chores: Chores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "_SIZES_SECONDS", 0.0)
    chores.put(PLAIN, ROW)
    chores.flush()
    files = Path(segments.directory(chores.partitions.root, PLAIN.id, 0, TOPIC))
    told = chores.memory_redis.hashes

    def sweep(_: Retention) -> None:
        assert '"files": 1' in told[names.table_sizes()][str(PLAIN.id)]
        for file in files.iterdir():
            file.unlink()

    monkeypatch.setattr(Retention, "sweep", sweep)
    for _ in range(2):
        chores.chores.step()
        chores.flusher.worker.submit(lambda: None).result()  # both chores are done
    chores.flusher.close()
    assert '"files": 0' in told[names.table_sizes()][str(PLAIN.id)]


def test_latest_rows_wait_for_redis(chores: Chores) -> None:
    chores.latest.note(PLAIN, frame_of(PLAIN, [ROW], 0))
    chores.memory_redis.down = True
    chores.chores.step()
    chores.memory_redis.down = False
    assert not chores.last()
    chores.chores.finish()
    assert '"v":1' in chores.last()["plain"]


def test_what_was_dropped_is_forgotten(chores: Chores) -> None:
    chores.latest.note(PLAIN, frame_of(PLAIN, [ROW], 0))
    chores.chores.step()
    assert chores.latest.tables() == {PLAIN.id}
    chores.catalog.remove(PLAIN.id)
    chores.chores.step()
    assert chores.latest.tables() == set()


def test_sweeps_run_on_the_flushing_thread_one_at_a_time(
    chores: Chores, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()
    go_on = threading.Event()
    threads: list[str] = []

    def sweep(self: object) -> None:
        threads.append(threading.current_thread().name)
        begun.set()
        go_on.wait(10)

    monkeypatch.setattr("services.store.retention.Retention.sweep", sweep)
    monkeypatch.setattr(time, "monotonic", lambda start=time.monotonic: start() + 100)
    chores.chores.step()
    assert begun.wait(10)
    chores.chores.step()
    go_on.set()
    chores.flusher.close()
    assert len(threads) == 1 and threads[0].startswith("flush")


# -------------------------------------------------------------------- more partitions


class Worker:
    """Does what it is given when a test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[None], Callable[[], None]]] = []

    def submit(self, work: Callable[..., None], *args: Any) -> Future[None]:
        future: Future[None] = Future()
        self.waiting.append((future, lambda: work(*args)))
        return future

    def run(self) -> None:
        for future, work in self.waiting:
            try:
                work()
                future.set_result(None)
            except OSError as error:
                future.set_exception(error)
        self.waiting.clear()


class Moved(MemoryStore):
    def __init__(self, directory: Path, *ended: int) -> None:
        self.database = Database(1, "d", partitions=1, move=Move(4, True, ended))
        super().__init__(directory, self.database, PLAIN, STABLE)
        self.worker: Any = Worker()
        self.moving = Moving(self.reader, self.partitions, self.redis, self.worker)
        self.cut: list[tuple[str, int]] = []

    def step(self) -> None:
        self.moving.step(lambda topic, partition: self.cut.append((topic, partition)))

    def said(self) -> dict[str, str]:
        return self.memory_redis.hashes[progress.key(self.database)]

    def new_positions(self) -> list[int]:
        return [
            Position.load(self.partitions.root, self.database.next_topic, p, 1).next
            for p in range(4)
        ]


def test_segments_are_split_while_rows_still_flow(tmp_path: Path) -> None:
    moved = Moved(tmp_path)
    moved.put(PLAIN, ROW)
    moved.flush()
    moved.step()
    moved.step()
    assert len(moved.worker.waiting) == 1, "once"
    moved.worker.run()
    assert moved.said() == {}
    moved.step()
    assert moved.said() == {"store": "split"}
    assert moved.new_positions() == [0, 0, 0, 0], "nothing is committed yet"


def test_at_the_end_the_last_rows_are_flushed_first(tmp_path: Path) -> None:
    moved = Moved(tmp_path, 1)
    moved.put(PLAIN, ROW)
    moved.flush()
    moved.put(PLAIN, ("plain", NOW_MS + 1, 2, "b"))
    moved.step()
    assert (moved.cut, moved.worker.waiting) == ([(TOPIC, 0)], [])
    moved.flush()
    moved.step()
    moved.worker.run()
    moved.step()
    assert moved.said() == {"store": "moved"}
    assert moved.new_positions() == [2, 2, 2, 2]


def test_a_split_that_fails_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = Moved(tmp_path)
    tried: list[int] = []

    def fail(*_: object) -> int:
        tried.append(1)
        raise OSError("the disk is full")

    monkeypatch.setattr(splitting, "split", fail)
    moved.step()
    moved.worker.run()
    moved.step()
    moved.worker.run()
    assert len(tried) == 2 and moved.said() == {}


def test_redis_is_told_when_it_is_there(tmp_path: Path) -> None:
    moved = Moved(tmp_path)
    moved.step()
    moved.worker.run()
    moved.memory_redis.down = True
    moved.step()
    moved.memory_redis.down = False
    assert moved.said() == {}
    moved.step()
    assert moved.said() == {"store": "split"}


def test_databases_that_do_not_move_are_left_alone(tmp_path: Path) -> None:
    store = MemoryStore(tmp_path, DATABASE, PLAIN)
    worker: Any = Worker()
    Moving(store.reader, store.partitions, store.redis, worker).step(lambda *_: None)
    assert worker.waiting == []


# -------------------------------------------------------------------- the thread


class Reading(MemoryStore):
    """The whole intake over one log in memory."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(directory)
        self.catalog.revision = 1
        self.log.partitions[TOPIC] = 1
        self.counted: list[int] = []
        self.read = threading.Event()
        monkeypatch.setattr(intake, "Reader", self._reader)
        monkeypatch.setattr(intake, "Admin", lambda *_, **__: self.log)
        monkeypatch.setattr(dead_letters, "Publisher", lambda *_, **__: self.log)
        self.intake = LogIntake(
            self.settings, self.reader, self.partitions, self.redis, self._count
        )
        # a query waits: the thread does not rest between reads
        self.partitions.awaited.set()

    def _reader(self, bootstrap: str, offsets: Any, **more: Any) -> Any:
        return self.log.reader(bootstrap, offsets)

    def _count(self, rows: int, seconds: float) -> None:
        self.counted.append(rows)
        self.read.set()


def test_what_is_in_the_log_comes_into_tails_and_is_flushed_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = Reading(tmp_path, monkeypatch)
    reading.log.append(TOPIC, record(PLAIN, ROW, ("plain", NOW_MS + 1, 2, "b")))
    reading.log.append(TOPIC, b"\0\0\0\0\x6bjunk")
    reading.intake.start()
    assert reading.intake.caught_up.wait(10)
    assert reading.partitions.open(TOPIC, 0).wait_for(1, 10)
    assert reading.counted == [2]
    reading.intake.stop()
    assert reading.intake.failed is None and not reading.intake.is_alive()
    assert Position.load(reading.partitions.root, TOPIC, 0, 1).next == 2
    assert live_rows(reading.partitions, PLAIN, None)["v"].to_list() == [1, 2]
    assert len(reading.log.values(names.DEAD_LETTER)) == 1
    last = reading.memory_redis.hashes[names.last_row("d", "plain")]
    assert '"v":2' in last["plain"]


def test_a_thread_that_cannot_go_on_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = Reading(tmp_path, monkeypatch)
    reading.log.refusal = BusError("Kafka is away")
    reading.intake.start()
    reading.intake.join(10)
    assert isinstance(reading.intake.failed, BusError)

"""The catalog's reader refuses records that somebody forged: the entry known before stays, and the
reader goes on.
"""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from prometheus_client.registry import CollectorRegistry

from penstock import names
from penstock.bus import BEGINNING, REST_MS, Batch
from penstock.catalog import entries
from penstock.catalog import reader as reader_module
from penstock.catalog.model import Database, Entry, User
from penstock.catalog.reader import CatalogReader
from penstock.errors import BusError
from penstock.records import CatalogRecord, encode

ANN = User(5, "ann", "hash-of-ann")
HOME = Database(6, "home")
Record = tuple[bytes, bytes | None]


class Log:
    """The catalog's log, as a reader gets it batch by batch."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.reader = CatalogReader("nowhere:1", client_id="test", registry=self.registry)
        self._end = 0

    def append(self, *records: Record) -> None:
        self.reader._take([batch(self._end, *records)], self._end + len(records))
        self._end += len(records)

    @property
    def refused(self) -> float:
        return self.registry.get_sample_value("penstock_catalog_refused_records_total") or 0.0


def batch(begin: int, *records: Record) -> Batch:
    offsets = np.arange(begin, begin + len(records))
    keys = [k for k, _ in records]
    values = [v for _, v in records]
    return Batch(names.CATALOG, 0, offsets, np.zeros(len(records), np.int64), keys, values)


def put(entry: Entry, epoch: int = 3) -> Record:
    return entries.key_of(entry), entries.to_value(entry, epoch)


def leads(epoch: int, next_id: int = 10) -> Record:
    return entries.LEADER_KEY, entries.leader_value(epoch, next_id)


@pytest.fixture
def log() -> Log:
    made = Log()
    made.append(leads(3), put(ANN), put(HOME))
    assert made.refused == 0
    return made


def renamed(entry: Entry, **fields: object) -> bytes:
    """A record whose envelope says something else than its body."""
    true = entries.read(entries.to_value(entry, 3))
    said = {
        "kind": true.kind,
        "id": true.id,
        "name": true.name,
        "epoch": true.epoch,
        "body": true.body,
        **fields,
    }
    return encode(CatalogRecord(**said))  # type: ignore[arg-type]


EVIL = User(5, "ann", "hash-of-mallory")
FORGED: dict[str, Record] = {
    "another id in the key": (b"user/7", entries.to_value(EVIL, 3)),
    "another kind in the key": (b"table/5", entries.to_value(EVIL, 3)),
    "no key": (b"", entries.to_value(EVIL, 3)),
    "a key that only looks the same": (b"user/05", entries.to_value(EVIL, 3)),
    "another id in the body": (b"user/7", renamed(EVIL, id=7)),
    "another name in the body": (b"user/5", renamed(EVIL, name="bob")),
    "the id of an entry of another kind": put(User(6, "mallory", "hash")),
    "the leader's key with an entry": (entries.LEADER_KEY, entries.to_value(EVIL, 9)),
    "an entry under a leader's words": (b"user/5", entries.leader_value(3, 10)),
    "an older epoch": put(EVIL, 2),
    "an epoch that never led": put(EVIL, 4),
    "an epoch far away": put(EVIL, 2**40),
    "an older leader": leads(2),
    "a leader without a number": (entries.LEADER_KEY, renamed(ANN, kind="leader", id=0, body="x")),
    "the end of another kind": (b"table/5", None),
    "no record at all": (b"user/5", b"\x00\xff"),
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED.keys())
def test_a_forged_record_changes_nothing(log: Log, forged: Record) -> None:
    log.append(forged)
    catalog = log.reader.catalog
    assert log.refused == 1
    assert catalog.user("ann") == ANN and catalog.database("home") == HOME
    assert catalog.epoch == 3 and catalog.user("mallory") is None
    log.append(put(User(5, "ann", "new")), leads(3))
    assert catalog.user("ann") == User(5, "ann", "new"), "the true leader writes on"


def test_what_the_leader_writes_is_taken(log: Log) -> None:
    log.append(leads(4), put(User(7, "bob", "hash"), 4), (b"user/5", None))
    assert log.reader.catalog.user("bob") is not None and log.reader.catalog.user("ann") is None
    assert log.refused == 0


def test_a_compacted_log_is_read_without_its_older_leaders() -> None:
    log = Log()
    log.append(put(ANN, 2), put(HOME, 3), leads(5))
    assert log.refused == 0 and log.reader.catalog.user("ann") == ANN


def test_the_true_records_are_known_to_be_missing(log: Log) -> None:
    log.append((b"user/5", renamed(EVIL, name="bob")))
    assert log.reader.spoiled == {b"user/5"}
    log.append(put(ANN))
    assert log.reader.spoiled == set()


class _Bus:
    """Readers of a log that holds three records and the mark of their transaction."""

    def __init__(self) -> None:
        #: where each one began, and how long the broker might hold its questions
        self.opened: list[tuple[int, int]] = []
        self.second = threading.Event()
        self.written: list[list[Batch]] = []

    def reader(self, bootstrap: str, start: dict[Any, int], **given: Any) -> Any:
        self.opened.append((start[names.CATALOG, 0], given["max_wait_ms"]))
        is_first = len(self.opened) == 1
        if is_first:
            answers = [
                ([batch(0, leads(3), put(ANN), put(HOME))], {}),
                ([], {(names.CATALOG, 0): 4}),
            ]
        else:
            self.second.set()
            answers = []
        return _Answers(answers, self.written)


class _Answers:
    def __init__(self, answers: list[Any], written: list[list[Batch]]) -> None:
        self._answers = answers
        self._written = written
        self.at_end: dict[tuple[str, int], int] = {}

    def __enter__(self) -> _Answers:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self, timeout: float) -> list[Batch]:
        if self._answers:
            found, self.at_end = self._answers.pop(0)
            return found  # type: ignore[no-any-return]
        threading.Event().wait(0.01)
        self.at_end = {}
        return self._written.pop(0) if self._written else []


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> _Bus:
    made = _Bus()
    monkeypatch.setattr(reader_module, "Reader", made.reader)
    return made


def test_a_log_read_to_its_end_is_asked_for_seldom(bus: _Bus) -> None:
    with CatalogReader("nowhere:1", client_id="test") as following:
        assert following.catalog.user("ann") == ANN
        assert bus.second.wait(5)
        (begin, short), (goes_on, long) = bus.opened
        assert (begin, goes_on) == (BEGINNING, 3), "behind the last record that was applied"
        assert short < 100 and long == REST_MS
        bus.written.append([batch(4, put(User(7, "bob", "hash")))])
        assert following.wait_for(5, timeout=5).user("bob") is not None, "its leader is known"
    assert len(bus.opened) == 2


@pytest.mark.parametrize(("end", "reached"), [(5, True), (6, True), (7, False)])
def test_the_mark_of_the_last_transaction_is_not_waited_for(
    bus: _Bus, end: int, reached: bool
) -> None:
    with CatalogReader("nowhere:1", client_id="test") as following:
        following.__dict__["_admin"] = SimpleNamespace(
            end_offsets=lambda partitions, committed: dict.fromkeys(partitions, end)
        )
        bus.written.append([batch(4, put(User(7, "bob", "hash")))])
        following.wait_for(5, timeout=5)
        if reached:
            assert following.catch_up(timeout=0.2).revision == 5
        else:
            with pytest.raises(BusError):
                following.catch_up(timeout=0.2)

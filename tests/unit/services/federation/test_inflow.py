"""Messages of another Kafka into one of our tables: each one row, exactly once."""

from __future__ import annotations

import json
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from penstock import foreign, names
from penstock.catalog.model import FOREIGN, Table, TableVersion
from penstock.errors import BusError, PenstockError, RemoteError, SchemaError
from penstock.foreign import MESSAGE_ID, message_id
from penstock.outbound.reach import Reach
from penstock.records import DeadLetter, decode
from penstock.rows.versions import DELETE, UPSERT
from penstock.sql.plan import Column
from penstock.types import ColumnType
from services.federation import inflow
from services.federation.inflow import Inflow
from tests.unit.services.federation.kit import DATABASE, NOW_MS, Deployment
from tests.unit.services.kit import MemoryLog

COLUMNS = (
    Column("ts", ColumnType("TIMESTAMP")),
    Column(MESSAGE_ID, ColumnType("BIGINT")),
    Column("v", ColumnType("INT")),
)


def table(*, changes: bool = False, **begin: int) -> Table:
    topic = foreign.at(
        foreign.Topic("k:9092", "t", "json", maker="ann", changes=changes),
        {int(p[1:]): o for p, o in begin.items()},
    )
    return Table(
        60,
        "d",
        "inflow",
        "plain",
        "in.d",
        1,
        "ms",
        (TableVersion(160, COLUMNS),),
        key_column=MESSAGE_ID,
        options={FOREIGN: topic.option()},
    )


class Appender:
    def __init__(self, owner: Here, partition: int) -> None:
        self.owner = owner
        self.partition = partition

    def append(self, rows: pa.Table, acked: Any) -> Future[int]:
        if self.owner.refusal is not None:
            raise self.owner.refusal
        self.owner.rows += [(self.partition, row) for row in rows.to_pylist()]
        done: Future[int] = Future()
        if self.owner.failure is not None:
            done.set_exception(self.owner.failure)
        else:
            done.set_result(rows.num_rows)
        return done


class Here(Deployment):
    """A table, the other Kafka, and what is known of it here already."""

    def __init__(
        self, directory: Path, monkeypatch: pytest.MonkeyPatch, made: Table | None = None
    ) -> None:
        self.table = made or table()
        super().__init__(directory, DATABASE, self.table)
        self.other = MemoryLog()
        self.other.partitions["t"] = 1
        self.places: dict[int, tuple[int, int]] = {}
        self.rows: list[tuple[int, dict[str, Any]]] = []
        self.opened: list[str] = []
        self.refusal: PenstockError | None = None
        self.failure: PenstockError | None = None
        self.checked = 0
        self.reached: list[str] = []
        brokers = SimpleNamespace(bootstrap="1.2.3.4:9092", admin=self.other, check=self._check)
        monkeypatch.setattr(foreign, "reach_brokers", lambda *_, **__: brokers)
        monkeypatch.setattr(inflow, "Reader", self._reader)
        appenders: Any = SimpleNamespace(open=self._open)
        outbound: Any = SimpleNamespace(reach=self._reach)
        home: Any = None
        self.inflow = Inflow(
            self.table,
            lambda: self.catalog.table_by_id(60),
            self.settings,
            appenders,
            self.log,
            outbound,
            home,
        )

    def _check(self) -> None:
        self.checked += 1

    def _reach(self, maker: str) -> Reach:
        self.reached.append(maker)
        return Reach()

    def _reader(self, bootstrap: str, offsets: Any, **_: Any) -> Any:
        here = self

        class Reader:
            """Ends the work once everything has been read."""

            def __init__(self) -> None:
                self._reader = here.other.reader(bootstrap, offsets)

            def __enter__(self) -> Reader:
                return self

            def __exit__(self, *_: object) -> None:
                pass

            def add(self, more: Any) -> None:
                self._reader.add(more)

            def read(self, most: int, timeout: float) -> Any:
                found = self._reader.read(most, 0.0)
                if not found:
                    here.inflow.stop()
                return found

        return Reader()

    def _open(self, made: Table, producer: str, owner: int, present: Any) -> Any:
        self.opened.append(producer)
        partition = len(self.opened) - 1
        place = self.places.get(partition)
        return Appender(self, partition), ({} if place is None else {0: place})

    def message(self, partition: int = 0, **fields: Any) -> None:
        self.other.append("t", json.dumps(fields).encode(), None, partition)

    def numbers(self) -> list[tuple[int, Any]]:
        return [(partition, row["v"]) for partition, row in self.rows]

    def letters(self) -> list[DeadLetter]:
        return [decode(DeadLetter, value) for value in self.log.values(names.DEAD_LETTER)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    return Here(tmp_path, monkeypatch)


def test_each_message_is_a_row_with_its_place(here: Here) -> None:
    here.message(ts=NOW_MS, v=1)
    here.message(v=2)
    here.inflow.work()
    (_, first), (_, second) = here.rows
    assert first["ts"] == NOW_MS
    assert second["ts"] is not None, "a message without a time has that of its arrival"
    assert [first[MESSAGE_ID], second[MESSAGE_ID]] == [message_id(0, 0), message_id(0, 1)]
    assert [first["_offset"], second["_offset"]] == [0, 1]
    assert here.opened == [names.foreign_producer(60, 0)]
    report = here.inflow.report
    assert (report.state, report.rows, report.lag, report.error) == ("running", 2, 2, "")
    assert here.reached == ["ann"] and here.checked == 1


def test_each_partition_goes_on_behind_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Here(tmp_path, monkeypatch, table(p0=1, p1=2))
    here.other.partitions["t"] = 3
    here.places = {0: (1, 0)}
    for partition in range(3):
        for number in range(4):
            here.message(partition, v=number)
    here.inflow.work()
    found = sorted(here.numbers())
    assert found == [(0, 2), (0, 3), (1, 2), (1, 3), (2, 0), (2, 1), (2, 2), (2, 3)]


def test_messages_that_somebody_deleted_are_left_out(here: Here) -> None:
    here.places = {0: (0, 0)}
    for number in range(5):
        here.message(v=number)
    here.other.starts["t", 0] = 3
    here.inflow.work()
    assert here.numbers() == [(0, 3), (0, 4)]


def test_a_message_that_cannot_be_read_is_a_dead_letter_and_the_next_go_on(here: Here) -> None:
    here.message(v=1)
    here.other.append("t", b"{no json")
    here.message(v="not a number")
    here.other.append("t", None)
    here.message(v=4)
    here.inflow.work()
    assert here.numbers() == [(0, 1), (0, 4)]
    letters = here.letters()
    assert [(x.topic, x.offset) for x in letters] == [("t", 1), ("t", 2)]
    assert all(x.reason for x in letters)


def test_changes_are_rows_with_an_operation_and_go_on_with_the_last_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Here(tmp_path, monkeypatch, table(changes=True))
    # the table's second column is the key, whatever its name
    first = {"ts": NOW_MS, MESSAGE_ID: 5, "v": 1}
    here.message(op="c", after=first)
    here.message(op="u", before=first, after=first | {"ts": NOW_MS + 1})
    here.message(op="t")
    here.other.append("t", None, json.dumps({"ts": NOW_MS, MESSAGE_ID: 6}).encode())
    here.message(op="d", before=first | {"ts": NOW_MS + 1})
    here.inflow.work()
    found = [(row["_offset"], row["_row"], row["_op"], row["ts"]) for _, row in here.rows]
    assert found == [
        (0, 0, UPSERT, NOW_MS),
        (1, 0, DELETE, NOW_MS),
        (1, 1, UPSERT, NOW_MS + 1),
        (3, 0, DELETE, NOW_MS),
        (4, 0, DELETE, NOW_MS + 1),
    ]
    assert [(x.offset, x.reason) for x in here.letters()] == [
        (2, "this operation of Debezium is not followed: TRUNCATE: delete the rows here, too")
    ]
    again = Here(tmp_path / "again", monkeypatch, table(changes=True))
    again.places = {0: (1, 0)}
    for number in range(3):
        again.message(op="c", after=first | {"v": number})
    again.inflow.work()
    assert again.numbers() == [(0, 1), (0, 2)], "a message may be in our log by half"


def test_a_topic_that_is_not_there(here: Here) -> None:
    here.other.partitions.clear()
    with pytest.raises(BusError) as gone:
        here.inflow.work()
    assert gone.value.code == "E_NO_TOPIC"
    assert here.inflow.passes(gone.value), "it may come"


def test_errors_of_the_other_kafka_keep_its_words_to_themselves(here: Here) -> None:
    here.other.refusal = BusError("cannot", detail="_TRANSPORT: secret words", retryable=True)
    with pytest.raises(BusError) as wrong:
        here.inflow.work()
    assert "secret" not in str(wrong.value)


def test_what_goes_by_itself_and_what_somebody_has_to_see_to(here: Here) -> None:
    assert here.inflow.passes(RemoteError("x"))
    assert here.inflow.passes(BusError("x", retryable=True))
    assert not here.inflow.passes(BusError("x"))
    assert not here.inflow.passes(SchemaError("x"))


def test_a_table_that_was_dropped_ends_the_work(here: Here) -> None:
    here.catalog.remove(60)
    with pytest.raises(SchemaError) as gone:
        here.inflow.work()
    assert gone.value.code == "E_NO_TABLE"


def test_rows_that_no_table_takes_are_dead_letters_but_a_dropped_table_is_not(here: Here) -> None:
    here.message(v=1)
    here.refusal = SchemaError("no", code="E_ROW", detail="too long")
    here.inflow.work()
    assert [x.reason for x in here.letters()] == ["no: too long"]


def test_a_table_that_is_dropped_meanwhile_buries_nothing(here: Here) -> None:
    here.message(v=1)
    here.refusal = SchemaError("the table was dropped", code="E_NO_TABLE")
    with pytest.raises(SchemaError):
        here.inflow.work()
    assert here.letters() == []


def test_our_own_log_that_fails_ends_the_connection(here: Here) -> None:
    here.message(v=1)
    here.failure = BusError("Kafka is away", retryable=True)
    with pytest.raises(BusError):
        here.inflow.work()
    assert here.inflow.report.rows == 0

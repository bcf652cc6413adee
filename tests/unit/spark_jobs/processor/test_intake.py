"""Rows out of records: what can be used, and why the rest cannot."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from penstock import names
from penstock.catalog.model import Database, Table, TableVersion
from penstock.codec import TableCodec, schema_ids
from penstock.records import DeadLetter, decode
from penstock.rows.partition import partition
from penstock.sql.plan import Column, Duration
from penstock.types import ColumnType
from spark_jobs.input import Records
from spark_jobs.processor.intake import Intake, distinct
from tests.unit.spark_jobs.processor_kit import SOURCE, T0, TOPIC, Mesh, record, values_of

_COLUMNS = (Column("ts", ColumnType("TIMESTAMP")), Column("a", ColumnType("INT")))
#: another table of the topic whose records look the same
_TWIN = Table(
    2, "db", "twin", "stable", TOPIC, 1, "ms", (TableVersion(101, _COLUMNS, SOURCE.tags),)
)
_HERE = [n for n in (f"in{i}" for i in range(50)) if partition(n, 4) == 0]
_ELSEWHERE = [n for n in (f"in{i}" for i in range(50)) if partition(n, 4) != 0]


class _Taken:
    """The intake of a scan of partition 0."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.catalog = mesh.worker.catalog.catalog
        self.processor = mesh.processor(TOPIC, 0)
        self.intake = Intake(self.processor)

    def take(self, *values: bytes | None) -> list[tuple[int, list[tuple[object, ...]]]]:
        """Of each table its id and (table, ms behind T0, a, offset, write) of its rows."""
        columns = ["tbname", "ts", "a", "_offset", "_step"]
        return [
            (t.table_id, [(n, ts - T0, *more) for n, ts, *more in t.rows.select(columns).rows()])
            for t in self.intake.take(_records(*values))
        ]

    def letters(self) -> list[DeadLetter]:
        return [decode(DeadLetter, v) for v in values_of(self.mesh.log, names.DEAD_LETTER)]


def _records(*values: bytes | None) -> Records:
    """Records from offset 70 on, which came at T0."""
    offsets = np.arange(70, 70 + len(values))
    times = np.full(len(values), T0)
    return Records(TOPIC, 0, offsets, times, list(values), schema_ids(list(values)))


def _encoded(
    table: Table, *rows: tuple[str, int, int], producer: str | None = None, offset: int = -1
) -> bytes:
    """A record of (tbname, ms behind T0, a)."""
    frame = pl.DataFrame(
        {
            "tbname": [n for n, *_ in rows],
            "ts": [T0 + t for _, t, _ in rows],
            "a": [a for *_, a in rows],
            "g": [0] * len(rows),
        },
        schema_overrides={"a": pl.Int32, "g": pl.Int32},
    )
    [(_, value)] = TableCodec(table).encode_partitioned(
        frame, 1, producer=producer, from_offset=offset, offset=offset
    )
    return value


@pytest.fixture
def taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Taken:
    made = _Taken(Mesh(tmp_path, monkeypatch))
    made.catalog.put(_TWIN)
    return made


def test_schema_ids_in_the_order_in_which_they_came():
    assert distinct(np.array([7])) == [7]
    assert distinct(np.array([5, 5, 5])) == [5]
    assert distinct(np.array([5, 3, 5, 4, 3])) == [5, 3, 4]


# -------------------------------------------------------------------- rows


def test_rows_carry_their_place_and_their_write(taken):
    [(table, rows)] = taken.take(record(("t1", 1, 5, 0)), record(("t2", 2, 6, 0)))
    assert table == SOURCE.id
    assert [row[:4] for row in rows] == [("t1", 1, 5, 70), ("t2", 2, 6, 71)]
    assert rows[0][4] < rows[1][4]  # two writes
    [part] = taken.intake.take(_records(record(("t1", 1, 5, 0))))
    assert set(part.rows.get_column("_now")) == {T0}
    assert part.time == "ts"


def test_rows_of_several_tables_come_table_by_table(taken):
    values = (record(("t1", 1, 5, 0)), _encoded(_TWIN, ("w1", 2, 6)), record(("t1", 3, 7, 0)))
    found = {table: [(r[0], r[3]) for r in rows] for table, rows in taken.take(*values)}
    assert found == {1: [("t1", 70), ("t1", 72)], 2: [("w1", 71)]}


def test_records_of_two_versions_of_a_table_stay_in_order(taken):
    more = (*_COLUMNS, Column("b", ColumnType("INT")))
    grown = replace(SOURCE, versions=(*SOURCE.versions, TableVersion(150, more, SOURCE.tags)))
    old = [record(("t1", n, n, 0)) for n in (0, 2)]
    taken.catalog.put(grown)
    new = _encoded(replace(grown, versions=grown.versions[1:]), ("t1", 1, 1))
    [(_, rows)] = taken.take(old[0], new, old[1])
    assert [(r[1], r[3]) for r in rows] == [(0, 70), (1, 71), (2, 72)]
    assert rows[0][4] < rows[1][4] < rows[2][4]


def test_nothing_is_taken_where_there_are_no_rows(taken):
    codec = TableCodec(SOURCE)
    assert taken.take(codec.empty(producer="p", from_offset=1, offset=1)) == []


def test_what_a_producer_sent_before_does_not_count(taken):
    first = _encoded(SOURCE, ("t1", 1, 5), producer="p", offset=7)
    again = _encoded(SOURCE, ("t1", 1, 5), producer="p", offset=7)
    later = _encoded(SOURCE, ("t1", 2, 6), producer="p", offset=8)
    [(_, rows)] = taken.take(first, again, later)
    assert [r[3] for r in rows] == [70, 72]
    assert taken.processor.positions.seen["p"] == (8, 0)


def test_a_closed_partition_takes_results_only_and_an_ended_one_nothing(taken):
    result = _encoded(SOURCE, ("t1", 1, 5), producer="p", offset=7)
    taken.processor.pending.close(60)
    [(_, rows)] = taken.take(record(("t1", 1, 5, 0)), result)
    assert [r[3] for r in rows] == [71]
    taken.processor.pending.end(65)
    assert taken.take(_encoded(SOURCE, ("t1", 1, 5), producer="p", offset=8)) == []


# -------------------------------------------------------------------- what cannot be used


def test_a_malformed_record_is_buried_and_its_neighbours_are_not(taken):
    torn = record(("t1", 2, 6, 0))[:-4]
    [(_, rows)] = taken.take(record(("t1", 1, 5, 0)), torn, record(("t1", 3, 7, 0)))
    assert [r[3] for r in rows] == [70, 72]
    [letter] = taken.letters()
    assert (letter.code, letter.offset, letter.reader) == ("E_MALFORMED", 71, "scan")
    assert letter.value == torn


def test_records_of_no_table_are_buried_with_what_is_known_of_them(taken):
    assert taken.take(b"plain text", (777).to_bytes(5, "big")) == []
    reasons = {letter.offset: (letter.code, letter.reason) for letter in taken.letters()}
    assert reasons == {
        70: ("E_UNKNOWN_SCHEMA", "not framed: no zero byte and schema id in front"),
        71: ("E_UNKNOWN_SCHEMA", "no table has schema id 777"),
    }


def test_records_of_a_dropped_table_are_passed_over(taken):
    taken.catalog.remove(_TWIN.id)
    assert taken.take(_encoded(_TWIN, ("w1", 2, 6))) == []
    assert taken.letters() == []


def test_rows_of_another_partitions_table_are_buried(taken):
    table = replace(SOURCE, partitions=4)
    taken.catalog.put(table)
    wrong = _ELSEWHERE[0]
    value = _encoded(table, (_HERE[0], 1, 5), (wrong, 2, 6), (_HERE[0], 3, 7))
    [(_, rows)] = taken.take(value)
    assert [r[1] for r in rows] == [1, 3]
    [letter] = taken.letters()
    assert (letter.code, letter.offset, letter.time) == ("E_WRONG_PARTITION", 70, T0)
    assert letter.reason.startswith(f"1 rows: rows of {wrong} belong to partition")
    assert json.loads(letter.value or b"")["a"] == 6


def test_rows_too_far_ahead_of_their_arrival_are_buried(taken):
    taken.catalog.put(Database(5, "db", partitions=1, max_ahead=Duration(1, "m")))
    [(_, rows)] = taken.take(_encoded(SOURCE, ("t1", 60_000, 5), ("t1", 60_001, 6)))
    assert [r[1] for r in rows] == [60_000]
    [letter] = taken.letters()
    assert letter.code == "E_TOO_FAR_AHEAD"
    assert "more than 1m ahead" in letter.reason


def test_bytes_of_a_row_that_is_buried_are_told_in_hex(taken):
    columns = (Column("ts", ColumnType("TIMESTAMP")), Column("b", ColumnType("VARBINARY", 8)))
    table = replace(SOURCE, versions=(TableVersion(100, columns, ()),))
    taken.catalog.put(table)
    taken.catalog.put(Database(5, "db", partitions=1, max_ahead=Duration(1, "m")))
    frame = pl.DataFrame({"tbname": ["t1"], "ts": [T0 + 60_001], "b": [b"\x00\xff"]})
    [(_, value)] = TableCodec(table).encode_partitioned(frame, 1)
    assert taken.intake.take(_records(value)) == []
    [letter] = taken.letters()
    assert letter.code == "E_TOO_FAR_AHEAD"
    assert json.loads(letter.value or b"")["b"] == "00ff"


# -------------------------------------------------------------------- records nobody reads


def test_sound_records_of_many_tables_are_checked_together(taken):
    values = [
        record(("t1", 1, 5, 0)),
        _encoded(_TWIN, ("w1", 2, 6), producer="p", offset=7),
        _encoded(_TWIN, ("w1", 3, 6), producer="p", offset=8),
    ]
    assert taken.intake.check_only(_records(*values))
    assert taken.processor.positions.seen["p"] == (8, 0)
    assert taken.letters() == []


@pytest.mark.parametrize("bad", ["torn", "unknown", "ahead", "misplaced", "closed"])
def test_whatever_may_be_wrong_is_left_to_a_closer_look(taken, bad):
    table = replace(SOURCE, partitions=4)
    taken.catalog.put(table)
    sound = _encoded(table, (_HERE[0], 1, 5), producer="p", offset=7)
    values = {
        "torn": record((_HERE[0], 2, 6, 0))[:-4],
        "unknown": (777).to_bytes(5, "big"),
        "ahead": _encoded(table, (_HERE[0], 10 * 86_400_000, 5)),
        "misplaced": _encoded(table, (_ELSEWHERE[0], 1, 5)),
        "closed": sound,
    }
    if bad == "closed":
        taken.processor.pending.close(60)
    assert not taken.intake.check_only(_records(sound, values[bad]))
    assert taken.letters() == []
    assert "p" not in taken.processor.positions.seen  # nothing is noted of what is not done

"""What a scan sends to the exchange: rows to the partitions of their groups, controls to all."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from penstock import names
from penstock.records import DROPPED, ControlRecord, ExchangeRecord, decode
from penstock.rows.rows import Rows
from spark_jobs.processor import exchange_sender
from spark_jobs.processor.exchange_sender import ExchangeSender
from spark_jobs.processor.group_places import PARTITIONS
from spark_jobs.processor.route import Taken
from tests.unit.spark_jobs.processor_kit import SOURCE, T0, TOPIC, Mesh

_BY_TAG = (
    "CREATE STREAM x INTO p AS SELECT _wstart ws, count(*) n FROM m{0} PARTITION BY g INTERVAL(10a)"
)
_SCAN = "CREATE STREAM s INTO o AS SELECT _wstart ws, count(*) n FROM m PARTITION BY tbname INTERVAL(10a)"


class _Sent:
    """The sender of a scan whose stream 1000 goes through the exchange; 1100 does not."""

    def __init__(self, mesh: Mesh, text: str = _BY_TAG.format("")) -> None:
        self.mesh = mesh
        mesh.stream(1000, text)
        mesh.stream(1100, _SCAN)
        mesh.feed()
        self.processor: Any = mesh.processor(TOPIC, 0)
        self.sender = ExchangeSender(self.processor)
        self.stream = self.processor.streams.by_id[1000]
        self.clear()

    def clear(self) -> None:
        for place in range(PARTITIONS):
            self.mesh.log.records[names.EXCHANGE, place].clear()

    def controls(self, control: ControlRecord) -> list[ControlRecord]:
        """What each partition of the exchange hears of a control at offset 50, in order."""
        self.clear()
        self.sender.control(control, 50)
        return [
            decode(ControlRecord, value)
            for place in range(PARTITIONS)
            for _, value in self.mesh.log.records[names.EXCHANGE, place]
        ]

    def rows(self) -> list[tuple[int, ExchangeRecord, pl.DataFrame]]:
        found = []
        for place in range(PARTITIONS):
            for _, value in self.mesh.log.records[names.EXCHANGE, place]:
                record = decode(ExchangeRecord, value)
                found.append((place, record, pl.read_ipc_stream(io.BytesIO(record.rows))))
        return found


def _taken(*rows: tuple[str, int, int | None], table_id: int = SOURCE.id) -> Taken:
    """Rows of (table, ms behind T0, g), each a write of its own from offset 50 on."""
    frame = pl.DataFrame(
        [(n, 50 + n, T0, 0, name, T0 + t, 1, g) for n, (name, t, g) in enumerate(rows)],
        schema={
            "_step": pl.UInt32,
            "_offset": pl.Int64,
            "_now": pl.Int64,
            "_op": pl.Int8,
            "tbname": pl.String,
            "ts": pl.Int64,
            "a": pl.Int32,
            "g": pl.Int32,
        },
        orient="row",
    )
    return Taken(table_id, "ts", Rows.of_frame(frame))


@pytest.fixture
def mesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mesh:
    return Mesh(tmp_path, monkeypatch)


# -------------------------------------------------------------------- rows


def test_rows_of_a_group_go_to_one_partition(mesh):
    sent = _Sent(mesh)
    taken = _taken(*((f"t{n}", n, n % 7) for n in range(21)))
    sent.sender.rows(sent.stream, [taken], 50, 70)
    places: dict[int, set[int]] = {}
    for place, record, rows in sent.rows():
        assert (record.stream, record.from_offset, record.offset) == (1000, 50, 70)
        assert record.producer == names.exchange_producer(1000, TOPIC, 0)
        for group in rows.get_column("g"):
            places.setdefault(group, set()).add(place)
    assert set(places) == set(range(7))
    assert all(len(found) == 1 for found in places.values())
    assert sum(rows.height for *_, rows in sent.rows()) == 21
    assert sent.stream.stats.rows_in == 21
    assert sent.stream.changed


def test_large_chunks_are_cut_and_the_last_piece_says_so(mesh, monkeypatch):
    sent = _Sent(mesh)
    monkeypatch.setattr(exchange_sender, "_MAX_BYTES", 100)
    sent.sender.rows(sent.stream, [_taken(*(("t1", n, 3) for n in range(20)))], 50, 70)
    records = [record for _, record, _ in sent.rows()]
    assert len(records) > 1
    assert [r.ordinal for r in records] == list(range(len(records)))
    assert [r.last for r in records] == [False] * (len(records) - 1) + [True]
    times = [t for *_, rows in sent.rows() for t in rows.get_column("ts").to_list()]
    assert times == [T0 + n for n in range(20)]


def test_rows_of_other_tables_and_children_are_not_sent(mesh):
    sent = _Sent(mesh)
    sent.sender.rows(sent.stream, [_taken(("t1", 1, 1), table_id=99)], 50, 50)
    assert sent.rows() == []
    source = replace(sent.stream.plan.source, kind="child", child="T1")
    sent.stream.output.plan = replace(sent.stream.plan, source=source)
    sent.sender.rows(sent.stream, [_taken(("t1", 1, 1), ("t2", 2, 1))], 50, 51)
    [(*_, rows)] = sent.rows()
    assert rows.get_column("tbname").to_list() == ["t1"]


def test_rows_that_fail_where_stay_here(mesh):
    sent = _Sent(mesh, _BY_TAG.format(" WHERE g > 1"))
    sent.sender.rows(sent.stream, [_taken(("t1", 1, 1), ("t1", 2, 2), ("t1", 3, None))], 50, 52)
    [(*_, rows)] = sent.rows()
    assert rows.get_column("ts").to_list() == [T0 + 2]


def test_a_stream_that_fills_its_history_knows_what_tables_had_before_it(mesh):
    mesh.rows(("t1", 10, 1, 1))
    mesh.feed()
    sent = _Sent(mesh, _BY_TAG.format("").replace("INTO", "FILL_HISTORY 1 INTO"))
    sent.sender.announce_history(sent.stream, 40)
    sent.sender.rows(sent.stream, [_taken(("t1", 5, 1), ("t2", 5, 1))], 50, 51)
    late = {
        name: flag
        for *_, rows in sent.rows()
        for name, flag in rows.select("tbname", "_late").iter_rows()
    }
    assert late == {"t1": True, "t2": False}


# -------------------------------------------------------------------- controls


def test_a_control_for_a_stream_of_the_exchange_goes_to_all_its_partitions(mesh):
    sent = _Sent(mesh)
    heard = sent.controls(ControlRecord("flush", stream=1000))
    assert len(heard) == PARTITIONS
    assert {(c.kind, c.stream, c.offset, c.ordinal) for c in heard} == {("flush", 1000, 50, 0)}
    assert {c.producer for c in heard} == {sent.processor.place.forwarder}


@pytest.mark.parametrize(
    "control",
    [
        ControlRecord("flush", stream=1100),
        ControlRecord("flush", stream=5),
        ControlRecord("tick", time=T0),  # no stream of the exchange needs it
        ControlRecord("delete", table=99, low=0, high=1),
        ControlRecord("delete", table=SOURCE.id, low=0, high=1),  # no table of it is here
    ],
    ids=["scan's stream", "nobody's", "tick", "other table", "nothing here"],
)
def test_what_the_exchange_needs_not_know_is_not_sent(mesh, control):
    assert _Sent(mesh).controls(control) == []


@pytest.mark.parametrize("kind", ["barrier", "stream_off", "begin"])
def test_some_kinds_are_everybodys(mesh, kind):
    heard = _Sent(mesh).controls(ControlRecord(kind, stream=5))
    assert len(heard) == PARTITIONS
    if kind == "barrier":
        assert json.loads(heard[0].body) == {"partitions": 1, "topic": TOPIC}


def test_a_delete_is_sent_for_the_tables_that_are_here(mesh):
    sent = _Sent(mesh)
    heard = sent.controls(
        ControlRecord("delete", table=SOURCE.id, tables=("t2", "t1"), low=3, high=4)
    )
    assert {(c.tables, c.low, c.high) for c in heard} == {(("t1", "t2"), 3, 4)}


def test_a_delete_of_all_tables_names_those_that_are_known_here(mesh, monkeypatch):
    sent = _Sent(mesh)
    monkeypatch.setattr(sent.processor, "tables", lambda table_id: {"t9", "t3"})
    heard = sent.controls(ControlRecord("delete", table=SOURCE.id, low=3, high=4))
    assert {c.tables for c in heard} == {("t3", "t9")}


def test_a_dropped_table_is_said_to_streams_that_read_it(mesh):
    sent = _Sent(mesh)
    gone = ControlRecord("delete", table=SOURCE.id, tables=("t1",), body=DROPPED)
    assert {c.tables for c in sent.controls(gone)} == {("t1",)}


def test_ticks_go_on_where_a_stream_needs_them(mesh):
    timed = _BY_TAG.format("").replace("INTO", "TRIGGER MAX_DELAY 5s INTO")
    heard = _Sent(mesh, timed).controls(ControlRecord("tick", time=T0))
    assert len(heard) == PARTITIONS
    assert {c.time for c in heard} == {T0}
    assert heard[0].body

"""What a predecessor has published is found by the positions that records carry."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from penstock import names
from penstock.errors import StateError
from penstock.records import ControlRecord, DeadLetter, EventsRecord, ExchangeRecord, encode
from spark_jobs.processor.published import find_published, positions_of
from spark_jobs.replay import Published
from tests.unit.spark_jobs.processor_kit import T0, TOPIC, Mesh, record

_STREAM = "CREATE STREAM s INTO o AS SELECT _wstart ws, count(*) n FROM m PARTITION BY tbname INTERVAL(10a)"


@pytest.fixture
def mesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mesh:
    return Mesh(tmp_path, monkeypatch)


def _exchange(producer: str, first: int, last: int, ordinal: int = 0) -> bytes:
    return encode(ExchangeRecord(1, producer, first, last, b"", ordinal))


def _result(mesh: Mesh, producer: str, first: int, last: int) -> bytes:
    """A record of the result table `o`."""
    mesh.stream(1000, _STREAM)
    codec = mesh.worker.codecs.encoder(1001)
    assert codec is not None
    table = codec.table
    types = {c.name: c.type.polars() for c in (*table.columns, *table.tags)}
    rows = pl.DataFrame({"tbname": ["t"], **dict.fromkeys(types)}, schema_overrides=types)
    rows = rows.with_columns(pl.lit(T0).cast(types[table.time_column]).alias(table.time_column))
    [(_, value)] = codec.encode_partitioned(
        rows, 1, producer=producer, from_offset=first, offset=last
    )
    return value


def test_records_with_a_position_tell_it(mesh):
    values = [
        encode(ControlRecord("tick", producer="p", offset=4, ordinal=1)),
        _exchange("q", 2, 5, 3),
        encode(EventsRecord(1, "db.s", "r", 6, 7, "[]", 2)),
        _result(mesh, "s", 8, 9),
    ]
    assert sorted(positions_of(mesh.worker, values)) == [
        ("p", 4, 4, 1),
        ("q", 2, 5, 3),
        ("r", 6, 7, 2),
        ("s", 8, 9, 0),
    ]


def test_records_without_one_tell_nothing(mesh):
    values = [
        encode(ControlRecord("tick")),
        encode(DeadLetter("t", 0, 1, "scan", "E", "why", 0)),
        record(("t1", 0, 1, 0)),  # of a table that no stream writes
        names.CONTROL_SCHEMA_ID.to_bytes(5, "big") + b"torn",
        (999_999).to_bytes(5, "big"),  # of no table
        b"?",
        None,
    ]
    assert list(positions_of(mesh.worker, values)) == []


def test_only_what_the_state_does_not_know_is_read(mesh):
    for last in range(4):
        mesh.log.append("out", 0, _exchange("p", last, last))
    found = find_published(mesh.worker, {"p"}, {("out", 0): 2}, since=0)
    assert found == [Published("p", "out", 0, n, n, 0) for n in (2, 3)]


def test_other_producers_do_not_count(mesh):
    mesh.log.append("out", 0, _exchange("p", 0, 0))
    mesh.log.append("out", 0, _exchange("other", 1, 1))
    mesh.log.append("out", 1, _exchange("q", 2, 4))
    found = find_published(mesh.worker, {"p", "q"}, {("out", 0): 0, ("out", 1): 0}, since=0)
    assert sorted(found, key=lambda f: f.partition) == [
        Published("p", "out", 0, 0, 0, 0),
        Published("q", "out", 1, 2, 4, 0),
    ]


def test_what_is_older_than_the_state_is_not_read_but_clocks_may_differ(mesh):
    mesh.log.append("out", 0, _exchange("p", 0, 0))
    mesh.log.now += 60_000
    mesh.log.append("out", 0, _exchange("p", 1, 1))
    since = mesh.log.now
    mesh.log.append("out", 0, _exchange("p", 2, 2))
    found = find_published(mesh.worker, {"p"}, {("out", 0): 0}, since)
    assert [f.offset for f in found] == [1, 2]
    assert find_published(mesh.worker, {"p"}, {("out", 0): 0}, since + 60_000) == []


def test_without_outputs_nothing_is_asked(mesh, monkeypatch):
    monkeypatch.delattr(mesh.worker, "admin")
    assert find_published(mesh.worker, {"p"}, {}, since=0) == []


def test_a_log_that_cannot_be_read_up_to_its_end_is_no_answer(mesh, monkeypatch):
    mesh.log.append("out", 0, _exchange("p", 0, 0))
    monkeypatch.setattr(mesh.log, "end_offsets", lambda places: dict.fromkeys(places, 5))
    with pytest.raises(StateError, match="cannot learn what was published"):
        find_published(mesh.worker, {"p"}, {("out", 0): 0}, since=0)


def test_a_topic_is_where_results_go(mesh):
    mesh.log.append(TOPIC, 0, _result(mesh, "p", 3, 5))
    found = find_published(mesh.worker, {"p"}, {(TOPIC, 0): 0}, since=0)
    assert found == [Published("p", TOPIC, 0, 3, 5, 0)]

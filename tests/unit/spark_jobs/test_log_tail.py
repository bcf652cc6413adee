"""Rows of a table in the log behind its segments: each once, as far as was asked."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from penstock.codec import TableCodec
from penstock.errors import StateError
from penstock.records import ControlRecord
from penstock.storage.segments import Position, RangeDelete
from spark_jobs.log_tail import LogTail
from tests.unit.spark_jobs.processor_kit import SOURCE, T0, TOPIC, Mesh

#: owner of the topic: the kit's database
_OWNER = 5


@pytest.fixture
def mesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mesh:
    made = Mesh(tmp_path, monkeypatch)
    made.rows(*((f"t{n % 2}", n, 10 * n, 0) for n in range(5)))
    return made


def _tail(mesh: Mesh) -> LogTail:
    return LogTail(mesh.worker, SOURCE.id, TOPIC, 0)


def _flush(
    mesh: Mesh, next_offset: int, *deletes: RangeDelete, **producers: tuple[int, int]
) -> None:
    """The store has written all below *next_offset*."""
    Position(TOPIC, 0, _OWNER, next_offset, producers=producers, deletes=deletes).save(
        mesh.worker.settings.segments_dir
    )


def _offsets(tail: LogTail) -> list[int]:
    return [o for rows in tail.rows for o in rows.get_column("_offset").to_list()]


def _stamped(value: int, offset: int, producer: str = "p") -> bytes:
    rows = pl.DataFrame(
        {"tbname": ["t0"], "ts": [T0 + value], "a": [value], "g": [0]},
        schema_overrides={"a": pl.Int32, "g": pl.Int32},
    )
    [(_, made)] = TableCodec(SOURCE).encode_partitioned(
        rows, 1, producer=producer, from_offset=offset, offset=offset
    )
    return made


def test_rows_are_known_up_to_where_was_asked(mesh):
    tail = _tail(mesh)
    tail.advance(2)
    assert _offsets(tail) == [0, 1]
    tail.advance(2)
    tail.advance(4)
    assert _offsets(tail) == [0, 1, 2, 3]
    rows = pl.concat(tail.rows)
    assert rows.select("tbname", "ts", "a").rows()[3] == ("t1", T0 + 3, 30)
    assert set(rows.get_column("_row")) == {0}
    times = [time for time, _ in mesh.log.records[TOPIC, 0]]
    assert rows.get_column("_now").to_list() == times[:4]


def test_rows_of_other_tables_are_left_out(mesh):
    tail = LogTail(mesh.worker, 77, TOPIC, 0)
    tail.advance(5)
    assert tail.rows == []


def test_what_a_producer_says_twice_is_there_once(mesh):
    for value, offset in ((1, 7), (2, 8), (3, 7), (4, 8), (5, 9)):
        mesh.log.append(TOPIC, 0, _stamped(value, offset))
    tail = _tail(mesh)
    tail.advance(10)
    assert _offsets(tail)[5:] == [5, 6, 9]


def test_what_segments_have_is_read_from_there(mesh):
    _flush(mesh, 3)
    tail = _tail(mesh)
    tail.advance(5)
    assert _offsets(tail) == [3, 4]


def test_positions_of_producers_go_on_behind_segments(mesh):
    mesh.log.append(TOPIC, 0, _stamped(1, 7))
    mesh.log.append(TOPIC, 0, _stamped(2, 8))
    _flush(mesh, 5, p=(7, 0))
    tail = _tail(mesh)
    tail.advance(7)
    assert _offsets(tail) == [6]


def test_what_the_store_takes_over_is_forgotten(mesh):
    tail = _tail(mesh)
    tail.advance(4)
    _flush(mesh, 2)
    tail.advance(4)
    assert _offsets(tail) == [2, 3]
    assert tail.position.next == 2
    _flush(mesh, 5)
    tail.advance(4)
    assert _offsets(tail) == []


def test_deletes_of_the_table_are_known(mesh):
    mesh.control(ControlRecord("delete", table=SOURCE.id, tables=("t0",), low=1, high=2))
    mesh.control(ControlRecord("delete", table=77, low=1, high=2))
    mesh.control(ControlRecord("tick"))
    tail = _tail(mesh)
    tail.advance(8)
    own = RangeDelete(SOURCE.id, 5, ("t0",), 1, 2)
    assert tail.deletes == [own]
    written = RangeDelete(SOURCE.id, 3, None, 5, 6)
    _flush(mesh, 4, written, RangeDelete(77, 3, None, 5, 6))
    tail.advance(8)
    assert tail.deletes == [written, own]
    _flush(mesh, 6, written, own)
    tail.advance(8)
    assert tail.deletes == [written, own]


def test_a_control_that_cannot_be_read_is_passed_over(mesh):
    mesh.log.append(TOPIC, 0, (1).to_bytes(5, "big") + b"torn")
    mesh.rows(("t0", 9, 9, 0))
    tail = _tail(mesh)
    tail.advance(7)
    assert _offsets(tail)[-1] == 6


def test_a_log_that_ends_too_early_cannot_be_read(mesh):
    with pytest.raises(StateError, match="cannot be read") as error:
        _tail(mesh).advance(9)
    assert error.value.detail == "5 of 9"

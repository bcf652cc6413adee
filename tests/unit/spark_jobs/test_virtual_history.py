"""Rows of a virtual source are read again from its origins, joined by time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from penstock.rows.versions import UPSERT
from penstock.sql.plan import Column, Member, Origin, Source
from penstock.types import ColumnType
from spark_jobs.virtual_history import VirtualHistory
from tests.unit.spark_jobs.processor_kit import SOURCE, T0, TOPIC, Mesh

_INT = ColumnType("INT")
_COLUMNS = (Column("ts", ColumnType("TIMESTAMP")), Column("x", _INT), Column("y", _INT))
#: `both` has a column of t1 and one of t2, `one` has t1's only
_MEMBERS = (
    Member("both", (1,), (Origin("x", 1, "t1", "a"), Origin("y", 1, "t2", "a"))),
    Member("one", (2,), (Origin("x", 1, "t1", "a"),)),
)
_SOURCE = Source(9, "db", "v", "virtual", _COLUMNS, (Column("n", _INT),), "ms", members=_MEMBERS)


class _Read:
    """The history over what a log holds below *until*; the stream begins at *begin*."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.until = 0
        self.begin = 0
        self.history = VirtualHistory(mesh.worker, _SOURCE, self._bounds, self._begins)

    def _bounds(self, topic: str, partitions: int) -> Mapping[int, int]:
        assert (topic, partitions) == (TOPIC, SOURCE.partitions)
        return {0: self.until}

    def _begins(self, topic: str) -> Mapping[int, int]:
        return {0: self.begin}

    def write(self, *rows: tuple[str, int, int]) -> None:
        """Append a record for each (table, ms behind T0, a)."""
        self.mesh.rows(*((table, time, a, 0) for table, time, a in rows))
        self.until = len(self.mesh.log.records[TOPIC, 0])

    def rows(self, low: int = 0, high: int = 100, tables: Any = None) -> list[tuple[Any, ...]]:
        """(table, ms behind T0, x, y) of what is read."""
        found = self.history.fetch(T0 + low, T0 + high, tables)
        return [(n, t - T0, x, y) for n, t, x, y in found.select("tbname", "ts", "x", "y").rows()]


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Read:
    return _Read(Mesh(tmp_path, monkeypatch))


def test_rows_of_one_time_are_one_row_of_each_member(read):
    read.write(("t1", 10, 1), ("t2", 10, 2), ("t1", 20, 3), ("t2", 30, 4))
    assert read.rows() == [
        ("both", 10, 1, 2),
        ("both", 20, 3, None),
        ("both", 30, None, 4),
        ("one", 10, 1, None),
        ("one", 20, 3, None),
    ]


def test_rows_are_whole_and_have_their_tags(read):
    read.write(("t1", 10, 1), ("t2", 10, 2))
    found = read.history.fetch(T0, T0 + 100)
    assert found.get_column("n").to_list() == [1, 2]
    assert set(found.get_column("_op")) == {UPSERT}
    assert found.get_column("_step").to_list() == [0, 1]
    assert read.history.fetch_versions(T0, T0 + 100).equals(found)


def test_only_the_stretch_and_the_tables_that_were_asked_for(read):
    read.write(("t1", 10, 1), ("t1", 20, 2), ("t1", 30, 3), ("other", 20, 9))
    assert [t for _, t, *_ in read.rows(20, 20)] == [20, 20]
    assert [n for n, *_ in read.rows(tables=("ONE",))] == ["one"] * 3
    assert read.rows(tables=("nobody",)) == []


def test_rows_from_before_the_stream_are_not_its_own(read):
    read.begin = 1
    read.write(("t1", 10, 1), ("t1", 20, 2))
    assert [t for _, t, *_ in read.rows()] == [20, 20]


def test_it_can_be_asked_as_it_was_at_a_mark(read):
    read.write(("t1", 10, 1))
    before = read.history.mark()
    read.write(("t1", 20, 2), ("t2", 10, 5))
    read.history.at(before)
    assert read.rows() == [("both", 10, 1, None), ("one", 10, 1, None)]
    read.history.at("")
    assert len(read.rows()) == 4


def test_origins_that_are_gone_leave_nothing(read):
    read.write(("t1", 10, 1))
    read.mesh.worker.catalog.catalog.remove(SOURCE.id)
    assert read.rows() == []
    assert read.history.mark() == "{}"

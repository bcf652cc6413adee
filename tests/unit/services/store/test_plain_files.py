"""Files that hold nothing but a table's rows give the same answers when they are read as they are."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.model import TableVersion
from penstock.sql.plan import Column
from penstock.types import ColumnType
from penstock.udf import UserFunction
from services.store import plain_files
from services.store.query import Queries, QueryLimits
from tests.nightly import drawn
from tests.unit.services.store.kit import COLUMNS, PLAIN, STABLE, TOPIC, MemoryStore
from tests.unit.services.store.test_scope import STEP, Store

MOMENT = datetime.fromisoformat("1970-01-01")
SECOND = timedelta(seconds=1)
LIMITS = QueryLimits("256MB", 1, 1_000, 20.0, "0B")
SHAPES = st.sampled_from(
    [
        "SELECT tbname, ts, v, w, g FROM meters ORDER BY tbname, ts",
        "SELECT tbname, count(*), max(v) FROM meters WHERE tbname IN ('a', 'b') GROUP BY tbname"
        " ORDER BY tbname",
        "SELECT _tp_sn, _tp_shard, ts FROM meters ORDER BY tbname, ts",
        "SELECT _wstart, count(*) FROM meters INTERVAL(2s)",
    ]
)


@given(st.lists(STEP, min_size=1, max_size=8), SHAPES)
@settings(max_examples=drawn(25), deadline=None)
def test_no_answer_changes(steps: list[Any], sql: str) -> None:
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        store = Store(Path(directory))
        for step in steps:
            store.step(step)
        found = store.ask(sql)
        patch.setattr(plain_files, "find", lambda *_: None)
        assert found == store.ask(sql)


class Flushed(MemoryStore):
    """Two files of a table, or one and a tail; tells how its rows are read."""

    def __init__(self, directory: Path, files: int = 2) -> None:
        super().__init__(directory)
        for second in (1, 2):
            self.put(PLAIN, ("plain", second * 1_000, second, "a"))
            if second <= files:
                self.flush()

    def kinds(self, sql: str) -> list[str]:
        answer = Queries(self.partitions, self.resolver, LIMITS).run(sql, "d")
        return [str(field.type) for field in answer.schema]

    def ask(self, sql: str = "SELECT v FROM plain") -> tuple[list[Any], bool]:
        """Return the values of the first column, and whether the files are read as they are."""
        seen: list[Any] = []
        look = plain_files.find
        queries = Queries(self.partitions, self.resolver, LIMITS)

        def noted(*given: Any) -> Any:
            seen.append(look(*given))
            return seen[-1]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(plain_files, "find", noted)
            answer = queries.run(sql, "d")
        return answer.column(0).to_pylist(), seen not in ([], [None])


@pytest.fixture
def flushed(tmp_path: Path) -> Flushed:
    return Flushed(tmp_path)


def test_files_alike_are_read_as_they_are(flushed: Flushed) -> None:
    assert flushed.ask() == ([1, 2], True)


def test_a_tail_of_later_rows_is_plain_and_an_older_version_is_not(flushed: Flushed) -> None:
    flushed.put(PLAIN, ("plain", 3_000, 3, "a"))
    assert flushed.ask() == ([1, 2, 3], True)
    flushed.flush()
    assert flushed.ask() == ([1, 2, 3], True)
    flushed.put(PLAIN, ("plain", 2_000, 9, "a"))
    assert flushed.ask("SELECT v FROM plain ORDER BY ts") == ([1, 9, 3], False)
    flushed.flush()
    assert flushed.ask("SELECT v FROM plain ORDER BY ts") == ([1, 9, 3], False)


def test_a_tail_may_lack_a_column_that_files_have(flushed: Flushed) -> None:
    flushed.put(PLAIN, ("plain", 3_000, 3, "a"))
    rows = flushed.partitions.open(TOPIC, 0)._current.frames[PLAIN.id]
    rows[:] = [rows[0].drop("w")]
    assert flushed.ask("SELECT w FROM plain") == (["a", "a", None], True)


def test_a_column_that_came_later_is_not_in_the_files(flushed: Flushed) -> None:
    more = (*COLUMNS, Column("x", ColumnType("DOUBLE")))
    table = replace(PLAIN, versions=(*PLAIN.versions, TableVersion(109, more)))
    flushed.catalog.put(table)
    assert flushed.ask("SELECT x FROM plain") == ([None, None], False)
    flushed.put(table, ("plain", 3_000, 3, "a", 0.5))
    flushed.flush()
    assert flushed.ask("SELECT x FROM plain") == ([None, None, 0.5], False)


def test_no_file_is_not_plain(flushed: Flushed) -> None:
    flushed.put(STABLE, ("a", 1_000, 1, "x", 1), topic=TOPIC)
    assert flushed.ask("SELECT v FROM meters") == ([1], False)


@pytest.mark.parametrize("files", [1, 2])
def test_times_are_the_same_for_whoever_gets_them(tmp_path: Path, files: int) -> None:
    """DuckDB has them in microseconds there."""
    flushed = Flushed(tmp_path, files)
    time = ColumnType("TIMESTAMP")
    body = "def later(a):\n    return pc.add(a, 1)"
    flushed.catalog.put(UserFunction(30, "later", (time,), ColumnType("BIGINT"), body))
    for sql, wanted in (
        ("SELECT later(ts) FROM plain", [1_001, 2_001]),
        ("SELECT max(later(ts)) FROM plain WHERE ts < 2000", [1_001]),
        ("SELECT to_iso8601(ts) FROM plain LIMIT 1", ["1970-01-01T00:00:01.000+0000"]),
        ("SELECT ts - 1000 FROM plain", [MOMENT, MOMENT + SECOND]),
        ("SELECT a.ts FROM plain a JOIN plain b ON a.ts = b.ts + 1s", [MOMENT + 2 * SECOND]),
    ):
        assert flushed.ask(sql) == (wanted, True), sql
    kinds = flushed.kinds("SELECT ts, max(ts) AS m, ts + 1s AS n FROM plain GROUP BY ts")
    assert kinds == ["timestamp[ms]"] * 3

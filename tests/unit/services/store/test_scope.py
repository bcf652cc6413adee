"""What a SELECT cannot need is not read, and no answer changes by that."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.model import Database, Table, TableVersion
from penstock.duck import Bounds, Engine
from penstock.errors import PenstockError
from penstock.rows.partition import partition
from penstock.rows.versions import CLEAR, DELETE, MERGE, UPSERT
from penstock.sql.parser import parse_one
from penstock.sql.statements import Query
from penstock.storage.segments import RangeDelete
from services.store.images import Images
from services.store.query_run import QueryRequest, QueryRun
from services.store.scope import EVERYTHING, ReadScope, scope_of
from services.store.table_source import TableSource
from tests.nightly import drawn
from tests.unit.services.store.kit import COLUMNS, TAGS, TOPIC, MemoryStore, frame_of

NAMES = ("a", "b", "c", "it's")
STABLE = Table(8, "d", "meters", "stable", TOPIC, 2, "ms", (TableVersion(108, COLUMNS, TAGS),))

TIMES = st.one_of(
    st.integers(-1, 12).map(lambda s: str(s * 1000)),
    st.integers(0, 11).map(lambda s: f"'1970-01-01 00:00:{s:02d}'"),
    st.integers(0, 11).map(lambda s: f"'1970-01-01T02:00:{s:02d}.0005+02:00'"),
)
NAME = st.sampled_from(NAMES).map(lambda n: "'" + n.replace("'", "\\'") + "'")
OPERATORS = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
CONDITION = st.one_of(
    st.tuples(st.sampled_from(["ts", "TS", "m.ts", "_rowts", "_c0"]), OPERATORS, TIMES),
    st.tuples(TIMES, OPERATORS, st.just("ts")),
    st.tuples(st.just("ts BETWEEN"), TIMES, st.just("AND"), TIMES),
    st.tuples(st.just("ts NOT BETWEEN"), TIMES, st.just("AND"), TIMES),
    st.tuples(st.sampled_from(["tbname", "m.tbname"]), OPERATORS, NAME),
    st.tuples(st.just("tbname IN ("), NAME, st.just(","), NAME, st.just(")")),
    st.tuples(st.just("tbname NOT IN ("), NAME, st.just(")")),
    st.tuples(st.just("v"), OPERATORS, st.integers(0, 9).map(str)),
    st.tuples(st.just("g"), OPERATORS, st.integers(0, 3).map(str)),
).map(" ".join)
WHERE = st.recursive(
    CONDITION,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "AND", "OR"]), inner).map(
            lambda p: f"({p[0]} {p[1]} {p[2]})"
        ),
        inner.map("NOT ({})".format),
    ),
    max_leaves=4,
)
SHAPES = (
    "SELECT ts, tbname, v, w, g FROM meters m WHERE {} ORDER BY tbname, ts",
    "SELECT count(*), sum(v) FROM (SELECT * FROM meters m WHERE {})",
    "SELECT x.v, x.ts FROM meters x LEFT JOIN (SELECT * FROM meters m WHERE {}) y"
    " ON x.ts = y.ts AND x.tbname = y.tbname ORDER BY x.tbname, x.ts",
    "SELECT m.v, y.v FROM meters m LEFT JOIN meters y ON m.ts = y.ts WHERE m.v = y.v AND ({})"
    " ORDER BY m.tbname, m.ts, y.tbname",
    "SELECT _wstart, count(*), sum(v) FROM meters m WHERE {} INTERVAL(3s)",
)
VERSION = st.tuples(
    st.sampled_from(NAMES),
    st.integers(0, 10),
    st.none() | st.integers(0, 9),
    st.sampled_from([UPSERT, UPSERT, UPSERT, DELETE, MERGE, CLEAR]),
)
STEP = st.one_of(
    st.lists(VERSION, min_size=1, max_size=6),
    st.just("flush"),
    st.tuples(st.integers(0, 10), st.integers(0, 10), st.none() | st.sampled_from(NAMES)),
    st.tuples(st.sampled_from(NAMES), st.integers(0, 3)),
)


class Store(MemoryStore):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory, Database(1, "d", partitions=2), STABLE)
        for number in range(2):
            self.partitions.open(TOPIC, number)

    def step(self, step: Any) -> None:
        for number in range(2):
            tail = self.partitions.open(TOPIC, number)
            if step == "flush":
                if tail.next > tail.position.next:
                    self.flush(TOPIC, number)
            elif isinstance(step, list):
                self._write([s for s in step if partition(s[0], 2) == number], number)
            elif len(step) == 3:
                tables = None if step[2] is None else (step[2],)
                gone = RangeDelete(8, tail.next, tables, step[0] * 1000, step[1] * 1000)
                tail.append(tail.next + 1, {}, [gone], 1.0)
            elif partition(step[0], 2) == number:
                tail.set_tags(8, step[0], {"g": step[1]})

    def _write(self, versions: list[Any], number: int) -> None:
        if not versions:
            return
        tail = self.partitions.open(TOPIC, number)
        rows = [(n, s * 1000, v, None if v is None else f"w{v}", 1) for n, s, v, _ in versions]
        frame = frame_of(STABLE, rows, tail.next).with_columns(
            _op=pl.Series([o for *_, o in versions], dtype=pl.Int8)
        )
        tail.append(tail.next + 1, {8: frame}, [], 1.0)

    def ask(self, sql: str) -> list[dict[str, Any]] | str:
        """Rows, or what is wrong: a name is ambiguous in a join."""
        statement = parse_one(sql)
        assert isinstance(statement, Query)
        engine = Engine(Bounds("256MB", 1, 20.0))
        images = Images(self.partitions.root, self.partitions.views)
        request = QueryRequest(statement, "d", "UTC")
        run = QueryRun(TableSource(self.resolver), None, images, engine, request, 10_000)
        try:
            return run.result().to_pylist()
        except (PenstockError, duckdb.BinderException) as wrong:
            return str(wrong)
        finally:
            engine.close()


@given(st.lists(STEP, min_size=1, max_size=8), WHERE, st.sampled_from(SHAPES))
@settings(max_examples=drawn(25), deadline=None)
def test_a_scope_changes_no_answer(steps: list[Any], where: str, shape: str) -> None:
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        store = Store(Path(directory))
        for step in steps:
            store.step(step)
        sql = shape.format(where)
        found = store.ask(sql)
        patch.setattr("services.store.scope.scope_of", lambda *_: EVERYTHING)
        assert found == store.ask(sql)


@pytest.mark.parametrize(
    ("where", "scope"),
    [
        ("ts > 5000 AND ts < 7000", ReadScope(None, 4999, 7001)),
        ("ts >= '1970-01-01 08:00:05' AND v > 1", ReadScope(None, 4999)),
        ("6000 >= ts AND (tbname = 'a')", ReadScope(frozenset({"a"}), None, 6001)),
        ("tbname IN ('a', 'b') AND m.tbname = 'b'", ReadScope(frozenset({"b"}))),
        ("ts BETWEEN -1 AND 9", ReadScope(None, -2, 10)),
        ("ts > TIMESTAMP '1970-01-01T00:00:05Z'", ReadScope(None, 4999)),
        ("CAST('1970-01-01 08:00:05' AS TIMESTAMP) = ts", ReadScope(None, 4999, 5001)),
        ("ts > CAST('5' AS BIGINT) AND ts < CAST(7000 AS TIMESTAMP)", EVERYTHING),
        ("ts > 5000 OR v = 1", EVERYTHING),
        ("NOT ts > 5000", EVERYTHING),
        ("other.ts > 5000", EVERYTHING),
        ("ts > now - 1h AND tbname = v", EVERYTHING),
        ("ts = 'no time' AND tbname IN (SELECT tbname FROM meters)", EVERYTHING),
    ],
)
def test_what_a_condition_says(where: str, scope: ReadScope) -> None:
    statement = parse_one(f"SELECT v FROM meters m WHERE {where}")
    assert isinstance(statement, Query)
    condition = statement.query.args["where"].this
    assert scope_of(condition, "m", STABLE, "Asia/Shanghai") == scope


def test_files_and_rows_outside_are_not_read(tmp_path: Path) -> None:
    store = Store(tmp_path)
    homes = {name: partition(name, 2) for name in NAMES}
    for second in (1, 2):
        store.step([(name, second, 1, UPSERT) for name in NAMES])
        store.step("flush")
    store.step([(name, 3, 1, UPSERT) for name in NAMES])
    image = Images(store.partitions.root, store.partitions.views).of(STABLE)[1]
    (part,) = ReadScope(frozenset({"a"}), 2000, None).narrow(image, STABLE)
    assert part.partition == homes["a"]
    assert [s.low for s in part.found] == [2000]
    assert [f["tbname"].to_list() for f in part.frames] == [["a"]]
    parts = ReadScope(None, None, 1000).narrow(image, STABLE)
    assert [(len(p.found), p.frames) for p in parts] == [(1, ()), (1, ())]

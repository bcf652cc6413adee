"""Plain INTERVAL and SESSION windows are the same from DuckDB as from the kernels."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.model import Database, Table, TableVersion
from penstock.duck import Bounds, Engine
from penstock.sql.parser import parse_one
from penstock.sql.plan import Column
from penstock.sql.statements import Query
from penstock.types import ColumnType
from services.store import interval_sql, session_sql, window_rows
from services.store.images import Images
from services.store.query_run import QueryRequest, QueryRun
from services.store.table_source import TableSource
from tests.nightly import drawn
from tests.unit.services.store.kit import MemoryStore

COLUMNS = (
    Column("ts", ColumnType("TIMESTAMP")),
    Column("n", ColumnType("INT")),
    Column("u", ColumnType("SMALLINT UNSIGNED")),
    Column("b", ColumnType("BIGINT")),
    Column("f", ColumnType("FLOAT")),
    Column("x", ColumnType("DOUBLE")),
    Column("w", ColumnType("VARCHAR", 16)),
    Column("o", ColumnType("BOOL")),
)
TAGS = (Column("g", ColumnType("INT")), Column("s", ColumnType("VARCHAR", 8)))
TABLES = {
    precision: Table(
        8, "d", "m", "stable", "in.d", 1, precision, (TableVersion(108, COLUMNS, TAGS),)
    )
    for precision in ("ms", "us", "ns")
}
#: ticks of a second
SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}

REAL = st.sampled_from([0.0, -0.0, 1.5, -2.25, 1e300, 0.1, math.inf, -math.inf, math.nan])
VALUES = st.tuples(
    st.none() | st.sampled_from([-(2**31) + 1, -7, 0, 3, 2**31 - 1]),
    st.none() | st.sampled_from([0, 5, 65534]),
    st.none() | st.sampled_from([-(2**62), 1, 2**62]),
    st.none() | st.sampled_from([0.0, 0.1, -3.5, math.nan, math.inf]),
    st.none() | REAL,
    st.none() | st.sampled_from(["", "a", "Ä", "a b"]),
    st.none() | st.booleans(),
)
ROW = st.tuples(st.sampled_from("abc"), st.integers(-200, 200), VALUES)
WINDOW = st.sampled_from(
    [
        "INTERVAL(7s)",
        "INTERVAL(1m)",
        "INTERVAL(1m, 13s)",
        "INTERVAL(900a)",
        "INTERVAL(1h)",
        "INTERVAL(1d)",
        "INTERVAL(1w)",
        "INTERVAL(1n)",
        "INTERVAL(1m) SLIDING(20s)",
        "SESSION(ts, 7s)",
        "SESSION(ts, 40s)",
        "SESSION(ts, 900a)",
    ]
)
ITEM = st.sampled_from(
    ["_wstart", "_wend", "count(*)"]
    + [f"count({c})" for c in "nubfxwog"]
    + [f"{f}({c})" for f in ("sum", "avg", "min", "max") for c in ("n", "u", "f", "x", "g")]
    + ["min(b)", "max(b)", "sum(b)", "spread(x)", "max(n) - min(n)", "_wduration"]
)
KEYS = st.sampled_from(["", "tbname", "g", "s", "w", "o", "g, s", "tbname, s"])
WHERE = st.sampled_from(
    [
        "",
        "WHERE n > 0",
        "WHERE x <= 1.5",
        "WHERE x > 1e300",
        "WHERE f = 0.1",
        "WHERE w = 'a'",
        "WHERE w > 'A' AND n <> 3",
        "WHERE g = 1 AND u BETWEEN 1 AND 70000",
        "WHERE n = 2.5",
        "WHERE ts > '1970-01-01 00:00:07'",
        "WHERE ts BETWEEN '1970-01-01 00:00:00' AND '1970-01-01 00:01:00.5' AND tbname = 'b'",
        "WHERE tbname IN ('a', 'c')",
        "WHERE NOT n > 0",
    ]
)


class Store(MemoryStore):
    def __init__(self, directory: Path, table: Table, rows: list[Any]) -> None:
        super().__init__(
            directory, Database(1, "d", precision=table.precision, partitions=1), table
        )
        second = SECOND[table.precision]
        tags = {"a": (1, "x"), "b": (2, None), "c": (None, "x")}
        self.put(table, *((t, at * second // 3, *values, *tags[t]) for t, at, values in rows))
        self.flush()

    def ask(self, sql: str, timezone: str) -> pl.DataFrame:
        statement = parse_one(sql)
        assert isinstance(statement, Query)
        engine = Engine(Bounds("256MB", 1, 20.0))
        images = Images(self.partitions.root, self.partitions.views)
        request = QueryRequest(statement, "d", timezone)
        run = QueryRun(TableSource(self.resolver), None, images, engine, request, 10_000)
        try:
            return pl.DataFrame(run.result())
        finally:
            engine.close()


def in_order(frame: pl.DataFrame) -> list[str]:
    """Rows as texts: of sums of DOUBLE the last digits depend on the order of the rows."""

    def text(value: object) -> str:
        return f"{value + 0.0:.6g}" if isinstance(value, float) else repr(value)

    return sorted(" | ".join(map(text, row)) for row in frame.rows())


@given(
    st.lists(ROW, min_size=1, max_size=12),
    st.lists(ITEM, min_size=1, max_size=4, unique=True),
    KEYS,
    WHERE,
    WINDOW,
    st.sampled_from(["ms", "us", "ns"]),
    st.sampled_from(["UTC", "Asia/Kolkata", "America/New_York"]),
)
@settings(max_examples=drawn(60), deadline=None)
def test_windows_are_those_of_the_kernels(
    rows: list[Any],
    items: list[str],
    keys: str,
    where: str,
    window: str,
    precision: str,
    timezone: str,
) -> None:
    shown = ", ".join(["count(*) AS c0", *items, *(k for k in keys.split(", ") if k)])
    partition = f"PARTITION BY {keys}" if keys else ""
    sql = f"SELECT {shown} FROM m {where} {partition} {window}"
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        store = Store(Path(directory), TABLES[precision], rows)
        found = store.ask(sql, timezone)
        patch.setattr(interval_sql, "sql", lambda *_: None)
        patch.setattr(session_sql, "sessions", lambda *_: None)
        wanted = store.ask(sql, timezone)
    assert found.schema == wanted.schema
    assert in_order(found) == in_order(wanted), sql


@pytest.mark.parametrize(
    ("sql", "by_duckdb"),
    [
        ("SELECT _wstart, tbname, avg(x), max(n) FROM m PARTITION BY tbname INTERVAL(1m)", True),
        ("SELECT count(*) FROM m WHERE n > 1 INTERVAL(1d)", True),
        ("SELECT count(*) FROM m WHERE n + 1 > 1 INTERVAL(1d)", False),
        ("SELECT count(*) FROM m WHERE x > 1 INTERVAL(1d)", False),
        ("SELECT last(x) FROM m INTERVAL(1m)", False),
        ("SELECT avg(x) FROM m INTERVAL(1m) SLIDING(30s)", False),
        ("SELECT avg(x) FROM m INTERVAL(1n)", False),
        ("SELECT avg(x) FROM m INTERVAL(1m) FILL(NULL)", True),
        ("SELECT sum(b) FROM m INTERVAL(1m)", False),
        ("SELECT _wend, tbname, avg(x) FROM m PARTITION BY tbname SESSION(ts, 1m)", True),
        ("SELECT count(*) FROM m WHERE x > 1 SESSION(ts, 1m)", False),
        ("SELECT last(x) FROM m SESSION(ts, 1m)", False),
        ("SELECT count(*) FROM m PARTITION BY tbname COUNT_WINDOW(2)", False),
    ],
)
def test_which_windows_duckdb_computes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str, by_duckdb: bool
) -> None:
    store = Store(tmp_path, TABLES["ms"], [("a", 1, (1, 1, 1, 1.0, 1.0, "a", True))])
    by_kernel: list[Any] = []
    make = window_rows.make_kernel

    def noted(*given: Any) -> Any:
        by_kernel.append(given)
        return make(*given)

    monkeypatch.setattr(window_rows, "make_kernel", noted)
    store.ask(sql, "UTC")
    assert (not by_kernel) is by_duckdb


def test_windows_of_several_tables_are_of_their_own_rows(tmp_path: Path) -> None:
    rows = [(t, at, (n, 1, 1, 1.0, 1.0, "a", True)) for t, at, n in (("a", 3, 1), ("b", 6, 2))]
    store = Store(tmp_path, TABLES["ms"], rows)
    store.put(TABLES["ms"], ("a", 9_000, 5, 1, 1, 1.0, 1.0, "a", True, 1, "x"))
    store.put(TABLES["ms"], ("b", 9_500, 7, 1, 1, 1.0, 1.0, "a", True, 2, None))
    for window in ("INTERVAL(1h)", "SESSION(ts, 1h)"):
        parts = [f"(SELECT _wstart, sum(n) AS s FROM m WHERE g = {g} {window})" for g in (1, 2)]
        found = store.ask(f"SELECT p.s AS p, q.s AS q FROM {parts[0]} p, {parts[1]} q", "UTC")
        assert found.rows() == [(6, 9)]

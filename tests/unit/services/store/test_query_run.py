"""The computation of one SELECT, step by step: tables, images, windows, functions and what is
elsewhere.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from sqlglot import exp

from penstock.catalog.model import Database, External, Table, TableVersion, VirtualColumn
from penstock.duck import Bounds, Engine
from penstock.errors import PenstockError, SqlError
from penstock.sql.parser import parse_one
from penstock.sql.plan import Duration
from penstock.sql.statements import Query
from penstock.types import ColumnType
from penstock.udf import UserFunction
from services.store.external_rows import FarRows, as_table
from services.store.images import Images
from services.store.query_run import QueryRequest, QueryRun
from services.store.resolve import ResolvedTable
from services.store.table_source import TableSource
from services.store.user_functions import register
from services.store.window_rows import WindowSelectRows
from services.store.window_select import column_name
from services.store.windowed import bind_windows
from tests.unit.services.store.kit import (
    COLUMNS,
    DATABASE,
    PLAIN,
    STABLE,
    TAGS,
    TOPIC,
    MemoryStore,
)

DOUBLE = ColumnType("DOUBLE")
TWICE = UserFunction(30, "twice", (DOUBLE,), DOUBLE, "def twice(a):\n    return pc.multiply(a, 2)")
SPAN = UserFunction(31, "span", (DOUBLE,), DOUBLE, "def span(a):\n    return 1.0", aggregate=True)
FAR = External(40, "d", "far", "penstock", (("h:1",),), "rd", "rt", COLUMNS)


def statement(sql: str) -> Query:
    made = parse_one(sql)
    assert isinstance(made, Query)
    return made


class Far:
    """Rows of another deployment."""

    def __init__(self, *entries: External) -> None:
        self.entries = entries
        self.asked: list[tuple[str, tuple[str, ...], list[str]]] = []
        self.answer: pa.Table | None = None

    def find(self, database: str, name: str) -> External | None:
        return next((e for e in self.entries if (e.database, e.name) == (database, name)), None)

    def whole(self, tree: exp.Query, database: str, timezone: str) -> pa.Table | None:
        return self.answer

    def rows(self, far: FarRows, zone: str) -> pa.Table:
        self.asked.append((far.entry.name, far.columns, [c.sql() for c in far.conditions]))
        times = pa.array([1_000, 2_000], pa.timestamp("ms"))
        known = {
            "ts": times,
            "v": pa.array([5, 6], pa.int32()),
            "w": ["a", "b"],
            "_tp_sn": [1, 2],
            "_tp_shard": [0, 0],
        }
        return pa.table({"tbname": ["rt", "rt"]} | {c: known[c] for c in far.columns})


class Asking(MemoryStore):
    def __init__(self, directory: Path, *entries: Any) -> None:
        super().__init__(directory, *(entries or (DATABASE, PLAIN, STABLE, TWICE, SPAN)))
        self.far: Any = None
        self.positions: dict[str, int] = {}
        self.images = Images(self.partitions.root, self.partitions.views)

    def result(self, sql: str, *, max_rows: int = 100, timezone: str = "UTC") -> pa.Table:
        self.resolver.external_rows = self.far
        engine = Engine(Bounds("256MB", 1, 20.0, "0B", 1 << 28))
        run = QueryRun(
            TableSource(self.resolver),
            self.far,
            self.images,
            engine,
            QueryRequest(statement(sql), "d", timezone),
            max_rows,
        )
        try:
            return run.result()
        finally:
            self.positions = run.positions
            engine.close()

    def rows(self, sql: str, **more: Any) -> list[tuple[Any, ...]]:
        table = self.result(sql, **more)
        return [tuple(row.values()) for row in table.to_pylist()]


@pytest.fixture
def asking(tmp_path: Path) -> Asking:
    made = Asking(tmp_path)
    made.put(PLAIN, ("plain", 1_000, 1, "a"), ("plain", 2_000, 2, "b"))
    made.flush()
    made.put(PLAIN, ("plain", 3_000, 3, "c"))
    made.put(STABLE, ("d1", 1_000, 10, "x", 1), ("d2", 1_500, 20, "y", 2))
    return made


def refusal(call: Callable[[], Any]) -> PenstockError:
    with pytest.raises(PenstockError) as wrong:
        call()
    return wrong.value


def test_rows_of_segments_and_tail_and_up_to_where_they_are_read(asking: Asking) -> None:
    assert asking.rows("SELECT v, w FROM plain WHERE v > 1") == [(2, "b"), (3, "c")]
    assert asking.positions == {f"{TOPIC}:0": 3}


def test_fields_carry_the_types_that_they_are_bound_to(tmp_path: Path, asking: Asking) -> None:
    found = asking.result("SELECT v, w, v + 1 AS more FROM plain")
    kinds = [(f.metadata or {}).get(b"type") for f in found.schema]
    assert kinds == [b"INT", b"VARCHAR(16)", b"DOUBLE"]
    other = Table(
        9,
        "d",
        "other",
        "plain",
        TOPIC,
        1,
        "ms",
        (TableVersion(109, (COLUMNS[0], TAGS[0], *COLUMNS[2:])),),
    )
    asking.catalog.put(other)
    joined = asking.result("SELECT a.w FROM plain a, meters b WHERE a.ts = b.ts")
    assert joined.schema.field("w").metadata == {b"type": b"VARCHAR(16)"}


def test_one_table_may_be_read_twice_in_one_moment(asking: Asking) -> None:
    pairs = asking.rows(
        "SELECT a.v AS x, b.v AS y FROM plain a JOIN plain b ON a.v = b.v ORDER BY x"
    )
    assert pairs == [(1, 1), (2, 2), (3, 3)]
    image = asking.images.of(PLAIN)
    asking.put(PLAIN, ("plain", 4_000, 4, "d"))
    assert asking.images.of(PLAIN) is image
    assert len(asking.images.files()) == 1


def test_child_tables_by_name_and_by_supertable(asking: Asking) -> None:
    asking.redis.hset("penstock:children:8", "d2", "{}")
    found = asking.rows("SELECT tbname, v, g FROM meters ORDER BY v")
    assert found == [("d1", 10, 1), ("d2", 20, 2)]


def test_tags_stand_beside_the_tables_that_have_them(asking: Asking) -> None:
    sql = "SELECT tbname, g, count(*) AS n FROM meters PARTITION BY tbname ORDER BY tbname"
    assert asking.rows(sql) == [("d1", 1, 1), ("d2", 2, 1)]
    having = "SELECT tbname FROM meters GROUP BY tbname HAVING max(v) > 15"
    assert asking.rows(having) == [("d2",)]


def test_errors_of_a_query_have_their_place(asking: Asking) -> None:
    error = refusal(lambda: asking.result("SELECT v,\n  vv FROM plain"))
    assert (error.code, error.hint) == ("E_UNKNOWN_COLUMN", "did you mean v?")
    assert isinstance(error, SqlError) and (error.line, error.column) == (2, 3)
    nothing = refusal(lambda: asking.result("SELECT w, sum(v) FROM plain"))
    assert nothing.code == "E_NOT_GROUPED"
    ordered = "SELECT count(*) AS n FROM plain INTERVAL(2s) ORDER BY nn"
    assert refusal(lambda: asking.result(ordered)).hint == "did you mean n?"


def test_sums_of_integers_are_integers(asking: Asking) -> None:
    found = asking.result("SELECT sum(v) AS s, 1.5 AS r, max(ts) - min(ts) AS t FROM plain")
    assert [str(f.type) for f in found.schema] == ["int64", "double", "int64"]
    assert found.to_pylist() == [{"s": 6, "r": 1.5, "t": 2_000}]
    nested = "SELECT sum(s) AS x FROM (SELECT sum(v) AS s FROM plain GROUP BY w)"
    assert asking.result(nested).schema.field("x").type == pa.int64()


def test_too_large_an_answer_is_refused_and_a_limit_is_not(asking: Asking) -> None:
    error = refusal(lambda: asking.result("SELECT v FROM plain", max_rows=2))
    assert (error.code, error.message) == ("E_RESULT_TOO_LARGE", "more than 2 rows")


def test_names_that_do_not_exist(asking: Asking) -> None:
    error = refusal(lambda: asking.result("SELECT v FROM plan"))
    assert error.code == "E_TABLE_NOT_EXIST" and 'did you mean "plain"?' in error.hint
    error = refusal(lambda: asking.result("SELECT rund(v) FROM plain"))
    assert error.code == "E_UNKNOWN_FUNCTION" and error.hint == "did you mean round()?"
    error = refusal(lambda: asking.result("SELECT qqqqqqq(v) FROM plain"))
    assert "docs/sql-functions.md" in error.hint


def test_functions_of_users(asking: Asking) -> None:
    assert asking.rows("SELECT twice(v) AS t FROM plain ORDER BY t") == [(2.0,), (4.0,), (6.0,)]
    error = refusal(lambda: asking.result("SELECT span(v) FROM plain"))
    assert error.code == "E_NONWINDOW_AGG" and "INTERVAL" in error.hint


def test_a_function_is_registered_under_a_name_of_its_own() -> None:
    con = duckdb.connect()
    register(con, TWICE)
    row = con.execute("SELECT _penstock_function_30(4.5)").fetchone()
    assert row == (9.0,)
    with pytest.raises(duckdb.Error):
        con.execute("SELECT twice(4.5)")


# -------------------------------------------------------------------- windows


def test_windows_are_computed_and_the_rest_is_selected_from_them(asking: Asking) -> None:
    sql = "SELECT _wstart AS s, count(*), sum(v) FROM plain INTERVAL(2s) ORDER BY count(*) DESC"
    found = asking.result(sql)
    assert found.schema.names == ["s", "count(*)", "sum(v)"]
    assert [tuple(r.values())[1:] for r in found.to_pylist()] == [(2, 5), (1, 1)]
    assert found.schema.field("count(*)").metadata == {b"type": b"BIGINT"}


def test_windows_in_a_subquery_and_with_a_limit(asking: Asking) -> None:
    sql = "SELECT max(n) FROM (SELECT count(*) AS n FROM plain INTERVAL(2s))"
    assert asking.rows(sql) == [(2,)]
    limited = "SELECT count(*) AS n FROM plain INTERVAL(2s) ORDER BY n LIMIT 1"
    assert asking.rows(limited) == [(1,)]


def test_windows_of_groups_and_of_a_condition(asking: Asking) -> None:
    sql = "SELECT tbname, sum(v) AS s FROM meters WHERE v >= 10 PARTITION BY tbname INTERVAL(1h)"
    assert sorted(asking.rows(sql)) == [("d1", 10), ("d2", 20)]
    assert asking.rows("SELECT count(*) AS n FROM plain WHERE w LIKE 'a%' INTERVAL(1h)") == [(1,)]
    counted = "SELECT count(*) AS n FROM plain COUNT_WINDOW(2)"
    assert asking.rows(counted) == [(2,), (1,)]


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT count(*) FROM plain a, meters b INTERVAL(1s)", "E_UNSUPPORTED_QUERY"),
        ("SELECT count(*) FROM (SELECT v FROM plain) INTERVAL(1s)", "E_UNSUPPORTED_QUERY"),
        ("SELECT count(*) FROM (SELECT ts, v FROM gone) INTERVAL(1s)", "E_TABLE_NOT_EXIST"),
    ],
)
def test_windows_that_are_refused(asking: Asking, sql: str, code: str) -> None:
    assert refusal(lambda: asking.result(sql)).code == code


def test_windows_over_a_subquery_with_hostile_names(asking: Asking) -> None:
    sql = (
        'SELECT sum(`x"); DROP TABLE y; --`) AS s FROM (SELECT ts, v AS `x"); DROP TABLE y; --`,'
        " w AS `it's` FROM plain) `a\" b` WHERE `it's` <> 'b' INTERVAL(1h)"
    )
    assert asking.rows(sql) == [(4,)]


def test_what_a_subquery_calls_is_there_for_the_windows_and_around_them(asking: Asking) -> None:
    """crc32 is computed by polars; the inner and the outer call share the engine."""
    sql = (
        "SELECT crc32(last(c)) AS twice FROM (SELECT ts, crc32(w) AS c, twice(v) AS t FROM plain)"
        " INTERVAL(1h) HAVING max(t) = 6 ORDER BY crc32(first(c))"
    )
    [(found,)] = asking.rows(sql)
    assert found == zlib.crc32(str(zlib.crc32(b"c")).encode())
    sliding = "SELECT count(*) AS n FROM (SELECT ts, twice(v) AS t FROM plain) COUNT_WINDOW(2)"
    assert asking.rows(sliding) == [(2,), (1,)]


def test_a_wrong_argument_of_a_function_is_pointed_at(asking: Asking) -> None:
    asking.put(PLAIN, ("plain", 1_000, 1, "a"))
    with pytest.raises(SqlError) as wrong:
        asking.rows("SELECT v, to_unixtimestamp(ts) FROM plain")
    assert wrong.value.code == "E_TYPE"
    assert (wrong.value.line, wrong.value.column) == (1, 28)
    assert "it takes text" in str(wrong.value)
    with pytest.raises(SqlError, match="the mode of week") as wrong:
        asking.rows("SELECT week(ts, 9) FROM plain")
    assert (wrong.value.line, wrong.value.column) == (1, 8)


def test_windows_need_only_tables_of_a_query(asking: Asking) -> None:
    """`WindowRows` by itself, over relations that a test gives it."""
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE rows_ AS SELECT 'plain' AS tbname, make_timestamp_ms(n * 1000) AS ts,"
        " n::INTEGER AS v, 'w' AS w FROM range(4) r(n)"
    )
    source = TableSource(asking.resolver)
    frames: dict[str, pl.DataFrame] = {}

    class Tables:
        def resolve(self, table: exp.Table) -> Any:
            return source.resolve("d", table, asked)

        def view(self) -> Any:
            return source.view()

        def new_name(self) -> str:
            return "other"

        def relation(self, prefix: str, found: Any, condition: Any) -> str:
            return "SELECT * FROM rows_"

        def fetch(self, text: str) -> pl.DataFrame:
            return pl.DataFrame(con.sql(text).to_arrow_table())

        def add_frame(self, name: str, frame: pl.DataFrame) -> None:
            frames[name] = frame

        def not_needed(self, *_: Any) -> Any:
            raise AssertionError("it is not needed")

        bind = name_rows = let_call = write = add_view = not_needed

    asked = statement(
        "SELECT sum(v) AS s, max(timediff(now, ts)) AS age FROM plain WHERE ts >= 1000 INTERVAL(2s)"
    )
    select = asked.query
    assert isinstance(select, exp.Select)
    bound = bind_windows(Tables(), asked, select, "UTC", 10 * 10**9)
    assert bound.shown == ["s", "age"]
    sums, ages = (column_name(position) for position in range(2))
    assert [str(c.type) for c in bound.columns.columns if c.name == sums] == ["BIGINT"]
    rows = WindowSelectRows(bound, "windows", 10 * 10**9)
    rows.place(Tables())
    rows.fill(Tables(), compute=True)
    assert frames["windows"][sums].to_list() == [1, 5]
    assert frames["windows"][ages].to_list() == [9_000, 8_000]


def test_a_table_is_looked_for_once_however_often_a_query_names_it(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    sought: list[str] = []
    resolve = TableSource.resolve

    def resolve_once(
        self: TableSource, database: str, table: exp.Table, asked: Query
    ) -> ResolvedTable:
        sought.append(table.name)
        return resolve(self, database, table, asked)

    monkeypatch.setattr(TableSource, "resolve", resolve_once)
    asking.rows("SELECT count(*) FROM plain a JOIN plain b ON a.ts = b.ts")
    asking.rows("SELECT sum(v) FROM plain INTERVAL(1s)")
    assert sought == ["plain", "plain"]


# -------------------------------------------------------------------- KEEP and virtual tables


def test_rows_over_their_keep_are_not_shown(tmp_path: Path) -> None:
    database = Database(1, "d", keep=Duration(1, "d"))
    asking = Asking(tmp_path, database, PLAIN)
    asking.put(PLAIN, ("plain", 1_000, 1, "a"), ("plain", 4_000_000_000_000, 2, "b"))
    assert asking.rows("SELECT v FROM plain") == [(2,)]


def test_a_virtual_table_shows_the_rows_of_its_origins(tmp_path: Path) -> None:
    columns = (COLUMNS[0], COLUMNS[1])
    virtual = Table(
        20,
        "d",
        "vt",
        "virtual",
        "",
        0,
        "ms",
        (TableVersion(120, columns),),
        origins=(VirtualColumn("v", "d", "plain", "v"),),
    )
    asking = Asking(tmp_path, DATABASE, PLAIN, virtual)
    asking.put(PLAIN, ("plain", 1_000, 1, "a"), ("plain", 2_000, 2, "b"))
    source = TableSource(asking.resolver)
    found = source.resolve("d", exp.to_table("vt"), statement("SELECT v FROM vt"))
    assert [t.name for t in source.tables(found)] == ["plain"]
    assert asking.rows("SELECT v FROM vt") == [(1,), (2,)]


# -------------------------------------------------------------------- other deployments


def test_external_streams_give_what_a_query_needs_of_them(asking: Asking) -> None:
    asking.far = Far(FAR)
    sql = "SELECT f.v FROM far f JOIN plain p ON f.ts = p.ts WHERE f.v > 1"
    assert sorted(asking.rows(sql)) == [(5,), (6,)]
    ((name, columns, conditions),) = asking.far.asked
    assert (name, sorted(columns)) == ("far", ["ts", "v"])
    assert conditions == ["f.v > 1"]


def test_nobody_is_asked_for_a_query_that_is_wrong(asking: Asking) -> None:
    asking.far = Far(FAR)
    sql = "SELECT f.v FROM far f JOIN plain p ON f.ts = p.ts WHERE TIMESTAMP 'noon' < p.ts"
    assert "'noon' is no time" in str(refusal(lambda: asking.rows(sql)))
    assert asking.far.asked == []


def test_places_in_the_other_log_come_when_they_are_named(asking: Asking) -> None:
    asking.far = Far(FAR)
    sql = "SELECT f._tp_sn FROM far f JOIN plain p ON f.ts = p.ts ORDER BY 1"
    assert asking.rows(sql) == [(1,), (2,)]
    assert asking.rows("SELECT _tp_sn, _tp_shard FROM plain WHERE v = 3") == [(1, 0)]


def test_windows_over_an_external_stream_read_all_of_it(asking: Asking) -> None:
    asking.far = Far(FAR)
    assert asking.rows("SELECT sum(v) AS s FROM far INTERVAL(1h)") == [(11,)]
    ((_, columns, conditions),) = asking.far.asked
    assert (columns, conditions) == (("ts", "v", "w"), [])


def test_a_query_of_one_deployment_is_answered_there(asking: Asking) -> None:
    asking.far = Far(FAR)
    asking.far.answer = pa.table({"n": [1]})
    assert asking.rows("SELECT count(*) FROM far") == [(1,)]
    assert asking.far.asked == []


def test_an_external_stream_as_a_table_has_its_names_and_types() -> None:
    made = as_table(FAR)
    assert (made.kind, made.topic, made.partitions) == ("plain", "", 0)
    assert made.columns == COLUMNS
    tagged = External(41, "d", "f", "penstock", (("h:1",),), "rd", "rt", COLUMNS, TAGS)
    assert as_table(tagged).kind == "stable"

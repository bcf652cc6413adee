"""Queries against the store's real DuckDB over real segments: what an attacker's text reaches, and
what everybody's does.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest

from penstock.catalog.model import Database, Table, TableVersion
from penstock.catalog.reader import CatalogReader
from penstock.catalog.view import Catalog
from penstock.errors import PenstockError
from penstock.sql.plan import Column
from penstock.types import ColumnType
from penstock.udf import UserFunction
from services.store.flush import flush
from services.store.partitions import Partitions, layout_of
from services.store.query import Queries, QueryLimits
from services.store.resolve import Resolver
from tests.unit.gateway.nowhere import NOWHERE

SECRET = "nobody reads this"
COLUMNS = (
    Column("ts", ColumnType("TIMESTAMP")),
    Column("v", ColumnType("INT")),
    Column("w", ColumnType("VARCHAR", length=64)),
)
TABLES = [
    Table(number, "d", name, "plain", "in.d", 1, "ms", (TableVersion(0, COLUMNS, ()),))
    for number, name in ((7, "mine"), (8, "theirs"))
]
#: under the names of functions of DuckDB's that read files and the environment
FUNCTIONS = [
    UserFunction(
        number,
        name,
        (ColumnType("VARCHAR", length=64),),
        ColumnType("VARCHAR", length=64),
        "",
        aggregate=True,
    )
    for number, name in ((20, "read_text"), (21, "getenv"))
]


class _Reader:
    catalog = Catalog([Database(1, "d"), *TABLES, *FUNCTIONS])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "root.password").write_text(SECRET)
    return tmp_path


@pytest.fixture
def queries(place: Path, rows: Callable[..., pl.DataFrame]) -> Queries:
    return opened(place, rows, 20.0)


def opened(place: Path, rows: Callable[..., pl.DataFrame], seconds: float) -> Queries:
    root = str(place / "segments")
    partitions = Partitions(root, lambda topic: 1)
    tail = partitions.open("in.d", 0)
    given = {
        t.id: rows((t.name, 1000, 1, f"{t.name} a", 0, 0), (t.name, 2000, 2, f"{t.name} b", 0, 1))
        for t in TABLES
    }
    tail.append(2, given, [], 1.0)
    frozen = tail.freeze()
    assert frozen is not None
    tail.thaw(flush(root, "in.d", 0, 1, frozen, {t.id: layout_of(t) for t in TABLES}, {}))
    tail.append(3, {7: rows(("mine", 3000, 3, "mine c", 0, 2))}, [], 1.0)
    resolver = Resolver(cast(CatalogReader, _Reader()), NOWHERE)
    return Queries(partitions, resolver, QueryLimits("256MB", 1, 1_000_000, seconds, "0B"))


def ask(queries: Queries, sql: str) -> list[dict[str, Any]]:
    return queries.run(sql, "d").to_pylist()


def test_segments_and_tail_are_one_table(queries: Queries) -> None:
    assert [r["v"] for r in ask(queries, "SELECT v FROM mine")] == [1, 2, 3]
    assert ask(queries, "SELECT count(*) FROM mine a JOIN mine b ON a.v = b.v") == [{"count(*)": 3}]
    assert ask(queries, "SELECT count(*) AS n FROM mine INTERVAL(2s)") == [{"n": 1}, {"n": 2}]
    assert ask(
        queries, "SELECT a.v, b.w FROM mine a, theirs b WHERE a.v = b.v AND b.w LIKE '%b'"
    ) == [{"v": 2, "w": "theirs b"}]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT `1 /*`('*/ , who FROM read_parquet($$PLACE/segments/*/*/*.parquet$$) --')",
        "SELECT `read_text`('PLACE/root.password')",
        "SELECT read_text('PLACE/root.password') FROM mine",
        "SELECT `content FROM read_text('PLACE/root.password') --`",
        "SELECT content FROM `read_text('PLACE/root.password')`",
        "SELECT content FROM `PLACE/root.password`",
        "SELECT * FROM `PLACE/segments/8/in.d/0/*.parquet`",
        "SELECT w FROM mine WHERE `1=1 UNION SELECT content FROM read_text`('PLACE/root.password') = 1",
        "SELECT v AS 'x, content FROM read_text(''PLACE/root.password'') --' FROM mine",
        "SELECT v AS `x\", content FROM read_text('PLACE/root.password') --` FROM mine",
        "SELECT v FROM mine AS `m, read_text('PLACE/root.password') --`",
        "SELECT v FROM mine ORDER BY `1; COPY (SELECT 1) TO 'PLACE/written' --`",
        "SELECT v FROM mine GROUP BY v HAVING `v) , read_text`('PLACE/root.password')",
        "SELECT v FROM mine WHERE v IN (SELECT `1) UNION SELECT content FROM read_text`('PLACE/root.password'))",
        "SELECT CASE WHEN `1 THEN 1 END, content FROM read_text`('PLACE/root.password') THEN 1 END FROM mine",
        "SELECT v FROM mine JOIN theirs USING (`v), read_text('PLACE/root.password') --`)",
        "SELECT getenv('HOME')",
        "SELECT current_setting('home_directory')",
        "SELECT duckdb_settings()",
        "SELECT sleep(100)",
        "SELECT range(1000000000)",
        "SELECT generate_series(1, 1000000000)",
        "SELECT lpad('x', 1000000000, 'y')",
        "SELECT query('SELECT 1')",
        "SELECT error('x')",
        "SELECT glob('PLACE/*')",
        "SELECT sniff_csv('PLACE/root.password')",
        "SELECT columns('.*') FROM mine",
        "SELECT `getvariable`('x')",
        "SELECT write_log('x')",
        "SELECT nextval('x')",
        "SELECT `COPY`('x')",
        "SELECT `\u2028read_text`('x')",
        "SELECT 1; SELECT 2",
        "SELECT 1; COPY (SELECT 1) TO 'PLACE/written'",
        "SELECT v FROM `_penstock_1`",
        "SELECT v FROM mine, `_penstock_1`",
        "SELECT * FROM pg_catalog.pg_settings",
        "SELECT * FROM duckdb_settings",
        "SELECT * FROM sqlite_master",
        "SELECT v FROM mine AS `a\0b`",
        "SELECT '\ud800' FROM mine",
    ],
)
def test_no_text_of_a_user_becomes_text_of_the_engine(
    queries: Queries, place: Path, sql: str
) -> None:
    try:
        found = ask(queries, sql.replace("PLACE", str(place)))
    except PenstockError as refused:
        assert refused.code not in ("E_INTERNAL",)
        found = []
    assert SECRET not in str(found)
    assert "theirs" not in str(found)
    assert not (place / "written").exists()


@pytest.mark.parametrize("name", ["read_text", "`1 /*`", "getenv", "sqrtt", "median2"])
def test_an_unknown_function_is_refused_with_its_place(queries: Queries, name: str) -> None:
    with pytest.raises(PenstockError) as caught:
        ask(queries, f"SELECT v, {name}(w) FROM mine")
    assert caught.value.code in ("E_UNKNOWN_FUNCTION", "E_NONWINDOW_AGG")
    assert caught.value.column == 11


def test_only_the_segments_of_the_querys_tables_can_be_opened(
    place: Path, rows: Callable[..., pl.DataFrame]
) -> None:
    from penstock.duck import Engine

    queries = opened(place, rows, 20.0)
    images = queries.images()
    images.of(TABLES[0])
    engine = Engine(QueryLimits("256MB", 1, 10, 5.0, "0B").bounds)
    engine.confine(images.files())
    (mine,) = images.files()
    assert engine.con.execute(f"SELECT count(*) FROM read_parquet('{mine}')").fetchone() == (2,)
    (theirs,) = [p for p in (place / "segments").rglob("*.parquet") if str(p) != mine]
    for text in (
        f"SELECT * FROM read_parquet('{theirs}')",
        f"SELECT * FROM read_parquet('{place}/segments/**/*.parquet')",
        "SET threads=2",
        f"COPY (SELECT 1) TO '{theirs}'",
        f"COPY (SELECT 1) TO '{place}/new'",
        "INSTALL httpfs",
        f"ATTACH '{place}/db'",
        f"SELECT * FROM read_text('{place}/root.password')",
        "SET enable_external_access=true",
        f"SELECT * FROM glob('{place}/*')",
        "SELECT getenv('HOME')",
    ):
        with pytest.raises(Exception, match="disabled|locked|cannot be|does not exist|Cannot"):
            engine.con.execute(text)
    engine.close()


def test_an_answer_of_too_many_bytes_is_refused_before_it_is_all_there() -> None:
    from penstock.duck import Bounds, Engine

    engine = Engine(Bounds("256MB", 1, 20.0, answer=10_000_000))
    engine.confine()
    try:
        assert engine.answer("SELECT range FROM range(10000)").num_rows == 10_000
        # 20 TB, if it were all made
        with pytest.raises(PenstockError, match="more than 10000000 bytes") as caught:
            engine.answer("SELECT repeat('x', 2000) FROM range(10000000000)")
        assert caught.value.code == "E_RESULT_TOO_LARGE"
        assert engine.answer("SELECT 1").num_rows == 1
    finally:
        engine.close()


def test_a_query_that_takes_too_long_is_ended(
    place: Path, rows: Callable[..., pl.DataFrame]
) -> None:
    queries = opened(place, rows, 1.0)
    many = ", ".join(f"mine t{i}" for i in range(30))
    began = time.monotonic()
    with pytest.raises(PenstockError) as caught:
        ask(queries, f"SELECT sum(t0.v * t29.v) FROM {many}")
    assert caught.value.code == "E_TIMEOUT"
    assert time.monotonic() - began < 15


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT length(repeat('a', 1000000000)) AS n",
        "SELECT length(repeat(repeat(repeat('a', 60000), 60000), 60000)) AS n",
        "SELECT length(replace(repeat('a', 60000), 'a', repeat('b', 60000))) AS n",
        "SELECT length(" + "replace(" * 15 + "'aaaa'" + ", 'a', 'aaaa')" * 15 + ") AS n",
        "SELECT length(x) AS n FROM "
        + "(SELECT concat(x, x, x, x, x, x, x, x) AS x FROM " * 15
        + "(SELECT w AS x FROM mine)"
        + ")" * 15,
        "SELECT length(x) AS n FROM "
        + "(SELECT concat_ws(x, x, x, x) AS x FROM " * 15
        + "(SELECT w AS x FROM mine)"
        + ")" * 15,
        "SELECT length(" + "hex(" * 40 + "w" + ")" * 40 + ") AS n FROM mine",
        "SELECT length(" + "bin(" * 40 + "w" + ")" * 40 + ") AS n FROM mine",
        "SELECT length(" + "CAST(to_json(" * 20 + "w" + ") AS VARCHAR)" * 20 + ") AS n FROM mine",
        "SELECT greatest(" * 20 + "1, 2" + ")" * 20,
    ],
)
def test_a_text_does_not_grow_without_bound(queries: Queries, sql: str) -> None:
    try:
        assert all((r.get("n") or 0) <= 4 * 65517 for r in ask(queries, sql))
    except PenstockError as refused:
        assert refused.code in ("E_QUERY", "E_FUNCTION_ARGUMENT", "E_SYNTAX")


def test_like_takes_linear_time(queries: Queries) -> None:
    pattern = "%a_" * 25 + "b"
    began = time.monotonic()
    assert ask(
        queries, f"SELECT count(*) AS n FROM mine WHERE repeat('a', 60000) LIKE '{pattern}'"
    ) == [{"n": 0}]
    assert time.monotonic() - began < 10
    assert ask(
        queries,
        "SELECT w LIKE 'm_ne%b' AS a, w LIKE '%%n%_ %' AS b, w LIKE 'm\\_ne%' AS c FROM mine LIMIT 1 OFFSET 1",
    ) == [{"a": True, "b": True, "c": False}]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + "+".join(["v"] * 401) + " AS x FROM mine",
        "SELECT " + "".join(f"v{'+-*/%'[i % 5]}" for i in range(400)) + "1 AS x FROM mine",
        "SELECT v AS x FROM mine WHERE " + " OR ".join(["v = 1"] * 401),
        "SELECT v AS x FROM mine WHERE v IN (" + ", ".join(map(str, range(3000))) + ")",
        "SELECT "
        + "(" * 22
        + "+".join(["v"] * 300)
        + ("+" + "-".join(["v"] * 300) + ")") * 22
        + " AS x FROM mine",
        "SELECT v AS x FROM mine WHERE " + "NOT " * 40 + "v = 1",
        "SELECT " + "CASE WHEN v = 1 THEN " * 20 + "v" + " END" * 20 + " AS x FROM mine",
        "SELECT " + "-" * 1 + "(-" * 20 + "v" + ")" * 20 + " AS x FROM mine",
        "SELECT x FROM " + "(SELECT x FROM " * 20 + "(SELECT v AS x FROM mine)" + ")" * 20,
        "SELECT v AS x FROM mine" + " UNION SELECT v FROM mine" * 48,
    ],
)
def test_long_and_deep_queries_are_answered_or_refused_in_words(queries: Queries, sql: str) -> None:
    try:
        assert ask(queries, sql)
    except PenstockError as refused:
        assert refused.code in ("E_QUERY", "E_SYNTAX")
        assert any(word in refused.message for word in ("xpression", "nested", "in a row"))


def test_a_database_is_used_again_but_not_after_users_functions(
    place: Path, rows: Callable[..., pl.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = opened(place, rows, 20.0)
    assert [r["v"] for r in ask(queries, "SELECT v FROM mine")] == [1, 2, 3]
    (first,) = queries._databases._idle
    assert [r["v"] for r in ask(queries, "SELECT v FROM mine WHERE v > 1")] == [2, 3]
    (again,) = queries._databases._idle
    assert again is first
    ask(queries, "SELECT v FROM theirs")
    assert len(queries._databases._idle) == 2
    monkeypatch.setattr("services.store.query_run.QueryRun.has_functions", True)
    ask(queries, "SELECT v FROM mine")
    assert [database is first for database in queries._databases._idle] == [False]

"""A database that is used again knows nothing of the query before but its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.duck import Bounds, Databases, Engine
from penstock.duck.helpers import Installed
from penstock.sql.functions.duckdb import Macro
from penstock.sql.source import Source

BOUNDS = Bounds("256MB", 1, 20.0)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = str(tmp_path / "mine.parquet")
    pq.write_table(pa.table({"v": [1, 2]}), path)
    return path


@pytest.fixture
def databases() -> Databases:
    return Databases(BOUNDS, 2)


@pytest.fixture
def engines(databases: Databases, file: str) -> Iterator[tuple[Engine, Engine]]:
    """One that has left its database, and one that has taken it."""
    first = Engine(BOUNDS, databases)
    first.confine([file])
    first.con.register("rows", pa.table({"secret": [1]}))
    first.con.execute(f"CREATE TEMP VIEW hidden AS FROM read_parquet('{file}')")
    database = first._database
    first.keep()
    first.close()
    second = Engine(BOUNDS, databases)
    second.confine([file])
    assert second._database is database
    yield first, second
    second.close()


def test_views_and_rows_end_with_their_query(engines: tuple[Engine, Engine]) -> None:
    _, second = engines
    for name in ("rows", "hidden"):
        with pytest.raises(duckdb.CatalogException):
            second.con.execute(f"FROM {name}")


def test_it_stays_confined_and_keeps_its_settings(
    engines: tuple[Engine, Engine], file: str, tmp_path: Path
) -> None:
    _, second = engines
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"v": [3]}), str(other))
    assert second.con.execute(f"SELECT sum(v) FROM read_parquet('{file}')").fetchone() == (3,)
    for text in (f"FROM read_parquet('{other}')", f"FROM glob('{tmp_path}/*')", "SET threads=2"):
        with pytest.raises(duckdb.Error):
            second.con.execute(text)
    assert second.con.execute("SELECT 1 / 0, current_setting('TimeZone')").fetchone() == (
        None,
        "UTC",
    )


def test_it_serves_one_query_at_a_time_and_only_of_the_same_files(
    engines: tuple[Engine, Engine], databases: Databases, file: str
) -> None:
    _, second = engines
    for files in ([file], [], [file, file + "2"]):
        third = Engine(BOUNDS, databases)
        third.confine(files)
        assert third._database is not second._database
        third.close()


def test_without_keep_it_is_closed(databases: Databases, file: str) -> None:
    engine = Engine(BOUNDS, databases)
    engine.confine([file])
    database = engine._database
    assert database is not None
    engine.close()
    with pytest.raises(duckdb.ConnectionException):
        database.connection.execute("SELECT 1")


def test_the_longest_unused_is_closed(databases: Databases) -> None:
    taken = {name: databases.take(frozenset({name})) for name in "abc"}
    for database in taken.values():
        databases.give_back(database)
    with pytest.raises(duckdb.ConnectionException):
        taken["a"].connection.execute("SELECT 1")
    assert databases.take(frozenset({"b"})) is taken["b"]
    assert databases.take(frozenset({"a"})) is not taken["a"]
    assert databases.take(frozenset({"c"})) is taken["c"]


def test_a_macro_is_made_once_for_all_queries_of_a_database(databases: Databases) -> None:
    inner = Macro("_penstock_inner", ("(x) AS x + 1",))
    outer = Macro("_penstock_outer", ("(x) AS _penstock_inner(x) * 2",), calls=(inner,))
    for _ in range(2):
        engine = Engine(BOUNDS, databases)
        engine.confine()
        Installed(engine.con, Source(""), engine.macros).add([outer])
        assert engine.answer("SELECT _penstock_outer(1) AS v").to_pylist() == [{"v": 4}]
        assert engine.macros == {"_penstock_inner": inner, "_penstock_outer": outer}
        engine.keep()
        engine.close()
    other = Macro("_penstock_inner", ("(x) AS x + 5",))
    engine = Engine(BOUNDS, databases)
    engine.confine()
    assert engine.answer("SELECT _penstock_outer(1) AS v").to_pylist() == [{"v": 4}]
    Installed(engine.con, Source(""), engine.macros).add([other])
    assert engine.answer("SELECT _penstock_inner(1) AS v").to_pylist() == [{"v": 6}]
    engine.close()

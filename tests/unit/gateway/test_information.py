from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import redis

from gateway.information import Information
from penstock.access import Access
from penstock.catalog.model import Child, Database, Table, TableVersion
from penstock.catalog.view import Catalog
from penstock.errors import BusError, SqlSemanticError
from penstock.sql import parse_one
from penstock.sql.plan import Column
from penstock.sql.statements import Describe, Query, Show, ShowCreate
from penstock.types import ColumnType

COLUMNS = (Column("ts", ColumnType("TIMESTAMP")), Column("v", ColumnType("DOUBLE")), Column("k", ColumnType("INT")))
STABLE = Table(100, "Db", "m", "stable", "in.db", 4, "ms", (TableVersion(101, COLUMNS, (Column("site", ColumnType("VARCHAR", 8)),)),))
PLAIN = replace(
    STABLE, id=102, name="p", kind="plain", versions=(TableVersion(103, COLUMNS),), key_column="v", topic="in.db.p", partitions=2
)
CATALOG = Catalog([Database(99, "Db"), STABLE, PLAIN, Child(104, "Db", 100, "c1", ("x",))])
#: nobody listens there: what needs Redis says so
INFORMATION = Information(lambda: CATALOG, redis.Redis(port=1, socket_connect_timeout=0.2), "1.0", Access(lambda: CATALOG, "root"), "root")


def ask(text: str, database: str | None = "db") -> list[tuple[Any, ...]]:
    statement = parse_one(text)
    if isinstance(statement, Show):
        answer = INFORMATION.show(statement, database)
    elif isinstance(statement, ShowCreate):
        answer = INFORMATION.show_create(statement, database)
    elif isinstance(statement, Describe):
        answer = INFORMATION.describe(statement, "Db", STABLE if statement.table.name == "m" else PLAIN, None)
    else:
        assert isinstance(statement, Query)
        found = INFORMATION.query(statement.query)
        assert found is not None
        answer = found
    return [tuple(row.values()) for row in answer.to_pylist()]


def test_lists_that_the_catalog_alone_answers() -> None:
    assert ask("SHOW STABLES") == [("m",)]
    assert ask("SHOW Db.STABLES LIKE '%x%'", None) == []
    assert ask("DESCRIBE m")[-1] == ("site", "VARCHAR", 8, "TAG")
    assert ask("DESCRIBE p")[1] == ("v", "DOUBLE", 8, "COMPOSITE KEY")
    assert ask("SHOW STREAMS") == []
    assert ask("SELECT tag_value FROM information_schema.ins_tags") == [("x",)]
    counts = ask("SELECT table_name, count(*) FROM information_schema.ins_columns GROUP BY table_name ORDER BY 1")
    assert counts == [("m", 4), ("p", 3)]


def test_show_create_can_be_run_again() -> None:
    for text in ("SHOW CREATE DATABASE db", "SHOW CREATE STABLE m", "SHOW CREATE TABLE p", "SHOW CREATE TABLE c1"):
        parse_one(ask(text)[0][1])
    assert "WITH (topic='own', partitions=2)" in ask("SHOW CREATE TABLE p")[0][1]


def test_queries_without_a_table() -> None:
    assert ask("SELECT SERVER_VERSION()") == [("1.0",)]
    assert ask("SELECT 1 + 1, 'x'") == [(2, "x")]
    statement = parse_one("SELECT * FROM db.m")
    assert isinstance(statement, Query)
    assert INFORMATION.query(statement.query) is None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT * FROM information_schema.ins_nothing", "E_NO_TABLE"),
        ("SELECT nothing FROM information_schema.ins_columns", "E_SEMANTIC"),
        ("SELECT last_row(*)", "E_SEMANTIC"),
        ("SHOW CREATE STREAM s", "E_NO_STREAM"),
        ("SHOW CREATE TABLE nothing", "E_NO_TABLE"),
    ],
)
def test_what_there_is_not(text: str, code: str) -> None:
    with pytest.raises(SqlSemanticError) as caught:
        ask(text)
    assert caught.value.code == code


def test_the_database_must_be_known() -> None:
    with pytest.raises(SqlSemanticError, match="which database"):
        ask("SHOW TABLES", None)


def test_redis_down_is_said() -> None:
    with pytest.raises(BusError) as caught:
        ask("SHOW TABLES")
    assert caught.value.code == "E_REDIS_DOWN"

"""Statements as the dialect writes them, read by Penstock's own parser."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from sqlalchemy import Column, MetaData, Table
from sqlalchemy.exc import CompileError
from sqlalchemy.schema import CreateColumn, CreateIndex, CreateSchema, CreateTable, DropSchema
from sqlglot import exp

from penstock.sql import parse_one
from penstock.sql import statements as st
from penstock.sqlalchemy.columns import type_of
from penstock.sqlalchemy.dialect import PenstockDialect

DIALECT = PenstockDialect()
METERS = Table(
    "meters",
    MetaData(),
    Column("ts", sa.DateTime, primary_key=True),
    Column("v", sa.Float(53)),
    Column("n", sa.Integer, index=True, nullable=False),
    Column("select", sa.String(16)),
    schema="power",
)


def written(item: sa.ClauseElement) -> str:
    return " ".join(str(item.compile(dialect=DIALECT)).split())


def test_create_table_says_columns_alone() -> None:
    text = written(CreateTable(METERS))
    assert text == (
        "CREATE TABLE `power`.`meters`"
        " ( `ts` TIMESTAMP, `v` DOUBLE, `n` INT, `select` VARCHAR(16) )"
    )
    read = parse_one(text)
    assert isinstance(read, st.CreateTable)
    assert [c.name for c in read.columns] == ["ts", "v", "n", "select"]


def test_an_index_is_nothing_to_make() -> None:
    (index,) = METERS.indexes
    assert written(CreateIndex(index)) == "SELECT 1"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (sa.Boolean(), "BOOL"),
        (sa.SmallInteger(), "SMALLINT"),
        (sa.BigInteger(), "BIGINT"),
        (sa.Float(), "DOUBLE"),
        (sa.Float(24), "FLOAT"),
        (sa.REAL(), "DOUBLE"),
        (sa.Double(), "DOUBLE"),
        (sa.Numeric(12, 3), "DECIMAL(12, 3)"),
        (sa.Numeric(), "DOUBLE"),
        (sa.Text(), "VARCHAR(65517)"),
        (sa.Unicode(8), "VARCHAR(8)"),
        (sa.NVARCHAR(8), "NCHAR(8)"),
        (sa.LargeBinary(), "VARBINARY(65517)"),
        (sa.TIMESTAMP(timezone=True), "TIMESTAMP"),
    ],
)
def test_types(kind: sa.types.TypeEngine[object], text: str) -> None:
    assert written(CreateColumn(Column("c", kind))) == f"`c` {text}"


@pytest.mark.parametrize("kind", [sa.Date(), sa.Time()])
def test_types_that_are_not_there_say_what_to_take(kind: sa.types.TypeEngine[object]) -> None:
    with pytest.raises(CompileError, match="Penstock has no .*: use"):
        written(CreateColumn(Column("c", kind)))


@pytest.mark.parametrize(
    ("text", "length", "expected"),
    [
        ("VARCHAR", 16, "VARCHAR(16)"),
        ("DECIMAL(10,2)", 8, "DECIMAL(10, 2)"),
        ("TINYINT UNSIGNED", 1, "SMALLINT"),
        ("INT", 4, "INT"),
        ("TIMESTAMP", 8, "TIMESTAMP"),
        ("VARBINARY", 5, "VARBINARY(5)"),
        ("BOOL", 1, "BOOL"),
    ],
)
def test_types_of_described_columns(text: str, length: int, expected: str) -> None:
    assert type_of(text, length).compile(dialect=DIALECT) == expected


def test_queries_are_penstocks() -> None:
    c = METERS.c
    query = sa.select(c.ts, sa.func.avg(c.v).label("mean")).where(c["select"] == "x")
    for one in (
        query.group_by(c.ts).order_by(c.ts).limit(3).offset(2),
        query.group_by(c.ts).offset(2),
        sa.select(sa.func.now(), sa.cast(c.v, sa.String(5))),
        sa.select(METERS).where(c.n.in_([1, 2])),
    ):
        text = written(
            one.compile(dialect=DIALECT, compile_kwargs={"literal_binds": True}).statement
        )
        filled = str(one.compile(dialect=DIALECT, compile_kwargs={"literal_binds": True}))
        assert "`power`.`meters`" in text
        assert isinstance(parse_one(filled), st.Query)


def test_schemas_are_databases() -> None:
    assert written(CreateSchema("power", if_not_exists=True)) == (
        "CREATE DATABASE IF NOT EXISTS `power`"
    )
    assert written(DropSchema("power")) == "DROP DATABASE `power`"


@pytest.mark.parametrize("name", ["m`; DROP DATABASE x; --", 'm"; --', "m`", "``", "select"])
def test_names_stay_names(name: str) -> None:
    odd = Table(name, MetaData(), Column("a'b`", sa.Integer))
    read = parse_one(str(sa.select(odd).compile(dialect=DIALECT)))
    assert isinstance(read, st.Query)
    (table,) = read.query.find_all(exp.Table)
    assert table.name == odd.name
    assert read.query.expressions[0].name == "a'b`"


@pytest.mark.parametrize(
    ("statement", "words"),
    [(sa.update(METERS).values(n=1), "no UPDATE: INSERT a row with the same time again")],
)
def test_what_is_refused_says_what_to_do(statement: sa.ClauseElement, words: str) -> None:
    with pytest.raises(CompileError, match=words):
        written(statement)


def test_foreign_keys_are_refused() -> None:
    table = Table("t", METERS.metadata, Column("ts", sa.ForeignKey("power.meters.ts")))
    with pytest.raises(CompileError, match="no foreign keys"):
        written(CreateTable(table))


@pytest.mark.parametrize(
    ("url", "address", "user", "database"),
    [
        ("penstock://root:p%40ss@db:7701/power", "http://db:7701", "root", "power"),
        ("penstock://db", "http://db:7700", "root", None),
        ("penstock://ann:x@[::1]/p?tls=1", "https://[::1]:7700", "ann", "p"),
        ("penstock://ann:x@db/p?ca=/ca.pem&timezone=Europe/Berlin", "https://db:7700", "ann", "p"),
    ],
)
def test_urls(url: str, address: str, user: str, database: str | None) -> None:
    (found,), given = DIALECT.create_connect_args(sa.make_url(url))
    assert (found, given["user"], given["database"]) == (address, user, database)
    assert sa.make_url(url).get_dialect() is PenstockDialect


def test_options_of_an_address() -> None:
    url = sa.make_url("penstock://db/p?timeout=2.5&token=abc")
    _, given = DIALECT.create_connect_args(url)
    assert given["options"].timeout == 2.5 and given["token"] == "abc"
    with pytest.raises(sa.exc.ArgumentError, match="charset is no option .*: ca, "):
        DIALECT.create_connect_args(sa.make_url("penstock://db/p?charset=utf8"))

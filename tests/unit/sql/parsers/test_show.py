"""SHOW, DESCRIBE and DELETE."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.sql.dialect import to_sql
from penstock.sql.parsers.show import ShowParser
from penstock.sql.statements import (
    Delete,
    Describe,
    Name,
    Show,
    ShowCreate,
    ShowDistribution,
    ShowIndexes,
    ShowTableTags,
    ShowTags,
)
from tests.unit.sql.reading import read, refusal, refused

RESERVED_FROM = "expected a tag, tbname or _tags, found the reserved word FROM"


def shown(text: str) -> Any:
    return read(ShowParser, text, ShowParser.show)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("databases", Show(what="DATABASES")),
        ("db.TABLES", Show(what="TABLES", database="db")),
        ("TABLES FROM db", Show(what="TABLES", database="db")),
        ("STABLES LIKE 'm%'", Show(what="STABLES", like="m%")),
        ("db.STREAMS LIKE 's'", Show(what="STREAMS", database="db", like="s")),
        ("NORMAL TABLES", Show(what="NORMAL TABLES")),
        ("CHILD TABLES LIKE 'c%'", Show(what="CHILD TABLES", like="c%")),
        ("CHILD db.TABLES", Show(what="CHILD TABLES", database="db")),
        ("db.CHILD TABLES", Show(what="CHILD TABLES", database="db")),
        ("NORMAL TABLES FROM db", Show(what="NORMAL TABLES", database="db")),
        ("child.TABLES", Show(what="TABLES", database="child")),
        ("indexes.TABLES", Show(what="TABLES", database="indexes")),
        ("USER DATABASES", Show(what="USER DATABASES")),
        ("SYSTEM DATABASES LIKE 'i%'", Show(what="SYSTEM DATABASES", like="i%")),
        ("TAGS FROM t", ShowTags(table=Name("t"))),
        ("TAGS FROM db.t", ShowTags(table=Name("t", "db"))),
        ("TAGS FROM t FROM db", ShowTags(table=Name("t", "db"))),
        ("TABLE TAGS FROM m FROM db", ShowTableTags(stable=Name("m", "db"))),
        (
            "TABLE TAGS tbname, `a b` FROM db.m",
            ShowTableTags(stable=Name("m", "db"), columns=(Name("tbname"), Name("a b"))),
        ),
        ("TABLE DISTRIBUTED db.m", ShowDistribution(table=Name("m", "db"))),
        ("INDEXES FROM m FROM db", ShowIndexes(table=Name("m", "db"))),
        ("EXTERNAL STREAMS", Show(what="EXTERNAL STREAMS")),
        ("db.EXTERNAL STREAMS", Show(what="EXTERNAL STREAMS", database="db")),
        ("MATERIALIZED VIEWS", Show(what="VIEWS")),
        ("VIEWS", Show(what="VIEWS")),
        ("USER PRIVILEGES", Show(what="GRANTS")),
        ("CREATE DATABASE d", ShowCreate(kind="database", name=Name("d"))),
        ("CREATE TABLE db.t", ShowCreate(kind="table", name=Name("t", "db"))),
        ("CREATE VTABLE t", ShowCreate(kind="table", name=Name("t"))),
        ("CREATE STABLE t", ShowCreate(kind="stable", name=Name("t"))),
        ("CREATE STREAM s", ShowCreate(kind="stream", name=Name("s"))),
        ("CREATE EXTERNAL STREAM s", ShowCreate(kind="external stream", name=Name("s"))),
        ("CREATE MATERIALIZED VIEW v", ShowCreate(kind="materialized view", name=Name("v"))),
        ("CREATE VIEW v", ShowCreate(kind="materialized view", name=Name("v"))),
    ],
)
def test_show(text: str, wanted: Any) -> None:
    assert shown(text) == wanted


def test_describe_and_delete() -> None:
    assert read(ShowParser, "db.t", ShowParser.describe) == Describe(table=Name("t", "db"))
    assert read(ShowParser, "FROM db.t", ShowParser.delete) == Delete(table=Name("t", "db"))
    found = read(ShowParser, "FROM t WHERE ts < 5 AND a", ShowParser.delete)
    assert to_sql(found.where) == "ts < 5 AND a"


@pytest.mark.parametrize(
    ("name", "text", "column", "message"),
    [
        ("show", "TABELS", 1, "expected what to show, found TABELS"),
        ("show", "TABLES LIKE x", 13, "expected a string, found x"),
        ("show", "EXTERNAL TABLES", 1, "expected what to show, found EXTERNAL"),
        ("show", "CHILD db.STABLES", 10, "expected TABLES, found STABLES"),
        ("show", "EXTERNAL db.TABLES", 1, "expected CHILD or NORMAL, found EXTERNAL"),
        ("show", "TAGS", 5, "expected FROM, but the statement ends"),
        ("show", "TAGS FROM db.t FROM d", 16, "the statement should end here, found FROM"),
        ("show", "TABLE m", 7, "expected TAGS or DISTRIBUTED, found m"),
        ("show", "TABLE TAGS site, FROM m", 18, RESERVED_FROM),
        ("show", "CREATE USER u", 8, "expected DATABASE, STABLE, TABLE or STREAM, found USER"),
        ("show", "CREATE EXTERNAL VIEW v", 17, "expected STREAM, found VIEW"),
        ("show", "db.TABLES FROM db", 11, "the statement should end here, found FROM"),
        ("describe", "1", 1, "expected a table name, found 1"),
        ("delete", "t", 1, "expected FROM, found t"),
        ("delete", "FROM t WHERE", 13, "expected an expression, but the statement ends"),
    ],
)
def test_a_fault_is_refused_at_its_place(name: str, text: str, column: int, message: str) -> None:
    call = lambda: read(ShowParser, text, lambda p: getattr(p, name)())  # noqa: E731
    assert refused(call) == ("E_SYNTAX", 1, column, message)


def test_a_misspelt_subject_gets_a_hint() -> None:
    assert refusal(lambda: shown("TABELS")).hint.startswith("did you mean TABLES?")

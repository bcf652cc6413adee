"""CREATE and DROP by the kind of object, functions and snodes."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.sql.parsers.ddl import DdlParser
from penstock.sql.statements import (
    CreateChildren,
    CreateDatabase,
    CreateFunction,
    CreateSnode,
    CreateStable,
    CreateTable,
    Drop,
    Name,
)
from penstock.types import ColumnType
from tests.unit.sql.reading import read, reader, refused

INT = ColumnType("INT")
DOUBLE = ColumnType("DOUBLE")


def created(text: str) -> Any:
    return read(DdlParser, text, DdlParser.create)


def dropped(text: str) -> Any:
    return read(DdlParser, text, DdlParser.drop)


@pytest.mark.parametrize(
    ("text", "kind", "virtual"),
    [
        ("DATABASE d", CreateDatabase, None),
        ("TABLE t (ts TIMESTAMP)", CreateTable, False),
        ("VTABLE t (ts TIMESTAMP)", CreateTable, True),
        ("VIRTUAL TABLE t (ts TIMESTAMP)", CreateTable, True),
        ("STABLE t (ts TIMESTAMP) TAGS (a INT)", CreateStable, False),
        ("VIRTUAL STABLE t (ts TIMESTAMP) TAGS (a INT)", CreateStable, True),
        ("TABLE c USING s TAGS (1)", CreateChildren, False),
        ("VTABLE c USING s TAGS (1)", CreateChildren, True),
        ("SNODE ON DNODE 1", CreateSnode, None),
    ],
)
def test_the_word_behind_create_decides(text: str, kind: type, virtual: bool | None) -> None:
    found = created(text)
    assert type(found) is kind
    assert getattr(found, "virtual", None) == virtual


def test_a_function_in_python() -> None:
    text = "FUNCTION IF NOT EXISTS f (x INT, y DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'code'"
    assert created(text) == CreateFunction(
        name="f",
        parameters=(("x", INT), ("y", DOUBLE)),
        returns=DOUBLE,
        code="code",
        if_not_exists=True,
    )
    other = "AGGREGATE FUNCTION f (x INT) AS 'c' LANGUAGE 'Python' BUFSIZE 64 OUTPUTTYPE INT"
    parser = reader(DdlParser, other)
    assert parser.create() == CreateFunction(
        name="f", parameters=(("x", INT),), returns=INT, code="c", aggregate=True
    )
    assert parser.notices == ["BUFSIZE has no meaning here and is ignored"]


def test_replacing_is_said_by_the_caller() -> None:
    rule = lambda p: p.create_function(or_replace=True, aggregate=False)  # noqa: E731
    assert read(DdlParser, "f (x INT) RETURNS INT AS 'c'", rule).or_replace


@pytest.mark.parametrize(
    ("text", "kind", "names", "if_exists"),
    [
        ("DATABASE d", "database", [Name("d")], [False]),
        ("DATABASE IF EXISTS d", "database", [Name("d")], [True]),
        (
            "TABLE a, IF EXISTS db.b, c",
            "table",
            [Name("a"), Name("b", "db"), Name("c")],
            [False, True, False],
        ),
        ("VTABLE v", "table", [Name("v")], [False]),
        ("STABLE IF EXISTS db.s", "stable", [Name("s", "db")], [True]),
        ("STREAM db.s", "stream", [Name("s", "db")], [False]),
        ("EXTERNAL STREAM db.s", "external stream", [Name("s", "db")], [False]),
        ("MATERIALIZED VIEW v", "materialized view", [Name("v")], [False]),
        ("VIEW v", "materialized view", [Name("v")], [False]),
        ("FUNCTION f", "function", [Name("f")], [False]),
        ("USER u", "user", [Name("u")], [False]),
        ("ROLE IF EXISTS r", "role", [Name("r")], [True]),
        ("SNODE ON DNODE 3", "snode", [Name("3")], [False]),
    ],
)
def test_dropping(text: str, kind: Any, names: list[Name], if_exists: list[bool]) -> None:
    assert dropped(text) == Drop(kind=kind, names=tuple(names), if_exists=tuple(if_exists))


@pytest.mark.parametrize(
    ("rule", "text", "column", "message"),
    [
        (created, "TABEL t", 1, "expected what to create, found TABEL"),
        (created, "AGGREGATE TABLE t", 11, "expected FUNCTION, found TABLE"),
        (created, "FUNCTION f (x INT) AS 'c'", 26, "expected RETURNS type, but the statement ends"),
        (
            created,
            "FUNCTION f (x INT) RETURNS INT",
            31,
            "expected AS 'code', but the statement ends",
        ),
        (
            created,
            "FUNCTION f (x INT) LANGUAGE C RETURNS INT AS 'c'",
            29,
            "functions are written in Python",
        ),
        (created, "FUNCTION f (x) RETURNS INT AS 'c'", 14, "expected a column type, found )"),
        (created, "SNODE 1", 7, "expected ON, found 1"),
        (dropped, "THING x", 1, "expected what to drop, found THING"),
        (dropped, "EXTERNAL TABLE x", 10, "expected STREAM, found TABLE"),
        (dropped, "MATERIALIZED x", 14, "expected VIEW, found x"),
        (dropped, "TABLE a,", 9, "expected a table name, but the statement ends"),
        (dropped, "STABLE a, b", 9, "the statement should end here, found ,"),
        (dropped, "DATABASE a.b", 11, "the statement should end here, found ."),
    ],
)
def test_a_fault_is_refused_at_its_place(rule: Any, text: str, column: int, message: str) -> None:
    assert refused(lambda: rule(text)) == ("E_SYNTAX", 1, column, message)

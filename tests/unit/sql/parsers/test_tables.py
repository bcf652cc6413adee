"""CREATE and ALTER of supertables, plain tables and child tables."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.sql.parsers.tables import TableParser
from penstock.sql.plan import Duration
from penstock.sql.statements import (
    AlterTable,
    ChildDef,
    ColumnDef,
    CreateChildren,
    CreateStable,
    CreateTable,
    Name,
    RelativeTime,
    TableOptions,
)
from penstock.types import ColumnType
from tests.unit.sql.reading import read, reader, refusal, refused

TS = ColumnDef("ts", ColumnType("TIMESTAMP"))
A = ColumnDef("a", ColumnType("INT"))
B = ColumnDef("b", ColumnType("INT"))
COLUMNS = "(ts TIMESTAMP, a INT)"


def table(text: str, virtual: bool = False) -> Any:
    return read(TableParser, text, lambda p: p.create_table(virtual))


def stable(text: str) -> Any:
    return read(TableParser, text, TableParser.create_stable)


def altered(text: str, stable: bool = False) -> Any:
    return read(TableParser, text, lambda p: p.alter_table(stable))


def test_without_tags_a_table_is_plain() -> None:
    assert table(f"IF NOT EXISTS db.t {COLUMNS} KEEP 7") == CreateTable(
        table=Name("t", "db"),
        columns=(TS, A),
        if_not_exists=True,
        options=TableOptions(keep=Duration(7, "d")),
    )


def test_with_tags_a_table_is_a_supertable() -> None:
    wanted = CreateStable(table=Name("t"), columns=(TS, A), tags=(B,))
    assert table(f"t {COLUMNS} TAGS (b INT)") == wanted
    assert stable(f"t {COLUMNS} TAGS (b INT)") == wanted


@pytest.mark.parametrize(("text", "virtual"), [("", False), (" VIRTUAL 1", True)])
def test_a_supertable_may_be_called_virtual_behind_its_tags(text: str, virtual: bool) -> None:
    assert stable(f"t {COLUMNS} TAGS (b INT){text}").virtual is virtual


def test_a_word_before_the_table_makes_it_virtual() -> None:
    text = "v (ts TIMESTAMP, a INT FROM t.x)"
    found = table(text, virtual=True)
    assert isinstance(found, CreateTable) and found.virtual
    assert found.columns[1].origin == (Name("t"), "x")


def test_child_tables_have_tags_of_their_own() -> None:
    assert table("c USING db.s (t1, t2) TAGS ('x', now)") == CreateChildren(
        children=(ChildDef(Name("c"), Name("s", "db"), ("t1", "t2"), ("x", RelativeTime("now"))),)
    )


def test_several_child_tables_need_no_comma_between_them() -> None:
    text = "IF NOT EXISTS a USING s TAGS (1) b USING s TAGS (2), IF NOT EXISTS c USING s TAGS (3)"
    children = table(text).children
    assert [(c.table.name, c.tag_values, c.if_not_exists) for c in children] == [
        ("a", (1,), True),
        ("b", (2,), False),
        ("c", (3,), True),
    ]


def test_a_virtual_child_says_where_its_columns_come_from() -> None:
    found = table("c (a FROM db.t.x, b FROM u.y) USING s TAGS (1)", virtual=True)
    assert found == CreateChildren(
        children=(
            ChildDef(
                Name("c"),
                Name("s"),
                None,
                (1,),
                False,
                (("a", (Name("t", "db"), "x")), ("b", (Name("u"), "y"))),
            ),
        ),
        virtual=True,
    )


def test_options_of_child_tables_give_notices() -> None:
    parser = reader(TableParser, "c USING s TAGS (1) TTL 5 COMMENT 'x' d USING s TAGS (2)")
    found = parser.create_table()
    assert isinstance(found, CreateChildren) and len(found.children) == 2
    assert [n.split()[0] for n in parser.notices] == ["TTL", "COMMENT"]


T = Name("t")
ALTERED: list[tuple[str, AlterTable]] = [
    ("t ADD COLUMN b INT", AlterTable(table=T, action="add_column", definition=B)),
    ("t ADD TAG b INT", AlterTable(table=T, action="add_tag", definition=B)),
    ("t DROP COLUMN b", AlterTable(table=T, action="drop_column", name="b")),
    ("t DROP TAG b", AlterTable(table=T, action="drop_tag", name="b")),
    ("t MODIFY COLUMN b INT", AlterTable(table=T, action="modify_column", definition=B)),
    ("t MODIFY TAG b INT", AlterTable(table=T, action="modify_tag", definition=B)),
    ("t RENAME TAG b c", AlterTable(table=T, action="rename_tag", name="b", new_name="c")),
    (
        "t SET TAG a = 1, b = 'x'",
        AlterTable(table=T, action="set_tag", values=(("a", 1), ("b", "x"))),
    ),
    ("t ALTER COLUMN a SET NULL", AlterTable(table=T, action="set_origin", name="a")),
    (
        "t ALTER COLUMN a SET u.x",
        AlterTable(table=T, action="set_origin", name="a", origin=(Name("u"), "x")),
    ),
    (
        "t KEEP 3 COMMENT 'x'",
        AlterTable(table=T, action="options", options=TableOptions("x", Duration(3, "d"))),
    ),
    ("t COMMENT 'x'", AlterTable(table=T, action="options", options=TableOptions("x"))),
]


@pytest.mark.parametrize(("text", "wanted"), ALTERED, ids=[a[0] for a in ALTERED])
def test_what_is_altered(text: str, wanted: AlterTable) -> None:
    assert altered(text) == wanted
    assert altered(text, stable=True).stable


@pytest.mark.parametrize(
    ("rule", "text", "column", "message"),
    [
        (stable, f"t {COLUMNS}", 24, "expected TAGS, but the statement ends"),
        (stable, f"t {COLUMNS} TAGS (A INT)", 31, '"A" is defined twice'),
        (stable, f"t {COLUMNS} TAGS ()", 31, "expected a column name, found )"),
        (table, "c USING s", 10, "expected TAGS, but the statement ends"),
        (table, "c USING s (x) TAGS (1, 2)", 20, "found 2 tag values for 1 tag names"),
        (table, "c USING s TAGS (1), d", 22, "expected USING, but the statement ends"),
        (altered, "t RENAME COLUMN a b", 10, "expected TAG, found COLUMN"),
        (altered, "t ADD INDEX a", 7, "expected COLUMN or TAG, found INDEX"),
        (altered, "t SET TAG a 1", 13, 'expected "=", found 1'),
        (altered, "t ALTER COLUMN a SET x", 23, 'expected ".column", but the statement ends'),
        (altered, "t CHANGE a", 3, "expected what to alter, found CHANGE"),
    ],
)
def test_a_fault_is_refused_at_its_place(rule: Any, text: str, column: int, message: str) -> None:
    code = "E_DUPLICATE_COLUMN" if "twice" in message else "E_SYNTAX"
    assert refused(lambda: rule(text)) == (code, 1, column, message)


def test_a_table_without_tags_is_told_its_statement() -> None:
    assert "CREATE TABLE" in refusal(lambda: stable(f"t {COLUMNS}")).hint

"""Text of statements about databases, tables, functions and snodes."""

from __future__ import annotations

import pytest

from penstock.sql import parse_one
from penstock.sql import statements as st
from penstock.sql.plan import Duration
from penstock.sql.render import tables as family
from penstock.sql.render.parts import render
from penstock.types import ColumnType

TS = st.ColumnDef("ts", ColumnType("TIMESTAMP"))
A = st.ColumnDef("a", ColumnType("INT"))
B = st.ColumnDef("b", ColumnType("INT"))
T = st.Name("t")
HEAD = "(ts TIMESTAMP, a INT)"
STATEMENTS: list[tuple[st.Statement, str]] = [
    (st.CreateDatabase(name="d"), "CREATE DATABASE d"),
    (
        st.CreateDatabase(
            name="select",
            if_not_exists=True,
            options=st.DatabaseOptions(
                "us", Duration(30, "d"), 4, Duration(5, "m"), 3, dot_to_underscore=False
            ),
        ),
        "CREATE DATABASE IF NOT EXISTS `select` PRECISION 'us' KEEP 30d PARTITIONS 4 MAX_AHEAD 5m"
        " REPLICA 3 DOT_TO_UNDERSCORE 0",
    ),
    (
        st.AlterDatabase(name="d", options=st.DatabaseOptions(keep=Duration(1, "y"))),
        "ALTER DATABASE d KEEP 1y",
    ),
    (st.UseDatabase(name="a b"), "USE `a b`"),
    (
        st.CreateStable(table=st.Name("t", "d"), columns=(TS, A), tags=(B,), virtual=True),
        f"CREATE VIRTUAL STABLE d.t {HEAD} TAGS (b INT)",
    ),
    (
        st.CreateTable(
            table=T,
            columns=(TS, A),
            if_not_exists=True,
            options=st.TableOptions("it's", Duration(7, "d"), True, 4),
        ),
        f"CREATE TABLE IF NOT EXISTS t {HEAD} COMMENT 'it\\'s' KEEP 7d"
        " WITH (topic = 'own', partitions = 4)",
    ),
    (st.CreateTable(table=T, columns=(TS, A), virtual=True), f"CREATE VTABLE t {HEAD}"),
    (st.CreateTable(table=T, columns=(TS, A), stream=True), f"CREATE STREAM t {HEAD}"),
    (
        st.CreateTable(
            table=T,
            columns=(
                TS,
                st.ColumnDef("k", ColumnType("INT"), composite_key=True, comment="c"),
                st.ColumnDef("v", ColumnType("INT"), origin=(st.Name("u", "d"), "x y")),
            ),
        ),
        "CREATE TABLE t (ts TIMESTAMP, k INT COMPOSITE KEY COMMENT 'c', v INT FROM d.u.`x y`)",
    ),
    (
        st.CreateStreamTable(
            table=T, columns=(TS, A), options=st.StreamTableSettings(11, 100), if_not_exists=True
        ),
        f"CREATE STREAM TABLE IF NOT EXISTS t {HEAD} WITH (raft_group = 11, cache_limit = 100)",
    ),
    (
        st.CreateStreamTable(
            table=T,
            columns=(TS, A),
            options=st.StreamTableSettings(
                "g",
                100,
                ("a", "b c"),
                1.5,
                10,
                "f",
                "ts",
                "last",
                ("ts",),
                "s",
                async_write=True,
                compress=False,
                flush_mode=1,
                cache_purge_time_column="ts",
                cache_purge_interval=Duration(1, "s"),
                cache_retention_time=Duration(2, "s"),
            ),
        ),
        f"CREATE STREAM TABLE t {HEAD} WITH (raft_group = 'g', cache_limit = 100, key_column ="
        " 'a, `b c`', retention_minutes = 1.5, pre_cache = 10, filter_column = 'f',"
        " timestamp_column = 'ts', key_rule = 'last', time_column = 'ts', status_column = 's',"
        " async_write = TRUE, compress = FALSE, flush_mode = 1, cache_purge_time_column = 'ts',"
        " cache_purge_interval = 1s, cache_retention_time = 2s)",
    ),
    (
        st.CreateChildren(
            children=(
                st.ChildDef(st.Name("a"), st.Name("s"), None, (1, "x", None)),
                st.ChildDef(st.Name("b", "d"), st.Name("s"), ("t1",), (True,), True),
            )
        ),
        "CREATE TABLE a USING s TAGS (1, 'x', NULL) IF NOT EXISTS d.b USING s (t1) TAGS (TRUE)",
    ),
    (
        st.CreateChildren(
            children=(
                st.ChildDef(
                    st.Name("a"), st.Name("s"), None, (1,), False, (("x", (st.Name("u"), "y")),)
                ),
            ),
            virtual=True,
        ),
        "CREATE VTABLE a (x FROM u.y) USING s TAGS (1)",
    ),
    (st.AlterTable(table=T, action="add_column", definition=A), "ALTER TABLE t ADD COLUMN a INT"),
    (
        st.AlterTable(table=T, action="modify_tag", stable=True, definition=A),
        "ALTER STABLE t MODIFY TAG a INT",
    ),
    (st.AlterTable(table=T, action="drop_tag", name="a b"), "ALTER TABLE t DROP TAG `a b`"),
    (
        st.AlterTable(table=T, action="rename_tag", name="a", new_name="b"),
        "ALTER TABLE t RENAME TAG a b",
    ),
    (
        st.AlterTable(table=T, action="set_tag", values=(("a", 1), ("b", "x"))),
        "ALTER TABLE t SET TAG a = 1, b = 'x'",
    ),
    (
        st.AlterTable(table=T, action="set_origin", name="a", origin=(st.Name("u", "d"), "x")),
        "ALTER TABLE t ALTER COLUMN a SET d.u.x",
    ),
    (
        st.AlterTable(table=T, action="set_origin", name="a"),
        "ALTER TABLE t ALTER COLUMN a SET NULL",
    ),
    (
        st.AlterTable(table=T, action="options", options=st.TableOptions(keep=Duration(3, "d"))),
        "ALTER TABLE t KEEP 3d",
    ),
    (
        st.Drop(kind="table", names=(T, st.Name("u", "d")), if_exists=(False, True)),
        "DROP TABLE t, IF EXISTS d.u",
    ),
    (
        st.Drop(kind="materialized view", names=(T,), if_exists=(True,)),
        "DROP MATERIALIZED VIEW IF EXISTS t",
    ),
    (st.Drop(kind="snode", names=(st.Name("3"),), if_exists=(False,)), "DROP SNODE ON DNODE 3"),
    (
        st.CreateFunction(
            name="f",
            parameters=(("x", ColumnType("INT")), ("y z", ColumnType("VARCHAR", 3))),
            returns=ColumnType("DOUBLE"),
            code="a\n'b'",
            aggregate=True,
            or_replace=True,
        ),
        "CREATE OR REPLACE AGGREGATE FUNCTION f (x INT, `y z` VARCHAR(3)) RETURNS DOUBLE LANGUAGE"
        " PYTHON AS 'a\\n\\'b\\''",
    ),
    (st.CreateSnode(dnode=3), "CREATE SNODE ON DNODE 3"),
]


@pytest.mark.parametrize(("statement", "text"), STATEMENTS, ids=[s[1][:60] for s in STATEMENTS])
def test_a_statement_has_one_text_that_is_read_back(statement: st.Statement, text: str) -> None:
    assert render(statement) == text
    assert parse_one(text) == statement


def test_every_statement_about_tables_has_a_case() -> None:
    made = {type(statement) for statement, _ in STATEMENTS}
    own = {k for k, f in render.registry.items() if f.__module__ == family.__name__}
    assert own == made

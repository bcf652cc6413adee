"""Hostile text through every way to the engine: what would be run holds nothing but permitted
tables and functions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import duckdb
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from penstock.duck import print_query
from penstock.duck.functions import FUNCTIONS
from penstock.errors import PenstockError
from penstock.sql import parse
from penstock.sql.dialect import to_sql
from penstock.sql.functions import WINDOW_FUNCTIONS
from penstock.sql.relational import (
    Output,
    QueryPlan,
    QueryScope,
    Scan,
    SelectPlan,
    TableColumns,
    bind,
    map_scans,
)
from penstock.sql.statements import Explain, InsertSelect, Query
from penstock.types import ColumnType
from services.store.binding import Context
from services.store.clauses import write_clauses
from services.store.translate import query
from tests.nightly import drawn

HOSTILE = st.one_of(
    st.sampled_from(
        [
            "x, content FROM read_text('/etc/passwd') --",
            "1 /*",
            "*/ , who FROM read_parquet($$/x/*$$) --",
            "\"; COPY (SELECT 1) TO '/tmp/x' --",
            "\") FROM read_text('/etc/passwd') --",
            "read_text",
            "read_csv('/etc/passwd')",
            "getenv",
            "$$",
            "$tag$ x $tag$",
            "'",
            "''",
            '"',
            '""',
            "`",
            "\\",
            "\\'",
            "--",
            "/*",
            "*/",
            ";",
            "\n--",
            "a\u2028b",
            "\u202e",
            "\u00a0",
            "\uff07",
            "\u02bc",
            "ta\u0308",
            "🦆",
            "e'\\x27'",
            "?",
            "$1",
            ":x",
            "{{x}}",
            "pg_read_file",
            "COLUMNS(*)",
            "a.b.c",
            "1e400",
            "_penstock_2",
            "sqlite_master",
            "information_schema.tables",
            "current_user",
        ]
    ),
    st.text(max_size=12),
)


def in_name(text: str) -> str:
    return "`" + (text.replace("`", "``") or "x") + "`"


def in_string(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


NAME = HOSTILE.map(in_name)
STRING = HOSTILE.map(in_string)
COMMENT = (
    HOSTILE.map(lambda t: "/*" + t.replace("*/", "") + "*/")
    | HOSTILE.map(lambda t: "--" + t.replace("\n", "") + "\n")
    | st.just(" ")
)
ALIAS = st.one_of(
    NAME.map(" AS {}".format), STRING.map(" AS {}".format), NAME.map(" {}".format), st.just("")
)
CALLED = st.one_of(
    st.sampled_from(
        ["sum(v)", "rank()", "lag(w, 1, 'x')", "spread(v)", "read_text(w)", "ntile(2)"]
    ),
    NAME.map("{}(v)".format),
    NAME.map("last({})".format),
)
FRAME = st.sampled_from(["", "ROWS 1 PRECEDING", "RANGE BETWEEN 1s PRECEDING AND CURRENT ROW"])
VALUE = st.recursive(
    st.one_of(
        NAME,
        STRING,
        st.sampled_from(["v", "1", "0x1F", "1e3", "NULL", "t.v", "count(*)", "*"]),
        st.tuples(NAME, NAME).map(".".join),
    ),
    lambda inner: st.one_of(
        st.tuples(
            st.one_of(NAME, st.sampled_from(["abs", "concat", "repeat", "replace", "last", "md5"])),
            st.lists(inner, max_size=3),
        ).map(lambda c: f"{c[0]}({', '.join(c[1])})"),
        inner.map("top({}, 2)".format),
        inner.map("unique({})".format),
        inner.map("twa({})".format),
        inner.map("percentile({}, 5, 50)".format),
        st.tuples(inner, STRING).map(lambda p: f"histogram({p[0]}, 'user_input', {p[1]}, 0)"),
        st.tuples(
            inner,
            st.sampled_from(["+", "-", "*", "/", "%", "=", "AND", "LIKE", "MATCH", "&"]),
            inner,
        ).map(" ".join),
        st.tuples(inner, STRING).map(lambda p: f"{p[0]} -> {p[1]}"),
        inner.map("({})".format),
        inner.map("CAST({} AS VARCHAR(9))".format),
        st.tuples(inner, inner).map(lambda p: f"CASE WHEN {p[0]} THEN {p[1]} END"),
        st.tuples(inner, STRING).map(lambda p: f"{p[0]} IN ({p[1]}, (SELECT {p[0]} FROM t))"),
        st.tuples(STRING, inner).map(lambda p: f"trim({p[0]} FROM {p[1]})"),
        st.tuples(CALLED, inner, inner, FRAME, NAME).map(
            lambda p: f"{p[0]} OVER (PARTITION BY {p[1]}, {p[4]} ORDER BY {p[2]} DESC {p[3]})"
        ),
        st.tuples(CALLED, inner).map(lambda p: f"{p[0]} FILTER (WHERE {p[1]})"),
        st.tuples(CALLED, NAME).map(lambda p: f"{p[0]} OVER {p[1]}"),
    ),
    max_leaves=5,
)
SELECT = st.tuples(
    COMMENT, VALUE, ALIAS, COMMENT, st.sampled_from(["t", "T"]) | NAME, ALIAS, VALUE, VALUE, COMMENT
).map(
    lambda p: (
        f"SELECT {p[0]} {p[1]}{p[2]} {p[3]} FROM {p[4]}{p[5]} WHERE {p[6]} ORDER BY {p[7]} {p[8]}"
    )
)
SELECT |= st.tuples(NAME, NAME, SELECT, VALUE, NAME, ALIAS).map(
    lambda p: (
        f"WITH {p[0]} ({p[1]}) AS ({p[2]}), q AS (SELECT * FROM {p[0]}) SELECT {p[3]}{p[5]}"
        f" FROM q AS {p[4]} ({p[1]}) WINDOW {p[1]} AS (ORDER BY {p[1]}) QUALIFY {p[3]}"
        f" EXCEPT SELECT {p[1]} FROM {p[0]}"
    )
)
RELATIONS = frozenset(("_penstock_1",))
CONTEXT = Context("UTC", relations=RELATIONS)


COLUMNS = TableColumns(
    tuple(
        Output(name, ColumnType(kind), "ms")
        for name, kind in (("ts", "TIMESTAMP"), ("v", "INT"), ("w", "VARCHAR"))
    ),
    "ms",
)


def queried(text: str) -> Query | None:
    try:
        statements = parse(text)
    except PenstockError:
        return None
    if len(statements) != 1:
        return None
    found: Any = statements[0]
    if isinstance(found, Explain):
        found = found.statement
    if isinstance(found, InsertSelect):
        found = found.select
    return found if isinstance(found, Query) else None


def bound(statement: Query) -> QueryPlan:
    """Names are bound, and tables are named as the store names them; those of other names stay and
    must be refused.
    """
    scope = QueryScope(statement.source, lambda _: COLUMNS, "UTC", lambda _: None)
    return named(bind(statement.query, scope))


def named(plan: QueryPlan) -> QueryPlan:
    """Tables are named as the store names them."""

    def place(scan: Scan, _: SelectPlan) -> Scan:
        known = scan.table.lower() == "t" and not scan.database
        return replace(scan, relation="_penstock_1" if known else "", time="ts")

    return map_scans(plan, place)


def check(text: str) -> None:
    """*text* is one SELECT over the relation, with listed functions, to DuckDB's own parser and to
    another.
    """
    con = duckdb.connect()
    try:
        statements = con.extract_statements(text)
        assert len(statements) == 1 and statements[0].type == duckdb.StatementType.SELECT, text
    except duckdb.ParserException:
        pass  # it would not run
    finally:
        con.close()
    # a call without the arguments that it needs is only looked at
    tree = sqlglot.parse_one(text, read="duckdb", error_level=sqlglot.ErrorLevel.IGNORE)
    assert isinstance(tree, exp.Query), text
    assert {t.name for t in tree.find_all(exp.Table)} <= {"_penstock_1"}, text
    assert not [t for t in tree.find_all(exp.Table) if not isinstance(t.this, exp.Identifier)], text
    assert {
        c.name.lower() for c in tree.find_all(exp.Anonymous)
    } <= FUNCTIONS | WINDOW_FUNCTIONS.keys() | CONTEXT.needed.keys(), text
    forbidden = (
        exp.Command,
        exp.Copy,
        exp.Attach,
        exp.Set,
        exp.Pragma,
        exp.ReadCSV,
        exp.Into,
        exp.Lambda,
        exp.Placeholder,
        exp.Parameter,
    )
    assert tree.find(*forbidden) is None, text


@given(SELECT, st.sampled_from(["{}", "EXPLAIN {}", "INSERT INTO x {}"]))
@settings(max_examples=drawn(150), deadline=None)
def test_hostile_selects(text: str, way: str) -> None:
    statement = queried(way.format(text))
    if statement is None:
        return
    for make in (
        lambda: query(bound(statement), CONTEXT),
        lambda: query(write_clauses(bound(statement), statement, CONTEXT), CONTEXT),
        lambda: print_query(bound(statement), ["_penstock_1"]),
    ):
        try:
            made = make()
        except PenstockError:
            continue
        check(made)


@given(HOSTILE, NAME, NAME, STRING)
@settings(max_examples=drawn(100), deadline=None)
def test_hostile_names_around_functions_of_rows(
    column: str, alias: str, table: str, text: str
) -> None:
    name = in_name(column)
    call = f"diff({name}), statecount({name}, 'GT', -1) AS {alias}"
    statement = queried(
        f"SELECT {call} FROM t AS {table} WHERE {name} <> 1 AND {text} <> '' PARTITION BY {name}, ts"
        f" ORDER BY {alias} LIMIT 1"
    )
    assert statement is not None
    outputs = (*COLUMNS.columns[:1], Output(column or "x", ColumnType("INT"), "ms"))
    context = Context("UTC", relations=RELATIONS)
    scope = QueryScope(statement.source, lambda _: TableColumns(outputs), "UTC", lambda _: None)
    plan = named(bind(statement.query, scope))
    try:
        made = query(write_clauses(plan, statement, context), context)
    except PenstockError as refused:
        # DuckDB's text has no NUL and no half of a letter
        assert "has a character that it may not have" in refused.message
        return
    CONTEXT.needed.update(context.needed)
    check(made)


@given(SELECT)
@settings(max_examples=drawn(100), deadline=None)
def test_what_is_sent_to_another_deployment_or_kept_by_a_view_means_the_same_there(
    text: str,
) -> None:
    statement = queried(text)
    if statement is None:
        return
    tree = statement.query
    sent = to_sql(tree)
    found = queried(sent)
    assert found is not None, sent
    again = found.query
    assert to_sql(again) == sent
    assert [t.name for t in again.find_all(exp.Table)] == [t.name for t in tree.find_all(exp.Table)]
    assert [str(c.this) for c in again.find_all(exp.Anonymous)] == [
        str(c.this) for c in tree.find_all(exp.Anonymous)
    ]

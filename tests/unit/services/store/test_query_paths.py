"""Hostile text on the ways to the engine besides the store's: open windows, Flight's tickets, other
deployments, subscriptions, export.
"""

from __future__ import annotations

import json
from typing import Any, cast

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from gateway.information.schema import Information
from penstock.catalog.model import External, Table, TableVersion
from penstock.catalog.view import Catalog
from penstock.cli.export_file import slices
from penstock.client.connection import Connection
from penstock.duck import print_query
from penstock.errors import PenstockError
from penstock.link import external as links
from penstock.link import pushdown, uris
from penstock.link.description import Description
from penstock.link.remote_request import MirrorOptions, RemoteRequest
from penstock.link.selection import compile_selection, point_at, source_of
from penstock.sql import parse_one
from penstock.sql.compile import compile_expression
from penstock.sql.functions import REGISTRY
from penstock.sql.plan import Column
from penstock.sql.relational import lower
from penstock.sql.statements import CreateExternalStream, Query
from penstock.types import ColumnType
from services.store.flight_tickets import read_ticket
from services.store.flightsql import read_command, write_command
from services.tables import filters
from tests.nightly import drawn
from tests.unit.services.store.test_query_property import (
    HOSTILE,
    NAME,
    SELECT,
    VALUE,
    check,
    named,
    queried,
)

COLUMNS = (
    Column("ts", ColumnType("TIMESTAMP")),
    Column("v", ColumnType("INT")),
    Column("w", ColumnType("VARCHAR", length=64)),
)
#: what a deployment or a user may call a column
HOSTILE_NAMES = HOSTILE.map(lambda text: text or "x")
TABLE = Table(7, "d", "t", "plain", "in.d", 1, "ms", (TableVersion(0, COLUMNS, ()),))
KNOWN = {c.name: c.type for c in COLUMNS}
#: beside the columns: the moment, the child table, and places in the log
INTERNAL = {"tbname", "_now", "_op", "_time", "_offset", "_row", "_part", "_appended"}


def described(columns: tuple[Column, ...] = COLUMNS) -> Description:
    return Description(7, "d", "t", columns)


def external(columns: tuple[Column, ...] = COLUMNS, name: str = "there") -> External:
    return External(9, "d", "t", "penstock", (("h:1",),), "far", name, columns)


def calls(tree: exp.Expr) -> set[str]:
    return {str(c.this).lower() for c in tree.find_all(exp.Anonymous)}


def tables(tree: exp.Expr) -> set[tuple[str, str]]:
    return {(t.db, t.name) for t in tree.find_all(exp.Table)}


def one_query(text: str) -> exp.Query:
    """The only statement of *text*, which is a query, as the other side reads it."""
    statement = parse_one(text)
    assert isinstance(statement, Query), text
    return statement.query


class _Printing(Information):
    """Checks what DuckDB would be given instead of running it."""

    def run(self, tree: exp.Query, tables: dict[str, pa.Table]) -> pa.Table:
        text = print_query(
            named(lower(tree.copy())),
            {"_penstock_1"} if "t" in {n.lower() for n in tables} else tables.keys(),
        )
        check(text)
        return pa.table({})


@given(SELECT)
@settings(max_examples=drawn(60), deadline=None)
def test_open_windows_are_read_by_a_checked_query_over_them_alone(text: str) -> None:
    statement = queried(text.replace(" WHERE ", " OPEN WINDOWS WHERE ", 1))
    if statement is None:
        return
    tree = statement.query.copy()
    # as `ReadStatements._open_windows` does: the stream's windows are registered under its name, and
    # there is nothing else
    tree.set("open_windows", None)
    for table in tree.find_all(exp.Table):
        table.set("db", None)
    lists = _Printing(lambda: Catalog([]), cast(Any, None), "0", cast(Any, None))
    try:
        lists.run(tree, {"t": pa.table({})})
    except PenstockError:
        return


@given(SELECT)
@settings(max_examples=drawn(60), deadline=None)
def test_endpoints_of_flight_hand_on_the_text_as_it_came(text: str) -> None:
    command = write_command("CommandStatementQuery", [(1, text.encode())])
    assert read_command(command).text(1) == text
    assert read_ticket(json.dumps({"sql": text}).encode()).sql == text
    assert read_ticket(text.encode()).sql == text


@given(SELECT, st.lists(HOSTILE_NAMES, min_size=2, max_size=3, unique_by=str.lower), HOSTILE_NAMES)
@settings(max_examples=drawn(60), deadline=None)
def test_another_deployment_is_asked_for_its_table_alone(
    text: str, names: list[str], remote: str
) -> None:
    statement = queried(text)
    if statement is None:
        return
    tree = statement.query
    columns = (COLUMNS[0], *(Column(name, ColumnType("INT")) for name in names))
    entry = external(columns, remote)
    sent = pushdown.whole(tree, "d", lambda database, name: entry if name.lower() == "t" else None)
    if sent is not None:
        again = one_query(sent[1])
        assert tables(again) == {("far", remote)}
        assert calls(again) <= calls(tree)
    for node in tree.find_all(exp.Table):
        wanted, conditions = pushdown.find_needs(entry, tree, node)
        again = one_query(pushdown.rows(entry, wanted, conditions))
        assert tables(again) == {("far", remote)}
        assert calls(again) <= calls(tree)


@given(SELECT)
@settings(max_examples=drawn(60), deadline=None)
def test_subscriptions_and_views_compute_listed_functions_of_the_tables_columns(text: str) -> None:
    try:
        made = compile_selection(text, described())
        _, select, _ = source_of(text)
    except (PenstockError, pl.exceptions.PolarsError):
        return
    assert made.read <= KNOWN.keys() | INTERNAL
    assert calls(select) <= REGISTRY.keys()
    assert tables(one_query(point_at(select, "far", "there"))) == {("far", "there")}


@given(VALUE)
@settings(max_examples=drawn(60), deadline=None)
def test_conditions_of_subscribers_read_columns_of_the_table_only(text: str) -> None:
    try:
        made = compile_expression(text, KNOWN, precision="ms")
    except (PenstockError, pl.exceptions.PolarsError):
        return
    assert set(made.expr.meta.root_names()) <= KNOWN.keys() | INTERNAL
    try:
        filters.make(TABLE, {"sql": text})
    except PenstockError:
        return


@given(st.lists(HOSTILE_NAMES, min_size=1, max_size=3, unique_by=str.lower), NAME)
@settings(max_examples=drawn(60), deadline=None)
def test_what_follows_a_table_by_its_uri_asks_for_that_table_alone(
    names: list[str], table: str
) -> None:
    columns = (COLUMNS[0], *(Column(name, ColumnType("INT")) for name in names))
    found = Description(7, "d", table, columns)
    wanted = RemoteRequest(MirrorOptions(columns=tuple(names)))
    for text in (wanted.following(found), wanted.snapshot(found), wanted.rows(found)):
        again = one_query(text)
        assert tables(again) == {("d", table)}
        assert not calls(again)


@given(HOSTILE, HOSTILE)
@settings(max_examples=drawn(60), deadline=None)
def test_a_uri_is_read_or_refused(table: str, options: str) -> None:
    try:
        made = uris.parse(f"pq://query/scope/{table}?{options}")
    except PenstockError:
        return
    assert uris.parse(uris.render(made)) == made


class _Answers:
    """Stands where statements are answered: an empty table whose time has a name of somebody's
    choice.
    """

    def __init__(self, name: str) -> None:
        self.asked: list[str] = []
        self._name = name

    def query(self, text: str) -> Any:
        self.asked.append(text)
        if "count(*)" in text:
            times = pa.array([1000], pa.int64())
            rows = pa.table({"n": [1], "a": times, "b": times})
        else:
            rows = pa.table({self._name: pa.array([], pa.int64())})
        return type("Answer", (), {"table": rows})


@pytest.mark.parametrize(
    "name", ["ts", "a` FROM d.other --", "``", "x`; DROP TABLE d.t; SELECT `y", "`"]
)
def test_export_asks_for_its_table_alone_whatever_its_columns_are_called(name: str) -> None:
    answers = _Answers(name)
    list(slices(cast(Connection, answers), "d.t"))
    assert len(answers.asked) == 4
    assert all(tables(one_query(text)) == {("d", "t")} for text in answers.asked)


@given(st.lists(HOSTILE_NAMES, min_size=1, max_size=3, unique_by=str.lower))
@settings(max_examples=drawn(60), deadline=None)
def test_show_create_names_columns_as_they_are_called(names: list[str]) -> None:
    columns = (COLUMNS[0], *(Column(name, ColumnType("INT")) for name in names))
    statement = parse_one(links.definition_sql(external(columns)))
    assert isinstance(statement, CreateExternalStream)
    assert statement.columns is not None
    assert [c.name for c in statement.columns] == ["ts", *names]

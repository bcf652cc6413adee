"""Plans of queries: what a tree becomes, what stays as it was, and what no plan can have."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlglot import exp

from penstock.errors import SqlSemanticError
from penstock.sql import parse_one
from penstock.sql.dialect import to_sql
from penstock.sql.relational import (
    ComputedRows,
    Derived,
    Enclosed,
    Join,
    Output,
    PlannedQuery,
    Scan,
    SetOperation,
    TableColumns,
    bind,
    column_names,
    computed_in,
    lower,
    map_expressions,
    map_scans,
    map_selections,
    nodes_of,
    queries_inside,
)
from penstock.sql.relational.query_scope import QueryScope
from penstock.sql.statements import Query
from penstock.types import ColumnType
from tests.unit.sql.relational.test_binder import bound, columns, selection

INT = ColumnType("INT")


def tree(sql: str) -> exp.Query:
    statement = parse_one(sql)
    assert isinstance(statement, Query)
    return statement.query


def test_every_clause_is_a_part_of_its_select() -> None:
    plan = selection(
        "SELECT DISTINCT voltage AS v, count(*) FROM meters m WHERE current > 1 GROUP BY v"
        " HAVING count(*) > 2 ORDER BY v DESC LIMIT 3 OFFSET 4"
    )
    assert [(o.name, str(o.type)) for o in plan.outputs] == [("v", "INT"), ("count(*)", "BIGINT")]
    assert isinstance(plan.source, Scan)
    assert (plan.source.table, plan.source.name, plan.source.relation) == ("meters", "m", "")
    assert isinstance(plan.where, exp.GT) and isinstance(plan.having, exp.GT)
    assert [key.name for key in plan.group_by] == ["v"]
    assert [(item.this.name, item.args["desc"]) for item in plan.order_by] == [("v", True)]
    assert (plan.limits.rows, plan.limits.skipped) == (
        exp.Literal.number(3),
        exp.Literal.number(4),
    )
    assert plan.distinct and plan.qualify is None and not plan.partition_by


def test_limits_of_partitions_are_limits_like_others() -> None:
    plan = selection(
        "SELECT tbname, voltage FROM meters PARTITION BY tbname SLIMIT 2 SOFFSET 1 LIMIT 5"
    )
    assert [key.name for key in plan.partition_by] == ["tbname"]
    limits = plan.limits
    counts = (limits.rows, limits.skipped, limits.partitions, limits.skipped_partitions)
    assert [count and count.name for count in counts] == ["5", None, "2", "1"]
    assert not selection("SELECT voltage FROM meters").limits


def test_from_is_a_tree_of_joins() -> None:
    plan = selection(
        "SELECT q.h FROM meters LEFT JOIN places USING (site), (SELECT height FROM places) q (h)"
    )
    outer = plan.source
    assert isinstance(outer, Join) and isinstance(outer.left, Join)
    assert (outer.side, outer.on, outer.left.side, outer.left.using) == (
        "",
        None,
        "LEFT",
        ("site",),
    )
    assert isinstance(outer.right, Derived)
    assert (outer.right.alias, outer.right.names) == ("q", ("h",))
    assert outer.right.columns == (Output("h", INT),)
    assert column_names(plan) == {"h", "site", "height"}


def test_several_queries_have_the_types_that_fit_all() -> None:
    plan = bound(
        "(SELECT voltage AS x FROM meters LIMIT 1) UNION ALL SELECT 1.5 ORDER BY x LIMIT 2"
    )
    assert isinstance(plan, SetOperation) and plan.every and plan.word == "UNION"
    assert plan.outputs == (Output("x", ColumnType("DOUBLE")),)
    assert isinstance(plan.left, Enclosed) and plan.left.outputs[0].type == INT
    assert plan.limits.rows is not None and len(plan.order_by) == 1


@pytest.mark.parametrize(
    "condition",
    [
        "voltage IN (SELECT height FROM places)",
        "EXISTS(SELECT 1 FROM places)",
        "EXISTS((SELECT 1 FROM places LIMIT 1))",
        "voltage > (SELECT max(height) FROM places)",
        "voltage > 1 OR NOT EXISTS(SELECT 1 FROM places UNION SELECT 2)",
    ],
)
def test_queries_in_expressions_are_plans(condition: str) -> None:
    plan = selection(f"SELECT voltage FROM meters WHERE {condition}")
    assert plan.where is not None and plan.where.find(PlannedQuery) is not None
    assert plan.where.find(exp.Select, exp.SetOperation) is None
    seen: list[str] = []

    def place(scan: Scan, _: object) -> Scan:
        seen.append(scan.table)
        return replace(scan, relation=f"_{scan.table}")

    placed = map_scans(plan, place)
    assert seen == ["places", "meters"]
    again: list[str] = []
    map_scans(placed, lambda scan, _: again.append(scan.relation) or scan)  # type: ignore[func-returns-value]
    assert again == ["_places", "_meters"]


def test_neither_the_tree_nor_a_plan_is_changed() -> None:
    sql = (
        "SELECT last(*), SITE FROM METERS WHERE VOLTAGE IN (SELECT HEIGHT FROM places)"
        " PARTITION BY tbname"
    )
    given = tree(sql)
    before = to_sql(given)
    plan = bind(given, QueryScope(parse_one(sql).source, lambda table: columns(table.name)))
    assert to_sql(given) == before
    assert not any("binding" in node.meta for node in given.walk())
    kept = [repr(node) for node in nodes_of(plan)]

    def spoil(node: exp.Expr) -> exp.Expr:
        return node.transform(lambda _: exp.Null())

    spoiled = map_selections(plan, lambda select: map_expressions(select, spoil))
    assert {type(item.expression) for item in spoiled.items} == {exp.Null}  # type: ignore[union-attr]
    assert [repr(node) for node in nodes_of(plan)] == kept


def test_inner_selects_are_changed_before_outer_ones() -> None:
    plan = bound("SELECT x FROM (SELECT ts, voltage AS x FROM meters) WHERE x IN (SELECT 1 AS one)")
    seen: list[list[str]] = []

    def note(select):  # type: ignore[no-untyped-def]
        seen.append([output.name for output in select.outputs])
        return select

    assert map_selections(plan, note) == plan
    assert sorted(seen[:2]) == [["one"], ["ts", "x"]] and seen[2] == ["x"]


def lacking(key: str, value: object) -> exp.Select:
    select = exp.select("a").from_("t")
    select.set(key, value)
    return select


@pytest.mark.parametrize(
    "query",
    [
        lacking("into", exp.Into(this=exp.to_table("x"))),
        lacking("locks", [exp.Lock(update=True)]),
        lacking("sample", exp.TableSample()),
        lacking("laterals", [exp.Lateral(this=exp.Null())]),
        lacking("hint", exp.Hint(expressions=[exp.Null()])),
        lacking("limit", exp.Limit(expression=exp.column("a"))),
        lacking("from_", exp.From(this=exp.Table(this=exp.Anonymous(this="read_csv")))),
        lacking("from_", exp.From(this=exp.table_("t", db="d", catalog="c"))),
        lacking("from_", exp.From(this=exp.Values(expressions=[]))),
        lacking("order", exp.Order(expressions=[exp.column("a")])),
        exp.Table(this=exp.to_identifier("t")),
        tree("SELECT _wstart, count(*) FROM t INTERVAL(1s)"),
        tree("SELECT interp(a) FROM t RANGE(1, 2) EVERY(1s)"),
    ],
)
def test_what_no_query_has_is_in_no_plan(query: exp.Query) -> None:
    with pytest.raises(SqlSemanticError, match="is not possible in a query"):
        lower(query)


def windows() -> ComputedRows:
    """Windows of meters, as `w`, with an inner query of their own."""
    select = tree("SELECT count(*) FROM meters INTERVAL(1m)")
    source = Derived(bound("SELECT ts, voltage FROM meters"), "")
    table = TableColumns((Output("n", INT),), stored=False)
    return ComputedRows("w", select.args["window"], source, None, (), None, table, {})


def test_a_name_may_mean_computed_rows_which_are_a_leaf_of_the_plan() -> None:
    rows = windows()
    sql = "SELECT n FROM w, places WHERE n > 1"
    scope = QueryScope(
        parse_one(sql).source,
        lambda table: columns(table.name),
        computed=lambda table: rows if table.name == "w" else None,
    )
    plan = bind(tree(sql), scope)
    assert plan.outputs == (Output("n", INT),)
    assert list(computed_in(plan)) == [rows]
    # the query that they are computed from is none of the plan's
    assert list(queries_inside(plan)) == []
    seen: list[str] = []

    def place(scan: Scan, _: object) -> Scan:
        seen.append(scan.table)
        return scan

    placed = map_scans(plan, place, lambda found: replace(found, relation="filled"))
    assert seen == ["places"]
    assert [found.relation for found in computed_in(placed)] == ["filled"]
    assert [found.relation for found in computed_in(plan)] == ["w"]

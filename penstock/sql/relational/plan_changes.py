"""Ways over a plan: each part changed into another, and every expression seen. All of them return
new plans and leave the old ones as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from sqlglot import exp

from penstock.sql.relational.query_plan import (
    ComputedRows,
    Derived,
    Enclosed,
    Join,
    PlannedQuery,
    QueryPlan,
    RowSource,
    Scan,
    SelectItem,
    SelectPlan,
    SetOperation,
)

_Node = TypeVar("_Node", bound=exp.Expr)
#: makes another expression of one; the parts of an ORDER BY stay such
ChangeExpression = Callable[[exp.Expr], exp.Expr]
ChangeQuery = Callable[[QueryPlan], QueryPlan]


def map_selections(plan: QueryPlan, change: Callable[[SelectPlan], SelectPlan]) -> QueryPlan:
    """Return *plan* with each SELECT changed, the innermost first."""
    made = map_inside(plan, lambda query: map_selections(query, change))
    return change(made) if isinstance(made, SelectPlan) else made


def _same(rows: ComputedRows) -> ComputedRows:
    return rows


def map_scans(
    plan: QueryPlan,
    change: Callable[[Scan, SelectPlan], Scan],
    computed: Callable[[ComputedRows], ComputedRows] = _same,
) -> QueryPlan:
    """Return *plan* with each table changed; *change* is told the SELECT around it, too.

    Args:
        computed: changes computed rows.
    """

    def change_tables(select: SelectPlan) -> SelectPlan:
        if select.source is None:
            return select
        source = _map_tables(select.source, lambda scan: change(scan, select), computed)
        return replace(select, source=source)

    return map_selections(plan, change_tables)


def _map_tables(
    source: RowSource,
    change: Callable[[Scan], Scan],
    computed: Callable[[ComputedRows], ComputedRows],
) -> RowSource:
    if isinstance(source, Scan):
        return change(source)
    if isinstance(source, ComputedRows):
        return computed(source)
    if isinstance(source, Join):
        left = _map_tables(source.left, change, computed)
        return replace(source, left=left, right=_map_tables(source.right, change, computed))
    return source


def map_inside(plan: QueryPlan, change: ChangeQuery) -> QueryPlan:
    """Return *plan* with the queries right inside it changed: sides of a set operation, subqueries
    of FROM, and those in expressions.
    """

    def change_expression(node: exp.Expr) -> exp.Expr:
        return _change_queries_in(node, change)

    if isinstance(plan, SelectPlan):
        if next(queries_inside(plan), None) is None:
            return plan
        source = None if plan.source is None else _map_queries(plan.source, change)
        return map_expressions(replace(plan, source=source), change_expression)
    order_by = tuple(_change_queries_in(item, change) for item in plan.order_by)
    if isinstance(plan, Enclosed):
        return replace(plan, query=change(plan.query), order_by=order_by)
    return replace(plan, left=change(plan.left), right=change(plan.right), order_by=order_by)


def _map_queries(source: RowSource, change: ChangeQuery) -> RowSource:
    if isinstance(source, Derived):
        return replace(source, query=change(source.query))
    if isinstance(source, Join):
        left = _map_queries(source.left, change)
        return replace(source, left=left, right=_map_queries(source.right, change))
    return source


def _change_queries_in(node: _Node, change: ChangeQuery) -> _Node:
    """Return an expression with its queries changed; itself where it has none."""
    if node.find(PlannedQuery) is None:
        return node
    made = node.copy()
    for query in list(made.find_all(PlannedQuery)):
        query.set("plan", change(query.args["plan"]))
    return made


def map_expressions(
    select: SelectPlan, change: ChangeExpression, *, conditions: ChangeExpression | None = None
) -> SelectPlan:
    """Return *select* with its own expressions changed, those of its joins, too.

    Args:
        conditions: changes conditions, if that is done otherwise.
    """
    change_condition = conditions or change

    def some(node: exp.Expr | None) -> exp.Expr | None:
        return None if node is None else change_condition(node)

    source = select.source
    return replace(
        select,
        items=tuple(_change_item(item, change) for item in select.items),
        source=None if source is None else _map_conditions(source, change_condition),
        where=some(select.where),
        partition_by=tuple(map(change, select.partition_by)),
        group_by=tuple(map(change, select.group_by)),
        having=some(select.having),
        qualify=some(select.qualify),
        order_by=change_order(select.order_by, change),
    )


def _change_item(item: SelectItem, change: ChangeExpression) -> SelectItem:
    made = change(item.expression)
    return item if made is item.expression else SelectItem(made, item.name, item.binding)


def change_order(
    order_by: tuple[exp.Ordered, ...], change: ChangeExpression
) -> tuple[exp.Ordered, ...]:
    """Return an ORDER BY whose items are changed."""
    made = []
    for item in order_by:
        changed = change(item)
        assert isinstance(changed, exp.Ordered)  # nothing changes the order itself
        made.append(changed)
    return tuple(made)


def _map_conditions(source: RowSource, change: ChangeExpression) -> RowSource:
    if not isinstance(source, Join):
        return source
    left = _map_conditions(source.left, change)
    right = _map_conditions(source.right, change)
    on = None if source.on is None else change(source.on)
    return replace(source, left=left, right=right, on=on)


# ---------------------------------------------------------------- looking


def expressions_of(plan: QueryPlan) -> Iterator[exp.Expr]:
    """Yield the expressions of *plan* itself, without those of queries right inside it."""
    if isinstance(plan, SelectPlan):
        yield from (item.expression for item in plan.items)
        for join in joins_of(plan.source):
            yield from () if join.on is None else (join.on,)
            yield from () if join.limit is None else (*join.limit.rows, join.limit.time)
        yield from (c for c in (plan.where, plan.having, plan.qualify) if c is not None)
        yield from plan.partition_by
        yield from plan.group_by
    yield from plan.order_by


def queries_inside(plan: QueryPlan) -> Iterator[QueryPlan]:
    """Yield the queries right inside *plan*."""
    if isinstance(plan, Enclosed):
        yield plan.query
    elif isinstance(plan, SetOperation):
        yield plan.left
        yield plan.right
    elif plan.source is not None:
        yield from _queries_of(plan.source)
    for expression in expressions_of(plan):
        for node in expression.find_all(PlannedQuery):
            yield node.args["plan"]


def _queries_of(source: RowSource) -> Iterator[QueryPlan]:
    if isinstance(source, Derived):
        yield source.query
    elif isinstance(source, Join):
        yield from _queries_of(source.left)
        yield from _queries_of(source.right)


def nodes_of(plan: QueryPlan) -> Iterator[exp.Expr]:
    """Yield every node of every expression, those of all queries inside, too."""
    for query in queries_of(plan):
        for expression in expressions_of(query):
            yield from expression.walk()


def joins_of(source: RowSource | None) -> Iterator[Join]:
    """Yield the joins that the rows of a SELECT are made by."""
    if isinstance(source, Join):
        yield from joins_of(source.left)
        yield from joins_of(source.right)
        yield source


def computed_in(plan: QueryPlan) -> Iterator[ComputedRows]:
    """Yield the computed rows that FROM of *plan* itself has."""
    if isinstance(plan, SelectPlan) and plan.source is not None:
        yield from _computed_of(plan.source)


def _computed_of(source: RowSource) -> Iterator[ComputedRows]:
    if isinstance(source, ComputedRows):
        yield source
    elif isinstance(source, Join):
        yield from _computed_of(source.left)
        yield from _computed_of(source.right)


def queries_of(plan: QueryPlan) -> Iterator[QueryPlan]:
    """Yield *plan* and every query inside it."""
    yield plan
    for query in queries_inside(plan):
        yield from queries_of(query)


def column_names(plan: QueryPlan) -> set[str]:
    """Return the name of each column that *plan* reads anywhere, in lower case."""
    names: set[str] = set()
    for query in queries_of(plan):
        for expression in expressions_of(query):
            names |= {column.name.lower() for column in expression.find_all(exp.Column)}
        if isinstance(query, SelectPlan):
            names |= {name.lower() for join in joins_of(query.source) for name in join.using}
    return names

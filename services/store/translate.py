"""A plan as DuckDB understands it.

Plans become plans: names and types are bound (`penstock.sql.relational`), tables are relations of
the caller's, clauses that only Penstock has are gone or refused. Values are converted by their
types (`conversions`), and functions get DuckDB's names.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from sqlglot import exp

from penstock.duck import print_query
from penstock.duck.types import duck_type
from penstock.sql import nodes
from penstock.sql.relational import (
    AGGREGATE_NAMES,
    QueryPlan,
    Scan,
    SelectPlan,
    binding_of,
    call_of,
    change_order,
    is_over,
    map_expressions,
    map_inside,
)
from penstock.sql.relational.companions import chosen_by
from penstock.types import ColumnType
from penstock.udf import UserFunction
from services.store.binding import Context
from services.store.companions import take_companions, time_of
from services.store.conversions import assure, convert, fit_limits
from services.store.functions import FUNCTIONS, arguments, function_name
from services.store.over import spread_over, with_filter
from services.store.overloads import with_form
from services.store.times import interval


def query(plan: QueryPlan, context: Context) -> str:
    """Return DuckDB's text for a plan whose tables are relations and whose clauses are DuckDB's."""
    own = [own_name(f) for f in context.functions.values()]
    written = _write(plan, context, shown=True, on_top=True)
    return print_query(written, context.relations, [*own, *context.needed])


def own_name(function: UserFunction) -> str:
    """Return DuckDB's name of a user-defined function: never one that a function of its own has."""
    return f"_penstock_function_{function.id}"


# ---------------------------------------------------------------- queries


def _write(
    plan: QueryPlan, context: Context, *, shown: bool = False, on_top: bool = False
) -> QueryPlan:
    """Return *plan* with DuckDB's functions and types, queries inside it first.

    Args:
        shown: its rows are rows of the answer.
        on_top: they are the answer.
    """
    inner_shown = shown and not isinstance(plan, SelectPlan)
    made = map_inside(plan, partial(_write, context=context, shown=inner_shown))
    if isinstance(made, SelectPlan):
        return _write_select(made, replace(context, shown=shown), on_top=on_top)
    order_by = change_order(
        made.order_by, lambda node: _rewrite_all(convert(node, context), context)
    )
    return replace(made, order_by=order_by, limits=fit_limits(made.limits))


def _write_select(select: SelectPlan, context: Context, *, on_top: bool) -> SelectPlan:
    """Write out what a SELECT of ours leaves to be understood: PARTITION BY without a window
    groups, rows come in time order, and columns have the types they are bound to.
    """
    unseen = replace(context, shown=False)
    made = map_expressions(
        select, lambda node: convert(node, context), conditions=lambda node: convert(node, unseen)
    )
    aggregated = is_aggregated(made)
    made = _group_by_partition(made, aggregated)
    if aggregated:
        made = take_companions(made, context)
    elif on_top:
        made = order_by_time(made)
    if made.distinct:
        made = _order_by_position(made)
    items = tuple(map(assure, made.items))
    made = replace(made, items=items, limits=fit_limits(made.limits))
    return map_expressions(made, lambda node: _rewrite_all(node, context))


def _order_by_position(select: SelectPlan) -> SelectPlan:
    """Order by the number of a column what is ordered by its expression: of distinct rows DuckDB
    knows the columns alone, and those are given their types.
    """
    items = [item.expression for item in select.items]

    def number(ordered: exp.Expr) -> exp.Expr:
        by = ordered.this
        if by not in items or isinstance(by, exp.Column | exp.Literal):
            return ordered
        made = ordered.copy()
        made.set("this", exp.Literal.number(items.index(by) + 1))
        return made

    return replace(select, order_by=change_order(select.order_by, number))


def _group_by_partition(select: SelectPlan, aggregated: bool) -> SelectPlan:
    if not select.partition_by:
        return select
    group_by = select.partition_by if aggregated else select.group_by
    return replace(select, partition_by=(), group_by=group_by)


def order_by_time(select: SelectPlan) -> SelectPlan:
    """Give rows in time order unless asked otherwise, as time-series users expect."""
    source = select.source
    if not isinstance(source, Scan) or not source.time:
        return select
    if select.order_by or select.group_by or select.distinct:
        return select
    return replace(select, order_by=(exp.Ordered(this=exp.column(source.time, quoted=True)),))


def is_aggregated(select: SelectPlan) -> bool:
    """Tell if *select* makes one row of many."""
    computed = [item.expression for item in select.items]
    computed += [c for c in (select.having, select.qualify) if c is not None]
    return any(map(aggregates, computed))


def aggregates(node: exp.Expr) -> bool:
    """Tell if *node* has an aggregate of its own SELECT in it; with OVER it is none."""
    return any(
        function_name(n) in AGGREGATE_NAMES and not is_over(n)
        for n in node.walk(prune=lambda n: isinstance(n, exp.Query))
    )


# ---------------------------------------------------------------- expressions


def _rewrite_all(node: exp.Expr, context: Context) -> exp.Expr:
    """Return *node*, which nobody else has, with DuckDB's functions."""
    made: exp.Expr = node.transform(_rewrite, context, copy=False)
    return made


def _rewrite(node: exp.Expr, context: Context) -> exp.Expr:
    replaced = _replace_own(node)
    if replaced is not None:
        return replaced
    if isinstance(node, exp.Filter) and not isinstance(node.parent, exp.Window):
        return _rewrite_filter(node, context)
    if isinstance(node, exp.Window) and function_name(call_of(node)) == "spread":
        return _rewrite_spread(node, context)
    return _rewrite_call(node, context)


def _rewrite_filter(node: exp.Filter, context: Context) -> exp.Expr:
    condition = node.expression.this.transform(_rewrite, context)
    return with_filter(function_name(node.this), _rewrite(node.this.copy(), context), condition)


def _rewrite_spread(node: exp.Window, context: Context) -> exp.Expr:
    argument = _rewrite_argument(arguments(call_of(node))[0], context)
    inner = node.copy()
    call_of(inner).replace(exp.Null())
    window = inner.transform(_rewrite, context, copy=False)
    assert isinstance(window, exp.Window)
    return spread_over(window, argument, context)


def _replace_own(node: exp.Expr) -> exp.Expr | None:
    """Return DuckDB's form of what only our dialect has."""
    if isinstance(node, nodes.DurationLiteral):
        return interval(node.duration)
    if isinstance(node, nodes.MatchRegex):
        return exp.Anonymous(this="regexp_matches", expressions=[node.this, node.expression])
    return None


def _rewrite_call(node: exp.Expr, context: Context) -> exp.Expr:
    """Give a function the name and the arguments that it has in DuckDB."""
    if isinstance(node, exp.Trim):
        node = _write_as_call(node)
    if not isinstance(node, exp.Anonymous):
        return node
    name = function_name(node)
    if name in context.functions:
        node.set("this", own_name(context.functions[name]))
        node.set("expressions", [_in_milliseconds(argument) for argument in node.expressions])
    elif name in FUNCTIONS:
        # what is replaced is not descended into, so its arguments are rewritten here
        args = [_rewrite_argument(a, context) for a in node.expressions]
        binding = binding_of(node)
        if binding is not None:
            context = replace(context, precision=binding.precision)
        context = replace(context, argument=_type_of_first(node))
        chosen = chosen_by(node)
        if chosen is not None and chosen.time:
            context = replace(context, time=time_of(chosen))
        return with_form(FUNCTIONS[name](args, context), node, context)
    return node


def _type_of_first(call: exp.Anonymous) -> ColumnType | None:
    """Return the type of a call's first argument, that behind DISTINCT too."""
    first = call.expressions[0] if call.expressions else None
    if isinstance(first, exp.Distinct):
        first = first.expressions[0]
    binding = None if first is None else binding_of(first)
    return None if binding is None else binding.type


def _in_milliseconds(argument: exp.Expr) -> exp.Expr:
    """Return an argument of a user's function: a time in milliseconds may be read in another
    unit.
    """
    binding = binding_of(argument)
    if binding is None or (binding.kind, binding.precision) != ("TIMESTAMP", "ms"):
        return argument
    to = exp.DataType.build(duck_type("TIMESTAMP", "ms", ""), dialect="duckdb", udt=True)
    return exp.Cast(this=argument, to=to)


def _rewrite_argument(node: exp.Expr, context: Context) -> exp.Expr:
    """Rewrite an argument; a function of the dialect takes a duration as it is."""
    if isinstance(node, nodes.DurationLiteral):
        return node
    return node.transform(_rewrite, context)


def _write_as_call(node: exp.Trim) -> exp.Anonymous:
    """Write `trim(BOTH 'x' FROM text)` with its parts as arguments."""
    side = exp.Literal.string(node.args.get("position") or "BOTH")
    what = node.args.get("expression") or exp.Literal.string(" ")
    return exp.Anonymous(this="trim", expressions=[node.this, side, what])

"""A query of the penstock dialect as DuckDB understands it.

Pure tree rewriting: names and types are bound (`penstock.sql.relational`), tables are relations of
the caller's, clauses that only Penstock has are gone or refused. Values are converted by their
types (`conversions`), and functions get DuckDB's names.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from penstock.duck import print_query
from penstock.duck.types import duck_type
from penstock.sql import nodes
from penstock.sql.relational import AGGREGATE_NAMES, binding_of, call_of, is_over
from penstock.sql.relational.companions import chosen_by
from penstock.udf import UserFunction
from services.store.binding import BoundTable, Context
from services.store.companions import take_companions, time_of
from services.store.conversions import assure, convert
from services.store.functions import FUNCTIONS, arguments, function_name
from services.store.over import spread_over, with_filter
from services.store.overloads import with_form
from services.store.times import interval


def query(tree: exp.Query, context: Context) -> str:
    """Return DuckDB's text for a bound query whose tables are relations and whose window
    clauses have been evaluated away.
    """
    converted = tree.copy()
    convert(converted, context)
    selected = converted.transform(_select, context, copy=False)
    rewritten = selected.transform(_rewrite, context, copy=False)
    assert isinstance(rewritten, exp.Query)
    own = [own_name(f) for f in context.functions.values()]
    return print_query(
        rewritten,
        context.relations.union(b.name for b in context.tables.values()),
        [*own, *context.needed],
    )


def own_name(function: UserFunction) -> str:
    """Return DuckDB's name of a user-defined function: never one that a function of its own has."""
    return f"_penstock_function_{function.id}"


# ---------------------------------------------------------------- selects


def _select(node: exp.Expr, context: Context) -> exp.Expr:
    """Write out what a SELECT of ours leaves to be understood: PARTITION BY without a window
    groups, rows come in time order, and columns have the types they are bound to.
    """
    if not isinstance(node, exp.Select):
        return node
    having = node.args.get("having")
    conditions = [c.this for c in (having, node.args.get("qualify")) if c is not None]
    items = [*node.expressions, *conditions]
    aggregated = any(aggregates(item) for item in items)
    _group_by_partition(node, aggregated)
    if aggregated:
        take_companions(node, context)
    else:
        _order_by_time(node, context)
    if node.args.get("distinct") is not None:
        _order_by_position(node)
    node.set("expressions", [assure(item) for item in node.expressions])
    return node


def _order_by_position(node: exp.Select) -> None:
    """Order by the number of a column what is ordered by its expression: of distinct rows DuckDB
    knows the columns alone, and those are given their types.
    """
    order = node.args.get("order")
    items = [item.unalias() for item in node.expressions]
    for ordered in order.expressions if order is not None else []:
        if ordered.this in items and not isinstance(ordered.this, exp.Column | exp.Literal):
            ordered.set("this", exp.Literal.number(items.index(ordered.this) + 1))


def _group_by_partition(node: exp.Select, aggregated: bool) -> None:
    partition = node.args.get("partition_by")
    if partition is None:
        return
    node.set("partition_by", None)
    if aggregated:
        node.set("group", exp.Group(expressions=[p.unalias() for p in partition.expressions]))


def _order_by_time(node: exp.Select, context: Context) -> None:
    """Give rows in time order unless asked otherwise, as time-series users expect."""
    bound = _only_table(node, context) if node.parent is None else None
    if bound is not None:
        time = exp.column(bound.time_column, quoted=True)
        node.set("order", exp.Order(expressions=[exp.Ordered(this=time)]))


def _only_table(node: exp.Select, context: Context) -> BoundTable | None:
    """Return the table of a select that is straight from one and has no order of its own."""
    source = node.args.get("from_")
    if source is None or not isinstance(source.this, exp.Table):
        return None
    if any(node.args.get(k) for k in ("joins", "order", "group", "distinct")):
        return None
    return next((b for b in context.tables.values() if b.name == source.this.name), None)


def aggregates(node: exp.Expr) -> bool:
    """Tell if *node* has an aggregate of its own SELECT in it; with OVER it is none."""
    return any(
        function_name(n) in AGGREGATE_NAMES and not is_over(n)
        for n in node.walk(prune=lambda n: isinstance(n, exp.Query))
    )


# ---------------------------------------------------------------- expressions


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
        chosen = chosen_by(node)
        if chosen is not None and chosen.time:
            context = replace(context, time=time_of(chosen))
        return with_form(FUNCTIONS[name](args, context), node, context)
    return node


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

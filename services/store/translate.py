"""A query of the penstock dialect as DuckDB understands it.

Pure tree rewriting: names are bound to relations by the caller, clauses that only Penstock has are
gone or refused, and functions get DuckDB's names. What DuckDB computes differently is written out
(population variance, time literals in the session's zone).
"""

from __future__ import annotations

from sqlglot import exp

from penstock.duck import print_query
from penstock.errors import SqlSemanticError
from penstock.sql import nodes
from penstock.udf import UserFunction
from services.store.binding import TIME_ALIASES, BoundTable, Context
from services.store.functions import FUNCTIONS, arguments, function_name
from services.store.times import interval, is_time_arithmetic, rewrite_sides, time_literal

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul)
#: functions of the first or last row in time order
_BY_TIME = frozenset({"first", "last", "last_row"})
#: functions that choose a row, whose other columns may stand beside them
_PICKERS = _BY_TIME | {"min", "max"}
_AGGREGATES = {
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "first",
    "last",
    "last_row",
    "spread",
    "stddev",
    "std",
    "stddev_pop",
    "stddev_samp",
    "var_pop",
    "var_samp",
    "variance",
    "variance_pop",
    "apercentile",
    "percentile",
    "hyperloglog",
    "mode",
    "group_concat",
}


def query(tree: exp.Query, context: Context) -> str:
    """Return DuckDB's text for a query whose tables are bound and whose window clauses have been
    evaluated away.
    """
    rewritten = tree.transform(_select, context).transform(_rewrite, context, copy=False)
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
    groups; `SELECT *` leaves tbname out; `last(*)` is one last() a column.
    """
    if not isinstance(node, exp.Select):
        return node
    items = [one for item in node.expressions for one in _split_call(_name_as_written(item))]
    node.set("expressions", [e for item in items for e in _expand(item, context, node)])
    aggregated = any(_aggregates(e) for e in node.expressions)
    _group_by_partition(node, aggregated)
    if not aggregated:
        _order_by_time(node, context)
    elif not node.args.get("group"):
        _take_companions(node, context)
    return node


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


def _name_as_written(item: exp.Expr) -> exp.Expr:
    """Call a column without a name of its own as it was written: `count(*)`."""
    if isinstance(item, exp.Alias | exp.Column | exp.Star) or not item.meta.get("sql"):
        return item
    if _is_of_all_columns(item):
        return item
    return exp.alias_(item, str(item.meta["sql"]), quoted=True)


def _is_of_all_columns(item: exp.Expr) -> bool:
    """Tell if *item* is `first(*)`, `last(*)` or `last_row(*)`."""
    return function_name(item) in _BY_TIME and any(isinstance(a, exp.Star) for a in arguments(item))


def _split_call(item: exp.Expr) -> list[exp.Expr]:
    """Write `last(a, b)` as `last(a), last(b)`."""
    call = item.unalias()
    if function_name(call) not in _BY_TIME or len(call.expressions) < 2:
        return [item]
    name = str(call.this)
    single = (exp.Anonymous(this=name, expressions=[a.copy()]) for a in call.expressions)
    return [
        exp.alias_(one, f"{name}({a.sql(dialect='penstock')})", quoted=True)
        for one, a in zip(single, call.expressions, strict=True)
    ]


def _expand(item: exp.Expr, context: Context, select: exp.Select) -> list[exp.Expr]:
    """Write out `last(*)` and what `*` stands for: all columns but tbname."""
    if isinstance(item, exp.Star):
        if any(isinstance(source, exp.Table) for source in _sources(select)):
            item.set("except_", [exp.to_identifier("tbname")])
        return [item]
    if not _is_of_all_columns(item):
        return [item]
    name = function_name(item)
    bound = context.first_table
    if bound is None:
        raise SqlSemanticError(f"{name}(*) needs a table", code="E_QUERY", hint="add FROM")
    return [
        exp.alias_(
            exp.Anonymous(this=name, expressions=[exp.column(c, quoted=True)]), c, quoted=True
        )
        for c in bound.columns
    ]


def _sources(select: exp.Select) -> list[exp.Expr]:
    """Return what a select reads: its FROM and its joins."""
    clause = select.args.get("from_")
    joined = [join.this for join in select.args.get("joins") or []]
    return joined if clause is None else [clause.this, *joined]


def _aggregates(node: exp.Expr) -> bool:
    return any(
        (isinstance(n, exp.AggFunc) or function_name(n) in _AGGREGATES)
        and n.find_ancestor(exp.Subquery, exp.Window) is None
        for n in node.walk()
    )


def _take_companions(node: exp.Select, context: Context) -> None:
    """Let plain columns beside exactly one of min, max, first, last take the values of the row it
    chose (stream-semantics 8).
    """
    chosen = [n for e in node.expressions for n in e.walk() if function_name(n) in _PICKERS]
    bound = context.first_table
    if len(chosen) != 1 or bound is None:
        return
    picker = function_name(chosen[0])
    if picker in ("min", "max"):
        order = arguments(chosen[0])[0]
    else:
        order = exp.column(bound.time_column, quoted=True)
    function = "arg_min" if picker in ("min", "first") else "arg_max"

    def take(item: exp.Expr) -> exp.Expr:
        if _aggregates(item) or not item.find(exp.Column):
            return item
        value = exp.Anonymous(this=function, expressions=[item.unalias().copy(), order.copy()])
        return exp.alias_(value, item.output_name or item.name, quoted=True)

    node.set("expressions", [take(item) for item in node.expressions])


# ---------------------------------------------------------------- expressions


def _rewrite(node: exp.Expr, context: Context) -> exp.Expr:
    replaced = _replace_own(node, context)
    if replaced is not None:
        return replaced
    _rewrite_times(node, context)
    if isinstance(node, _ARITHMETIC) and not is_time_arithmetic(node, context):
        if not _is_real(node.this, context):
            # arithmetic gives DOUBLE, as in streams
            node.set("this", exp.cast(node.this, "DOUBLE"))
    return _rewrite_call(node, context)


def _replace_own(node: exp.Expr, context: Context) -> exp.Expr | None:
    """Return DuckDB's form of what only our dialect has."""
    if isinstance(node, nodes.DurationLiteral):
        return interval(node.duration)
    if isinstance(node, nodes.MatchRegex):
        return exp.Anonymous(this="regexp_matches", expressions=[node.this, node.expression])
    if isinstance(node, nodes.TypeName):
        return exp.DataType.build(_cast_type(node.name), dialect="duckdb", udt=True)
    if isinstance(node, exp.Column) and node.name.lower() in TIME_ALIASES:
        bound = context.of(node)
        if bound is not None:
            return exp.column(bound.time_column, table=node.table or None, quoted=True)
    return None


def _rewrite_times(node: exp.Expr, context: Context) -> None:
    """Make literals that a time column is compared with times."""
    if isinstance(node, _COMPARISONS):
        rewrite_sides(node, ("this", "expression"), context)
    elif isinstance(node, exp.Between):
        rewrite_sides(node, ("this", "low", "high"), context)
    elif isinstance(node, exp.In) and (bound := context.time_table(node.this)) is not None:
        node.set(
            "expressions", [time_literal(e, bound, context.timezone) for e in node.expressions]
        )


def _rewrite_call(node: exp.Expr, context: Context) -> exp.Expr:
    """Give a function the name and the arguments that it has in DuckDB."""
    if isinstance(node, exp.Trim):
        node = _written_as_call(node)
    if not isinstance(node, exp.Anonymous):
        return node
    name = function_name(node)
    if name in context.functions:
        node.set("this", own_name(context.functions[name]))
    elif name in FUNCTIONS:
        # what is replaced is not descended into, so its arguments are rewritten here
        args = [_rewrite_argument(a, context) for a in node.expressions]
        return FUNCTIONS[name](args, context)
    return node


def _rewrite_argument(node: exp.Expr, context: Context) -> exp.Expr:
    """Rewrite an argument; a function of the dialect takes a duration as it is."""
    if isinstance(node, nodes.DurationLiteral):
        return node
    return node.transform(_rewrite, context)


def _written_as_call(node: exp.Trim) -> exp.Anonymous:
    """Write `trim(BOTH 'x' FROM text)` with its parts as arguments."""
    side = exp.Literal.string(node.args.get("position") or "BOTH")
    what = node.args.get("expression") or exp.Literal.string(" ")
    return exp.Anonymous(this="trim", expressions=[node.this, side, what])


def _is_real(node: exp.Expr, context: Context) -> bool:
    """Tell if *node* is arithmetic, which gives DOUBLE already."""
    return isinstance(node, _ARITHMETIC) and not is_time_arithmetic(node, context)


def _cast_type(text: str) -> str:
    head = text.upper().split("(")[0].strip()
    return {
        "TINYINT UNSIGNED": "UTINYINT",
        "SMALLINT UNSIGNED": "USMALLINT",
        "INT UNSIGNED": "UINTEGER",
        "BIGINT UNSIGNED": "UBIGINT",
        "NCHAR": "VARCHAR",
        "BINARY": "VARCHAR",
        "VARBINARY": "BLOB",
        "JSON": "VARCHAR",
        "INT": "INTEGER",
        "BOOL": "BOOLEAN",
    }.get(head, text)

"""A query of the penstock dialect as DuckDB understands it.

Pure tree rewriting: names are bound to relations by the caller, clauses that only Penstock has are
gone or refused, and functions get DuckDB's names. What DuckDB computes differently is written out
(population variance, time literals in the session's zone).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from sqlglot import exp

from penstock.duck import printed
from penstock.errors import SqlSemanticError
from penstock.sql import nodes
from penstock.sql.plan import Duration
from penstock.udf import UserFunction

_UNIT = {
    "b": "NANOSECOND",
    "u": "MICROSECOND",
    "a": "MILLISECOND",
    "s": "SECOND",
    "m": "MINUTE",
    "h": "HOUR",
    "d": "DAY",
    "w": "WEEK",
    "n": "MONTH",
    "y": "YEAR",
}
#: other names of the time column that queries use
TIME_ALIASES = ("_tp_time", "_rowts", "_c0")


@dataclass(frozen=True)
class BoundTable:
    """A table of the query: what DuckDB calls it, its columns in order, and which are times."""

    name: str
    columns: tuple[str, ...]
    timestamps: frozenset[str]
    precision: str

    @property
    def time_column(self) -> str:
        return self.columns[0]


@dataclass(frozen=True)
class Context:
    """What rewriting an expression may ask: the tables by alias, and the session's zone."""

    tables: Mapping[str, BoundTable]
    timezone: str
    #: user-defined functions by name
    functions: Mapping[str, UserFunction] = field(default_factory=dict)
    #: relations besides the tables that the query may read
    relations: frozenset[str] = frozenset()

    def of(self, column: exp.Column) -> BoundTable | None:
        if column.table:
            return self.tables.get(column.table.lower())
        having = [
            b for b in self.tables.values() if column.name.lower() in {c.lower() for c in b.columns}
        ]
        return (
            having[0]
            if len(having) == 1
            else next(iter(self.tables.values()))
            if len(self.tables) == 1
            else None
        )

    def is_time(self, node: exp.Expr) -> BoundTable | None:
        """The table whose TIMESTAMP column *node* is."""
        if not isinstance(node, exp.Column):
            return None
        bound = self.of(node)
        if bound is not None and (
            node.name.lower() in bound.timestamps or node.name.lower() in TIME_ALIASES
        ):
            return bound
        return None


def query(tree: exp.Query, context: Context) -> str:
    """DuckDB's text for a query whose tables are bound and whose window clauses have been evaluated
    away.
    """
    rewritten = tree.transform(_select, context).transform(_rewrite, context, copy=False)
    assert isinstance(rewritten, exp.Query)
    own = [own_name(f) for f in context.functions.values()]
    return printed(rewritten, context.relations.union(b.name for b in context.tables.values()), own)


def own_name(function: UserFunction) -> str:
    """What DuckDB calls a user-defined function: never by a name that a function of its own has."""
    return f"_penstock_function_{function.id}"


def _select(node: exp.Expr, context: Context) -> exp.Expr:
    """PARTITION BY without a window groups; `SELECT *` leaves tbname out; `last(*)` is one last() a
    column.
    """
    if not isinstance(node, exp.Select):
        return node
    partition = node.args.get("partition_by")
    items = [_expand(e, context, node) for item in node.expressions for e in _several(_named(item))]
    node.set("expressions", [e for some in items for e in some])
    aggregated = any(_aggregates(e) for e in node.expressions)
    if partition is not None:
        node.set("partition_by", None)
        if aggregated:
            node.set("group", exp.Group(expressions=[p.unalias() for p in partition.expressions]))
    if aggregated and not node.args.get("group"):
        _companions(node, context)
    elif (
        not aggregated and node.parent is None and (bound := _only_table(node, context)) is not None
    ):
        # rows come in time order unless asked otherwise, as time-series users expect
        node.set(
            "order",
            exp.Order(expressions=[exp.Ordered(this=exp.column(bound.time_column, quoted=True))]),
        )
    return node


def _only_table(node: exp.Select, context: Context) -> BoundTable | None:
    """The table of a select that is straight from one and has no order of its own."""
    source = node.args.get("from_")
    if (
        source is None
        or not isinstance(source.this, exp.Table)
        or any(node.args.get(k) for k in ("joins", "order", "group", "distinct"))
    ):
        return None
    return next((b for b in context.tables.values() if b.name == source.this.name), None)


def _named(item: exp.Expr) -> exp.Expr:
    """A column without a name of its own is called as it was written: `count(*)`."""
    if isinstance(item, exp.Alias | exp.Column | exp.Star) or not item.meta.get("sql"):
        return item
    if any(isinstance(a, exp.Star) for a in _arguments(item)) and _function_name(item) in (
        "first",
        "last",
        "last_row",
    ):
        return item
    return exp.alias_(item, str(item.meta["sql"]), quoted=True)


def _several(item: exp.Expr) -> list[exp.Expr]:
    """`last(a, b)` is `last(a), last(b)`."""
    call = item.unalias()
    if _function_name(call) not in ("first", "last", "last_row") or len(call.expressions) < 2:
        return [item]
    name = str(call.this)
    single = (exp.Anonymous(this=name, expressions=[a.copy()]) for a in call.expressions)
    return [
        exp.alias_(one, f"{name}({a.sql(dialect='penstock')})", quoted=True)
        for one, a in zip(single, call.expressions, strict=True)
    ]


def _expand(item: exp.Expr, context: Context, select: exp.Select) -> list[exp.Expr]:
    name = _function_name(item)
    if isinstance(item, exp.Star):
        clause = select.args.get("from_")
        sources = [
            *([clause.this] if clause is not None else []),
            *(j.this for j in select.args.get("joins") or []),
        ]
        if any(isinstance(source, exp.Table) for source in sources):
            item.set("except_", [exp.to_identifier("tbname")])
        return [item]
    if name in ("last", "last_row", "first") and any(
        isinstance(a, exp.Star) for a in _arguments(item)
    ):
        bound = next(iter(context.tables.values()), None)
        if bound is None:
            raise SqlSemanticError(f"{name}(*) needs a table", code="E_QUERY", hint="add FROM")
        return [
            exp.alias_(
                exp.Anonymous(this=name, expressions=[exp.column(c, quoted=True)]), c, quoted=True
            )
            for c in bound.columns
        ]
    return [item]


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


def _function_name(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else ""


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    found: list[exp.Expr] = []
    for value in node.args.values():
        found += (
            value if isinstance(value, list) else [value] if isinstance(value, exp.Expr) else []
        )
    return found


def _aggregates(node: exp.Expr) -> bool:
    return any(
        (isinstance(n, exp.AggFunc) or _function_name(n) in _AGGREGATES)
        and n.find_ancestor(exp.Subquery, exp.Window) is None
        for n in node.walk()
    )


def _companions(node: exp.Select, context: Context) -> None:
    """Plain columns beside exactly one of min, max, first, last take the values of the row it chose
    (stream-semantics 8).
    """
    chosen = [
        n
        for e in node.expressions
        for n in e.walk()
        if _function_name(n) in ("min", "max", "first", "last", "last_row")
    ]
    if len(chosen) != 1:
        return
    picker = _function_name(chosen[0])
    argument = _arguments(chosen[0])[0]
    bound = next(iter(context.tables.values()), None)
    if bound is None:
        return
    order = argument if picker in ("min", "max") else exp.column(bound.time_column, quoted=True)
    function = "arg_min" if picker in ("min", "first") else "arg_max"
    made = []
    for item in node.expressions:
        if _aggregates(item) or not item.find(exp.Column):
            made.append(item)
            continue
        value = exp.Anonymous(this=function, expressions=[item.unalias().copy(), order.copy()])
        made.append(exp.alias_(value, item.output_name or item.name, quoted=True))
    node.set("expressions", made)


def _rewrite(node: exp.Expr, context: Context) -> exp.Expr:
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
    if isinstance(node, exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE):
        _time_sides(node, ("this", "expression"), context)
    elif isinstance(node, exp.Between):
        _time_sides(node, ("this", "low", "high"), context)
    elif isinstance(node, exp.In) and (bound := context.is_time(node.this)) is not None:
        node.set(
            "expressions", [_time_literal(e, bound, context.timezone) for e in node.expressions]
        )
    elif isinstance(node, exp.Add | exp.Sub | exp.Mul) and not _is_time_arithmetic(node, context):
        if not _is_real(node.this, context):
            node.set(
                "this", exp.cast(node.this, "DOUBLE")
            )  # arithmetic gives DOUBLE, as in streams
    name = _function_name(node)
    if name in context.functions and isinstance(node, exp.Anonymous):
        node.set("this", own_name(context.functions[name]))
    elif name in _FUNCTIONS and not isinstance(node, exp.Cast | exp.Case):
        # what is replaced is not descended into, so its arguments are rewritten here
        return _FUNCTIONS[name]([a.transform(_rewrite, context) for a in _arguments(node)], context)
    return node


def _is_real(node: exp.Expr, context: Context) -> bool:
    """Whether *node* is arithmetic, which gives DOUBLE already."""
    return isinstance(node, exp.Add | exp.Sub | exp.Mul) and not _is_time_arithmetic(node, context)


def _is_time_arithmetic(node: exp.Expr, context: Context) -> bool:
    """Whether times or durations are anywhere in *node*; found once for each node of a query."""
    known = node.meta.get(_TIMELY)
    if known is None:
        _mark_times(node, context)
        known = node.meta[_TIMELY]
    return bool(known)


def _mark_times(root: exp.Expr, context: Context) -> None:
    """Note at every node below *root* whether times or durations are in it: from the leaves up,
    each looked at once.
    """
    for node in reversed(list(root.walk(bfs=True))):
        timely = (
            isinstance(node, nodes.DurationLiteral | exp.Interval)
            or _function_name(node) in _TIME_FUNCTIONS
        )
        timely = (
            timely
            or context.is_time(node) is not None
            or any(c.meta.get(_TIMELY) for c in node.iter_expressions())
        )
        node.meta[_TIMELY] = timely


def interval(duration: Duration) -> exp.Expr:
    if duration.unit == "b":
        raise SqlSemanticError(
            "nanoseconds can't be added in a query",
            hint="use u or longer, or add to the column's number",
        )
    return exp.Interval(
        this=exp.Literal.string(str(duration.value)), unit=exp.var(_UNIT[duration.unit])
    )


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


def _time_sides(node: exp.Expr, sides: tuple[str, ...], context: Context) -> None:
    bound = next((b for side in sides if (b := context.is_time(node.args[side])) is not None), None)
    if bound is not None:
        for side in sides:
            node.set(side, _time_literal(node.args[side], bound, context.timezone))


def _time_literal(node: exp.Expr, bound: BoundTable, timezone: str) -> exp.Expr:
    """A number is ticks of the database, a text is a time in the session's zone unless it names its
    own.
    """
    negative = isinstance(node, exp.Neg)
    literal = node.this if negative else node
    if not isinstance(literal, exp.Literal):
        return node
    if not literal.is_string:
        ticks = int(literal.this) * (-1 if negative else 1)
        return _moment(ticks, bound.precision)
    try:
        moment = datetime.fromisoformat(literal.this.strip())
    except ValueError:
        raise SqlSemanticError(
            f"'{literal.this}' is no time",
            hint="write it as 2024-01-31 12:00:00.000 or as a number of ticks",
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=ZoneInfo(timezone))
    text = moment.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ")
    return exp.cast(
        exp.Literal.string(text),
        exp.DataType.build(
            "TIMESTAMP_NS" if bound.precision == "ns" else "TIMESTAMP", dialect="duckdb"
        ),
    )


def _moment(ticks: int, precision: str) -> exp.Expr:
    function = {"ms": "make_timestamp_ms", "us": "make_timestamp", "ns": "make_timestamp_ns"}[
        precision
    ]
    return exp.Anonymous(this=function, expressions=[exp.Literal.number(ticks)])


#: nodes of a value that a function writes twice
_LARGEST = 10_000
#: key of a note in `meta`: times or durations are in it
_TIMELY = "timely"
_Args = list[exp.Expr]


def _call(name: str) -> Callable[[_Args, Context], exp.Expr]:
    return lambda args, _: exp.Anonymous(this=name, expressions=args)


def _by_time(function: str) -> Callable[[_Args, Context], exp.Expr]:
    """First and last in time order: `arg_min(x, ts)`; a NULL x does not count (last_row: it
    does).
    """

    def make(args: _Args, context: Context) -> exp.Expr:
        column = args[0]
        bound = context.of(column) if isinstance(column, exp.Column) else None
        bound = bound or next(iter(context.tables.values()), None)
        if bound is None:
            raise SqlSemanticError("first and last need a table with a time column")
        table = column.table if isinstance(column, exp.Column) else None
        return exp.Anonymous(
            this=function,
            expressions=[column, exp.column(bound.time_column, table=table or None, quoted=True)],
        )

    return make


def _spread(args: _Args, _: Context) -> exp.Expr:
    return exp.Sub(
        this=exp.Anonymous(this="max", expressions=[args[0]]),
        expression=exp.Anonymous(this="min", expressions=[args[0].copy()]),
    )


def _apercentile(args: _Args, _: Context) -> exp.Expr:
    if (
        not isinstance(args[1], exp.Literal)
        or args[1].is_string
        or not 0 <= float(args[1].this) <= 100
    ):
        raise SqlSemanticError("a percentile is a number from 0 to 100", code="E_FUNCTION_ARGUMENT")
    share = exp.Literal.number(float(args[1].this) / 100)
    return exp.Anonymous(this="approx_quantile", expressions=[exp.cast(args[0], "DOUBLE"), share])


def _truncate(args: _Args, _: Context) -> exp.Expr:
    origin = exp.cast(exp.Literal.string("1970-01-01"), "TIMESTAMP")
    return exp.Anonymous(this="time_bucket", expressions=[args[1], args[0], origin])


def _difference(args: _Args, _: Context) -> exp.Expr:
    """timediff(a, b[, unit]): whole units between two times, 1 ms where none is given."""
    micros = [
        exp.Anonymous(this="epoch_us", expressions=[exp.cast(a, "TIMESTAMP")]) for a in args[:2]
    ]
    unit = (
        exp.Anonymous(this="epoch_us", expressions=[args[2]])
        if len(args) > 2
        else exp.Literal.number(1000)
    )
    return exp.IntDiv(
        this=exp.Paren(this=exp.Sub(this=micros[0], expression=micros[1])), expression=unit
    )


def _iso(args: _Args, context: Context) -> exp.Expr:
    return exp.Anonymous(
        this="strftime", expressions=[args[0], exp.Literal.string("%Y-%m-%dT%H:%M:%S.%g+0000")]
    )


def _now(_: _Args, __: Context) -> exp.Expr:
    return exp.cast(
        exp.AtTimeZone(this=exp.Anonymous(this="now"), zone=exp.Literal.string("UTC")),
        exp.DataType.build("TIMESTAMP"),
    )


def _earliest(_: _Args, __: Context) -> exp.Expr:
    return exp.cast(exp.Literal.string("1970-01-01"), exp.DataType.build("TIMESTAMP"))


def _timezone(_: _Args, context: Context) -> exp.Expr:
    return exp.Literal.string(context.timezone)


def _log(args: _Args, _: Context) -> exp.Expr:
    """Natural without a base; the base comes second, DuckDB's first."""
    return _quietly("ln" if len(args) == 1 else "log", args[::-1])


def _quietly(name: str, args: _Args) -> exp.Expr:
    """NULL where mathematics has no answer and DuckDB an error."""
    return exp.Anonymous(this="try", expressions=[exp.Anonymous(this=name, expressions=args)])


def _real(name: str) -> Callable[[_Args, Context], exp.Expr]:
    return lambda args, _: _quietly(name, args)


def _extreme(name: str) -> Callable[[_Args, Context], exp.Expr]:
    """Greatest and least: NULL when any value is."""

    def make(args: _Args, _: Context) -> exp.Expr:
        # every value is written twice, so what is nested doubles with each level
        if sum(1 for a in args for _ in a.walk()) > _LARGEST:
            raise SqlSemanticError(
                f"{name}() is nested too deeply",
                code="E_FUNCTION_ARGUMENT",
                hint=f"{name}() takes many values at once",
            )
        missing = exp.or_(*(exp.Is(this=a.copy(), expression=exp.Null()) for a in args))
        return exp.Case(
            ifs=[exp.If(this=missing, true=exp.Null())],
            default=exp.Anonymous(this=name, expressions=args),
        )

    return make


def _nvl2(args: _Args, _: Context) -> exp.Expr:
    missing = exp.Is(this=args[0], expression=exp.Null())
    return exp.Case(ifs=[exp.If(this=missing, true=args[2])], default=args[1])


def _day(name: str, shift: int) -> Callable[[_Args, Context], exp.Expr]:
    """A part of the date as a number, counted from where the dialect counts."""

    def make(args: _Args, _: Context) -> exp.Expr:
        part = exp.Anonymous(this=name, expressions=[exp.cast(args[0], "TIMESTAMP")])
        return exp.Paren(this=exp.Add(this=part, expression=exp.Literal.number(shift)))

    return make


def _substr(args: _Args, _: Context) -> exp.Expr:
    """Positions count from 1 or from the end; at 0 there is nothing, and a length below 1 takes
    nothing.
    """
    if len(args) > 2:
        args = [
            *args[:2],
            exp.Anonymous(this="greatest", expressions=[args[2], exp.Literal.number(0)]),
        ]
    nowhere = exp.EQ(this=args[1].copy(), expression=exp.Literal.number(0))
    return exp.Case(
        ifs=[exp.If(this=nowhere, true=exp.Literal.string(""))],
        default=exp.Anonymous(this="substring", expressions=args),
    )


_TIME_FUNCTIONS = ("now", "today", "timetruncate", "to_timestamp", "current_timestamp")
_FUNCTIONS: dict[str, Callable[[_Args, Context], exp.Expr]] = {
    "earliest_ts": _earliest,
    "earliest_timestamp": _earliest,
    "first": _by_time("arg_min"),
    "last": _by_time("arg_max"),
    "last_row": _by_time("arg_max_null"),
    "spread": _spread,
    "stddev": _call("stddev_pop"),
    "std": _call("stddev_pop"),
    "variance": _call("var_pop"),
    "variance_pop": _call("var_pop"),
    "length": _call("strlen"),
    "apercentile": _apercentile,
    "percentile": _apercentile,
    "hyperloglog": _call("approx_count_distinct"),
    "ceiling": _call("ceil"),
    "ln": _real("ln"),
    "sqrt": _real("sqrt"),
    "acos": _real("acos"),
    "asin": _real("asin"),
    "log": _log,
    "greatest": _extreme("greatest"),
    "least": _extreme("least"),
    "nvl2": _nvl2,
    "position": lambda args, _: exp.Anonymous(this="strpos", expressions=args[::-1]),
    "date": lambda args, _: exp.Anonymous(
        this="strftime", expressions=[args[0], exp.Literal.string("%Y-%m-%d")]
    ),
    "dayofweek": _day("dayofweek", 1),
    "weekday": _day("isodow", -1),
    "weekofyear": _day("weekofyear", 0),
    "substr": _substr,
    "substring": _substr,
    "truncate": _call("trunc"),
    "char_length": _call("length"),
    "ifnull": _call("coalesce"),
    "nvl": _call("coalesce"),
    "timetruncate": _truncate,
    "timediff": _difference,
    "to_iso8601": _iso,
    "to_unixtimestamp": _call("epoch_ms"),
    "current_timestamp": _now,
    "now": _now,
    "timezone": _timezone,
    "server_version": lambda _, __: exp.Literal.string("3.3.6.0 (penstock)"),
    "server_status": lambda _, __: exp.Literal.number(1),
    "client_version": lambda _, __: exp.Literal.string("3.3.6.0 (penstock)"),
    "database": lambda _, __: exp.Null(),
}

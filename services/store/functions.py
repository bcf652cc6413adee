"""Functions of the Penstock dialect as DuckDB has them."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from penstock.errors import SqlSemanticError
from services.store.binding import Context

#: nodes of a value that a function writes twice
_LARGEST = 10_000
_Args = list[exp.Expr]
#: makes the call for DuckDB from arguments that are rewritten already
_Make = Callable[[_Args, Context], exp.Expr]


def function_name(node: exp.Expr) -> str:
    """Return the name of a call in lower case, "" for anything else."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else ""


def arguments(node: exp.Expr) -> list[exp.Expr]:
    """Return the arguments of a call in order."""
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    found: list[exp.Expr] = []
    for value in node.args.values():
        if isinstance(value, list):
            found += value
        elif isinstance(value, exp.Expr):
            found.append(value)
    return found


def _call(name: str) -> _Make:
    return lambda args, _: exp.Anonymous(this=name, expressions=args)


def _by_time(function: str) -> _Make:
    """First and last in time order: `arg_min(x, ts)`; a NULL x does not count (last_row: it
    does).
    """

    def make(args: _Args, context: Context) -> exp.Expr:
        column = args[0]
        bound = context.of(column) if isinstance(column, exp.Column) else None
        bound = bound or context.first_table
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


def _real(name: str) -> _Make:
    return lambda args, _: _quietly(name, args)


def _extreme(name: str) -> _Make:
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


def _day(name: str, shift: int) -> _Make:
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


#: functions that give times
TIME_FUNCTIONS = ("now", "today", "timetruncate", "to_timestamp", "current_timestamp")
#: functions of the dialect that DuckDB calls or computes otherwise
FUNCTIONS: dict[str, _Make] = {
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

"""Aggregates with FILTER and OVER as DuckDB takes them.

Many aggregates of the dialect are macros. DuckDB takes OVER behind a macro that has one aggregate
in it, with FILTER or without; FILTER alone it does not take.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.sql.functions.duckdb import PREFIX
from penstock.sql.functions.macros import FINITE
from penstock.sql.relational.companions import BY_TIME
from services.store.binding import Context
from services.store.functions import FUNCTIONS, function_name


def with_filter(name: str, call: exp.Expr, condition: exp.Expr) -> exp.Expr:
    """Return an aggregate of the rows that meet *condition*.

    Args:
        name: of the aggregate in the dialect.
        call: of it, as DuckDB has it.
        condition: rewritten already.
    """
    if not function_name(call).startswith(PREFIX):
        return exp.Filter(this=call, expression=exp.Where(this=condition))
    # a row without a time is passed over
    place = 1 if name in BY_TIME else 0
    arguments = list(call.expressions)
    # aggregates skip NULL
    kept = exp.If(this=condition, true=arguments[place])
    arguments[place] = exp.Case(ifs=[kept])
    call.set("expressions", arguments)
    return call


def spread_over(window: exp.Window, argument: exp.Expr, context: Context) -> exp.Expr:
    """Return spread() OVER: DuckDB wants one aggregate in a window, and this is made of two.

    Args:
        window: with its parts rewritten; its function is not looked at.
        argument: rewritten already.
    """
    number = exp.Cast(this=argument, to=exp.DataType.build("DOUBLE"))
    sides = []
    for name in ("max", "min"):
        side = window.copy()
        aggregate = FUNCTIONS[name]([number.copy()], context)
        inner = side.this
        inner = inner if isinstance(inner, exp.Filter) else side
        inner.set("this", aggregate)
        sides.append(side)
    context.needed.setdefault(FINITE.name, FINITE)
    difference = exp.Sub(this=sides[0], expression=sides[1])
    return exp.Anonymous(this=FINITE.name, expressions=[difference])

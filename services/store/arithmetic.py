"""Operators on numbers, times and bits: what `penstock.sql.compile.arithmetic` computes, as DuckDB
does. Arithmetic gives DOUBLE, times count in ticks.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.functions.base import BIGINT, TIMESTAMP
from penstock.sql.functions.duckdb import macro, polars_expression
from penstock.sql.functions.macros import FINITE
from penstock.sql.relational import Binding, binding_of, note
from services.store.binding import Context
from services.store.casts import MOMENTS, convert_to, moment_within_bounds
from services.store.times import TICKS, read_time

OPERATORS = (
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Div,
    exp.Mod,
    exp.Neg,
    exp.BitwiseAnd,
    exp.BitwiseOr,
)
#: an infinite value or NaN on the left side stays one
_KEEPS_INFINITE = (exp.Add, exp.Sub, exp.Mul, exp.Div)
#: columns and constants of what is written twice
_LARGEST_REPEATED = 16
#: key of a note in `meta`: this call makes a time of ticks
_OF_TICKS = "of_ticks"
_finite_macro = macro("finite_of", f"(x) AS {FINITE.name}(x)", calls=(FINITE,))
_BIGINT = exp.DataType.build("BIGINT")
_HUGEINT = exp.DataType.build("HUGEINT", dialect="duckdb")
_DOUBLE = exp.DataType.build("DOUBLE")


def rewrite_operator(node: exp.Expr, context: Context) -> exp.Expr:
    """Return an operator whose operands are converted already; one that nobody has bound stays as
    it is.
    """
    if binding_of(node) is None:
        return node
    if isinstance(node, exp.Neg):
        return _negative(node)
    if isinstance(node, exp.BitwiseAnd | exp.BitwiseOr):
        return _bits(node, context)
    made = _arithmetic(node, context)
    is_end = kind_of(node) == "DOUBLE" and not _continues(node)
    return _finite(made, context) if is_end else made


def _continues(node: exp.Expr) -> bool:
    """Tell if a chain of operators goes on: what is not finite within it is NULL at its end."""
    parent = node.parent
    while isinstance(parent, exp.Paren):
        node, parent = parent, parent.parent
    return isinstance(parent, _KEEPS_INFINITE) and parent.this is node


def _finite(node: exp.Expr, context: Context) -> exp.Expr:
    """Return a number, NULL where it is none or too large."""
    large = sum(1 for _ in node.find_all(exp.Column, exp.Literal)) > _LARGEST_REPEATED
    if large or node.find(exp.Query) is not None:
        return _finite_macro([node.copy()], context)
    # DuckDB computes once what stands twice; a macro takes five times as long
    known = call("isfinite", node.copy())
    return exp.Case(ifs=[exp.If(this=known, true=node.copy())])


def _negative(node: exp.Neg) -> exp.Expr:
    inner = node.this.unnest()  # parentheses around it have no type
    if not isinstance(inner, exp.Literal):
        node.set("this", _as_double(as_ticks(inner)))
    return node


def _bits(node: exp.Expr, context: Context) -> exp.Expr:
    for key in ("this", "expression"):
        binding = binding_of(node.args[key])
        if binding is not None and binding.kind != "NULL":
            node.set(key, convert_to(node.args[key], binding, Binding(BIGINT), context))
    return node


def _arithmetic(node: exp.Expr, context: Context) -> exp.Expr:
    """Give DOUBLE for numbers, ticks for the difference of times, a time for a time and what moves
    it.
    """
    if kind_of(node) == "TIMESTAMP":
        return _move(node, context)
    if "TIMESTAMP" in (kind_of(node.this), kind_of(node.expression)):
        for key in ("this", "expression"):
            node.set(key, as_ticks(node.args[key]))
    # DuckDB divides whole numbers as DOUBLE, and a FLOAT as FLOAT
    of_float = "FLOAT" in (kind_of(node.this.unnest()), kind_of(node.expression.unnest()))
    if kind_of(node) != "BIGINT" and (of_float or not isinstance(node, exp.Div)):
        node.set("this", _as_double(node.this))
    for key in ("this", "expression"):
        if kind_of(node.args[key]) in ("BOOL", "JSON"):
            node.set(key, _as_double(node.args[key]))
    return node


def _move(node: exp.Expr, context: Context) -> exp.Expr:
    """Return a time plus or minus a duration or a number of ticks."""
    time, by = node.this, node.expression
    if _is_duration(time) or kind_of(by) == "TIMESTAMP":
        time, by = by, time
    binding = binding_of(time)
    if binding is None or binding.kind != "TIMESTAMP":
        time, binding = _constant_time(time, node, context.timezone)
    duration = by.unnest()
    if not isinstance(duration, nodes.DurationLiteral):
        return _move_by_number(node, time, by, replace(context, precision=binding.precision))
    if duration.duration.natural:
        return _move_by_calendar(
            node, time, duration, replace(context, precision=binding.precision)
        )
    by = exp.Literal.number(str(duration.duration.ticks(binding.precision)))
    return _of_ticks(type(node)(this=as_ticks(time), expression=by), binding.precision)


def _move_by_number(node: exp.Expr, time: exp.Expr, by: exp.Expr, context: Context) -> exp.Expr:
    """Return a time moved by a number of ticks; NULL where that is no time."""
    ticks = type(node)(this=_wide_ticks(time), expression=cast(by, _BIGINT))
    made = moment_within_bounds(exp.TryCast(this=ticks, to=_BIGINT.copy()), context)
    made.meta[_OF_TICKS] = True
    return made


def _wide_ticks(time: exp.Expr) -> exp.Expr:
    """Return a time as ticks that cannot grow too large, a chain of sums as one."""
    ticks = as_ticks(time)
    is_sum = time.meta.get(_OF_TICKS) and isinstance(ticks, exp.TryCast)
    return ticks.this if is_sum else cast(ticks, _HUGEINT)


def _is_duration(node: exp.Expr) -> bool:
    return isinstance(node.unnest(), nodes.DurationLiteral)


def _constant_time(text: exp.Expr, node: exp.Expr, timezone: str) -> tuple[exp.Expr, Binding]:
    """Return the time that a text is, and what it is bound to: that of the sum *node*."""
    binding = binding_of(node)
    assert binding is not None  # `rewrite_operator` looks
    ticks = read_time(str(text.unnest().this), binding.precision, timezone)
    made = _of_ticks(exp.Literal.number(str(ticks)), binding.precision)
    note(made, binding)
    return made, binding


def _of_ticks(ticks: exp.Expr, precision: str) -> exp.Expr:
    made = call(MOMENTS[precision], ticks)
    made.meta[_OF_TICKS] = True
    return made


def _move_by_calendar(
    node: exp.Expr, time: exp.Expr, by: nodes.DurationLiteral, context: Context
) -> exp.Expr:
    """Return a time moved by months or years of the session's zone."""

    def make(column: exp.Column) -> exp.Expr:
        return type(node)(this=column, expression=by.copy())

    return polars_expression("moved", make, time, TIMESTAMP, context)


def as_ticks(node: exp.Expr) -> exp.Expr:
    """Return a time as its ticks, and anything else as it is."""
    binding = binding_of(node)
    if binding is None or binding.kind != "TIMESTAMP":
        return node
    if node.meta.get(_OF_TICKS):
        # else a chain of sums would nest as deep as it is long
        ticks: exp.Expr = node.expressions[0]
        return ticks
    return call(TICKS[binding.precision], node)


def _as_double(node: exp.Expr) -> exp.Expr:
    """Return *node* as a DOUBLE, so that what is computed from it is one."""
    if kind_of(node) == "JSON":
        return exp.TryCast(this=node, to=_DOUBLE.copy())
    return node if kind_of(node) == "DOUBLE" else cast(node, _DOUBLE)


def kind_of(node: exp.Expr) -> str:
    """Return the kind of type that a node is bound to, "" where it is not."""
    binding = binding_of(node)
    return binding.kind if binding is not None else ""


def cast(node: exp.Expr, to: exp.DataType) -> exp.Expr:
    """Return DuckDB's own cast."""
    return exp.Cast(this=node, to=to.copy())


def call(name: str, argument: exp.Expr) -> exp.Expr:
    """Return a call of a function of DuckDB's."""
    return exp.Anonymous(this=name, expressions=[argument])

"""Conversions that DuckDB needs and the dialect leaves to be understood, decided by bound types.

Values are converted from the leaves up, in one loop over an expression: what a node has to become
depends on the types of its operands alone. Nothing here goes by a name. Expressions that nobody has
bound stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlglot import exp

from penstock.duck.types import duck_type
from penstock.sql import nodes
from penstock.sql.free_literals import pass_on
from penstock.sql.functions import AGGREGATES, QUERY_AGGREGATES, QUERY_ONLY, REGISTRY
from penstock.sql.relational import RowLimits, SelectItem, binding_of, note
from penstock.types import ColumnType
from services.store.arithmetic import (
    OPERATORS,
    as_ticks,
    cast,
    kind_of,
    rewrite_operator,
)
from services.store.binding import Context
from services.store.casts import rewrite_cast
from services.store.choices import align_case, align_choice
from services.store.comparisons import COMPARISONS, align_list, align_sides
from services.store.json_values import rewrite_contains, rewrite_value

#: highest number in LIMIT and OFFSET
_MOST_ROWS = 2**63 - 1
#: highest number that DuckDB takes for a whole one of 64 bits
_HIGHEST = 2**64 - 1
#: types that a computed column is given where DuckDB's own type may be another
_ASSURED = frozenset(("BOOL", "TIMESTAMP", "FLOAT", "DOUBLE", "VARCHAR", "NCHAR"))
#: parameters that take BOOL as a number
_NUMBERS = frozenset(("number", "double", "integer", "spread"))
#: parameters that take a time as its ticks
_OF_TICKS_TOO = frozenset(("double", "integer", "spread"))
#: functions with a value that stands for one that is not there
_WITH_DEFAULT = frozenset(("lag", "lead"))
_INTEGER = exp.DataType.build("INTEGER")
_DOUBLE = exp.DataType.build("DOUBLE")


def convert(expression: exp.Expr, context: Context) -> exp.Expr:
    """Return a bound expression with its values converted."""
    root = expression.copy()
    for node in reversed(list(root.walk(bfs=True))):
        made = _convert(node, context)
        if made is node:
            continue
        binding = binding_of(node)
        if binding is not None:
            note(made, binding)
        if node is root:
            root = made
        else:
            node.replace(made)
    return root


def _convert(node: exp.Expr, context: Context) -> exp.Expr:
    form = _FORMS.get(type(node))
    return node if form is None else form(node, context)


def _literal(node: exp.Literal, _: Context) -> exp.Expr:
    return _number(node) if _is_value(node) else node


def fit_limits(limits: RowLimits) -> RowLimits:
    """Return limits that DuckDB can count to; more rows than there can be are the most that there
    can be.
    """
    if not limits:
        return limits
    return replace(limits, rows=_fit(limits.rows), skipped=_fit(limits.skipped))


def _fit(count: exp.Literal | None) -> exp.Literal | None:
    if count is None or not count.name.isdecimal() or int(count.name) <= _MOST_ROWS:
        return count
    return exp.Literal(this=str(_MOST_ROWS), is_string=False)


def _call(node: exp.Anonymous, context: Context) -> exp.Expr:
    node.set("expressions", _arguments(node))
    return align_choice(node, context)


def _cast(node: exp.Cast, context: Context) -> exp.Expr:
    """Write a CAST of the query's; one for an engine has an engine's type."""
    return rewrite_cast(node, context) if isinstance(node.args["to"], nodes.TypeName) else node


def _is_value(node: exp.Literal) -> bool:
    """Tell a number in an expression from the one in INTERVAL, and from a text."""
    return not node.is_string and not isinstance(node.parent, exp.Interval)


def _number(node: exp.Literal) -> exp.Expr:
    """Write a number as DuckDB's type of what it is here: one with a point is a DOUBLE."""
    text = str(node.this)
    has_point = re.fullmatch(r"\d*\.\d*", text) is not None
    too_high = text.isdecimal() and int(text) > _HIGHEST
    return pass_on(node, exp.Literal.number(f"{text}e0")) if has_point or too_high else node


# ---------------------------------------------------------------- arithmetic


def _duration(node: nodes.DurationLiteral) -> exp.Expr:
    """Write a duration that stands for a number as its ticks. Beside a time and as the unit of a
    function it is one.
    """
    binding = binding_of(node)
    beside = node.parent
    while isinstance(beside, exp.Paren):
        beside = beside.parent
    if binding is None or _takes_durations(beside) or _shifts_a_time(beside):
        return node
    return exp.Literal.number(str(node.duration.ticks(binding.precision)))


def _takes_durations(node: exp.Expr | None) -> bool:
    if not isinstance(node, exp.Anonymous):
        return False
    name = str(node.this).lower()
    function = REGISTRY.get(name)
    if function is None:
        return name in QUERY_ONLY
    return any(parameter.kind == "unit" for parameter in function.parameters)


def _arguments(node: exp.Anonymous) -> list[exp.Expr]:
    """Return the arguments of a call, BOOL as 0 and 1 where numbers are meant, and times as ticks
    where their difference is.
    """
    name = str(node.this).lower()
    if name in _WITH_DEFAULT:
        return _alike(node)
    kinds = _parameter_kinds(name)
    made: list[exp.Expr] = []
    for index, argument in enumerate(node.expressions):
        kind = kinds[min(index, len(kinds) - 1)] if kinds else ""
        if kind in _OF_TICKS_TOO:
            argument = as_ticks(argument)
        if kind in _NUMBERS and kind_of(argument) == "BOOL":
            argument = cast(argument, _INTEGER)
        made.append(argument)
    return made


def _alike(node: exp.Anonymous) -> list[exp.Expr]:
    """Return the arguments of lag or lead, value and default as numbers of one type."""
    kind = binding_of(node)
    if len(node.expressions) < 3 or kind is None or not kind.type.numeric:
        return list(node.expressions)
    to = exp.DataType.build(
        duck_type(kind.kind, kind.precision, str(kind.type)), dialect="duckdb", udt=True
    )
    value, count, default = node.expressions
    return [cast(value, to), count, cast(default, to)]


def _parameter_kinds(name: str) -> list[str]:
    aggregate = AGGREGATES.get(name)
    if aggregate is not None:
        return [aggregate.argument]
    of_query = QUERY_AGGREGATES.get(name)
    if of_query is not None:
        return ["spread" if kind == "time" else kind for kind in of_query.kinds]
    function = REGISTRY.get(name)
    return [parameter.kind for parameter in function.parameters] if function is not None else []


def _shifts_a_time(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Add | exp.Sub) and kind_of(node) == "TIMESTAMP"


# ---------------------------------------------------------------- columns of the answer


def assure(item: SelectItem) -> SelectItem:
    """Return an item of a select list with the type it is bound to, where DuckDB may compute
    another: its own sums are HUGEINT, a remainder is a whole number.
    """
    binding = item.binding
    if binding is None or isinstance(item.expression, exp.Column) or not _is_assured(binding.type):
        return item
    to = exp.DataType.build(
        duck_type(binding.kind, binding.precision, str(binding.type)), dialect="duckdb", udt=True
    )
    # a whole number that does not fit is NULL, as in a stream
    kind = exp.TryCast if binding.type.integer else exp.Cast
    return replace(item, expression=kind(this=item.expression, to=to), name=item.output.name)


def _is_assured(kind: ColumnType) -> bool:
    return kind.kind in _ASSURED or kind.integer


_FORMS: dict[type[exp.Expr], Callable[[Any, Context], exp.Expr]] = {
    exp.Literal: _literal,
    nodes.DurationLiteral: lambda node, _: _duration(node),
    **dict.fromkeys(OPERATORS, rewrite_operator),
    exp.Cast: _cast,
    exp.JSONExtract: rewrite_value,
    nodes.ContainsKey: lambda node, _: rewrite_contains(node),
    exp.Anonymous: _call,
    exp.Case: align_case,
    **dict.fromkeys(COMPARISONS, align_sides),
    exp.Between: align_sides,
    exp.In: align_list,
}

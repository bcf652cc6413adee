"""Conversions that DuckDB needs and the dialect leaves to be understood, decided by bound types.

Values are converted from the leaves up, in one loop over the tree: what a node has to become
depends on the types of its operands alone. Nothing here goes by a name. Trees that nobody has bound
stay as they are.
"""

from __future__ import annotations

import re

from sqlglot import exp

from penstock.duck.types import duck_type
from penstock.sql import nodes
from penstock.sql.functions import AGGREGATES, QUERY_AGGREGATES, QUERY_ONLY, REGISTRY
from penstock.sql.relational import Binding, binding_of, note
from penstock.types import ColumnType
from services.store.times import read_time

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
#: functions from a time to ticks, and back
_TICKS = {"ms": "epoch_ms", "us": "epoch_us", "ns": "epoch_ns"}
_MOMENTS = {"ms": "make_timestamp_ms", "us": "make_timestamp", "ns": "make_timestamp_ns"}
#: key of a note in `meta`: this call makes a time of ticks
_OF_TICKS = "of_ticks"
#: highest number that DuckDB takes for a whole one of 64 bits
_HIGHEST = 2**64 - 1
#: types that a computed column is given where DuckDB's own type may be another
_ASSURED = frozenset(("BOOL", "TIMESTAMP", "FLOAT", "DOUBLE", "VARCHAR", "NCHAR"))
#: parameters that take BOOL as a number
_NUMBERS = frozenset(("number", "double", "integer", "spread"))
#: parameters that take a time as its ticks
_OF_TICKS_TOO = frozenset(("double", "integer", "spread"))
_INTEGER = exp.DataType.build("INTEGER")
_BIGINT = exp.DataType.build("BIGINT")
_DOUBLE = exp.DataType.build("DOUBLE")
_TIMESTAMP = exp.DataType.build("TIMESTAMP")


def convert(tree: exp.Query, timezone: str) -> None:
    """Convert the values of a bound tree, in place."""
    for node in reversed(list(tree.walk(bfs=True))):
        made = _convert(node, timezone)
        if made is not node and node.parent is not None:
            binding = binding_of(node)
            if binding is not None:
                note(made, binding)
            node.replace(made)


def _convert(node: exp.Expr, timezone: str) -> exp.Expr:
    if isinstance(node, exp.Literal):
        return _number(node) if _is_value(node) else node
    if isinstance(node, nodes.DurationLiteral):
        return _duration(node)
    if isinstance(node, _ARITHMETIC):
        return _arithmetic(node)
    if isinstance(node, exp.Neg):
        inner = node.this.unnest()  # parentheses around it have no type
        node.set("this", _cast(inner, _DOUBLE) if _kind(inner) == "BOOL" else _as_ticks(inner))
    elif isinstance(node, exp.Anonymous):
        node.set("expressions", _arguments(node))
    elif isinstance(node, _COMPARISONS):
        _align(node, ("this", "expression"), timezone)
    elif isinstance(node, exp.Between):
        _align(node, ("this", "low", "high"), timezone)
    elif isinstance(node, exp.In):
        _align_list(node, timezone)
    return node


def _is_value(node: exp.Literal) -> bool:
    """Tell a number in an expression from a count, as in LIMIT, and a text."""
    return not node.is_string and not isinstance(node.parent, exp.Limit | exp.Offset | exp.Interval)


def _number(node: exp.Literal) -> exp.Expr:
    """Write a number as DuckDB's type of what it is here: one with a point is a DOUBLE."""
    text = str(node.this)
    has_point = re.fullmatch(r"\d*\.\d*", text) is not None
    too_high = text.isdecimal() and int(text) > _HIGHEST
    return exp.Literal.number(f"{text}e0") if has_point or too_high else node


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
    kinds = _parameter_kinds(name)
    made: list[exp.Expr] = []
    for index, argument in enumerate(node.expressions):
        kind = kinds[min(index, len(kinds) - 1)] if kinds else ""
        if kind in _OF_TICKS_TOO:
            argument = _as_ticks(argument)
        if kind in _NUMBERS and _kind(argument) == "BOOL":
            argument = _cast(argument, _INTEGER)
        made.append(argument)
    return made


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
    return isinstance(node, exp.Add | exp.Sub) and _kind(node) == "TIMESTAMP"


def _arithmetic(node: exp.Expr) -> exp.Expr:
    """Give DOUBLE for numbers, ticks for the difference of times, a time for a time and what moves
    it.
    """
    left, right = node.this, node.expression
    if binding_of(node) is None:
        return node
    if _kind(node) == "TIMESTAMP":
        return _moved(node, left, right)
    if "TIMESTAMP" in (_kind(left), _kind(right)):
        for key in ("this", "expression"):
            node.set(key, _as_ticks(node.args[key]))
    if _kind(node) != "BIGINT" and not isinstance(node, exp.Div | exp.Mod):
        node.set("this", _as_double(node.this))
    for key in ("this", "expression"):
        if _kind(node.args[key]) == "BOOL":
            node.set(key, _cast(node.args[key], _DOUBLE))
    return node


def _moved(node: exp.Expr, left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Return a time plus or minus a duration or a number of ticks."""
    time, by = (left, right) if _kind(left) == "TIMESTAMP" else (right, left)
    if isinstance(by.unnest(), nodes.DurationLiteral):
        return node
    binding = binding_of(time)
    assert binding is not None  # it is a TIMESTAMP
    kind = type(node)
    ticks = kind(this=_as_ticks(time), expression=_cast(by, _BIGINT))
    moved = _call(_MOMENTS[binding.precision], ticks)
    moved.meta[_OF_TICKS] = True
    return moved


def _as_ticks(node: exp.Expr) -> exp.Expr:
    binding = binding_of(node)
    if binding is None or binding.kind != "TIMESTAMP":
        return node
    if node.meta.get(_OF_TICKS):
        # else a chain of sums would nest as deep as it is long
        ticks: exp.Expr = node.expressions[0]
        return ticks
    return _call(_TICKS[binding.precision], node)


def _as_double(node: exp.Expr) -> exp.Expr:
    """Return *node* as a DOUBLE, so that what is computed from it is one."""
    return node if _kind(node) == "DOUBLE" else _cast(node, _DOUBLE)


# ---------------------------------------------------------------- comparisons


def _align(node: exp.Expr, sides: tuple[str, ...], timezone: str) -> None:
    """Bring the sides of a comparison to types that compare."""
    bindings = [binding_of(node.args[side]) for side in sides]
    for side in sides:
        others = [b for s, b in zip(sides, bindings, strict=True) if s != side]
        node.set(side, _beside(node.args[side], others, timezone))


def _align_list(node: exp.In, timezone: str) -> None:
    if not node.expressions:
        return
    items = [binding_of(e) for e in node.expressions]
    own = binding_of(node.this)
    node.set("this", _beside(node.this, items, timezone))
    node.set("expressions", [_beside(e, [own, *items], timezone) for e in node.expressions])


def _beside(node: exp.Expr, others: list[Binding | None], timezone: str) -> exp.Expr:
    """Return *node* as it compares with values of the types *others*."""
    own = binding_of(node)
    known = [b for b in others if b is not None]
    if own is None or not known:
        return node
    time = next((b for b in known if b.kind == "TIMESTAMP"), None)
    if time is not None and own.kind != "TIMESTAMP":
        return _as_time(node, own, time.precision, timezone)
    if own.type.text and any(b.type.numeric for b in known):
        # NULL where the text is no number
        return exp.TryCast(this=node, to=_DOUBLE.copy())
    return node


def _as_time(node: exp.Expr, own: Binding, precision: str, timezone: str) -> exp.Expr:
    """Return a value beside a time as a time: a number is ticks of the database, a text is a time
    in the session's zone unless it names its own.
    """
    inner = node.unnest()
    if isinstance(inner, exp.Literal) and inner.is_string:
        ticks = read_time(str(inner.this), precision, timezone)
        return _call(_MOMENTS[precision], exp.Literal.number(ticks))
    if own.type.text:
        return exp.TryCast(this=node, to=_TIMESTAMP.copy())
    return _moment(node, precision) if own.type.numeric else node


def _moment(node: exp.Expr, precision: str) -> exp.Expr:
    """Return a number of ticks as a time; NULL where it is none, if that differs by row."""
    made = _call(_MOMENTS[precision], _cast(node, _BIGINT))
    # DuckDB has no TRY around subqueries and aggregates
    by_row = node.find(exp.Column) is not None and node.find(exp.Query, exp.Anonymous) is None
    return _call("try", made) if by_row else made


# ---------------------------------------------------------------- columns of the answer


def assure(item: exp.Expr) -> exp.Expr:
    """Return an item of a select list with the type it is bound to, where DuckDB may compute
    another: its own sums are HUGEINT, a remainder is a whole number.
    """
    inner = item.unalias()
    binding = binding_of(item)
    if binding is None or isinstance(inner, exp.Column) or not _is_assured(binding.type):
        return item
    to = exp.DataType.build(
        duck_type(binding.kind, binding.precision, str(binding.type)), dialect="duckdb", udt=True
    )
    # a whole number that does not fit is NULL, as in a stream
    kind = exp.TryCast if binding.type.integer else exp.Cast
    made = exp.alias_(kind(this=inner, to=to), item.alias or item.name, quoted=True)
    note(made, binding)
    return made


def _is_assured(kind: ColumnType) -> bool:
    return kind.kind in _ASSURED or kind.integer


def _kind(node: exp.Expr) -> str:
    binding = binding_of(node)
    return binding.kind if binding is not None else ""


def _cast(node: exp.Expr, to: exp.DataType) -> exp.Expr:
    return exp.Cast(this=node, to=to.copy())


def _call(name: str, argument: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[argument])

"""Comparisons in a query: both sides are brought to types that compare, as in streams
(`penstock.sql.compile.comparison`).
"""

from __future__ import annotations

from sqlglot import exp

from penstock.sql.free_literals import pass_on
from penstock.sql.functions.base import MAX_TEXT
from penstock.sql.relational import Binding, binding_of
from penstock.types import ColumnType
from services.store.arithmetic import call
from services.store.binding import Context
from services.store.casts import MOMENTS, convert_to
from services.store.compared_times import compared_time
from services.store.json_values import json_number
from services.store.times import read_time

COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_DOUBLE = exp.DataType.build("DOUBLE")
_BIGINT = exp.DataType.build("BIGINT")
_TIMESTAMP = exp.DataType.build("TIMESTAMP")
_BYTES = ColumnType("VARBINARY", length=MAX_TEXT)


def align_sides(node: exp.Expr, context: Context) -> exp.Expr:
    """Bring the sides of a comparison, or of BETWEEN, to types that compare."""
    sides = [side for side in ("this", "expression", "low", "high") if node.args.get(side)]
    bindings = [binding_of(node.args[side]) for side in sides]
    for side in sides:
        others = [b for s, b in zip(sides, bindings, strict=True) if s != side]
        node.set(side, _beside(node.args[side], others, context))
    return node


def align_list(node: exp.In, context: Context) -> exp.Expr:
    """Bring a value and those of a list to types that compare."""
    if not node.expressions:
        return node
    items = [binding_of(e) for e in node.expressions]
    own = binding_of(node.this)
    node.set("this", _beside(node.this, items, context))
    node.set("expressions", [_beside(e, [own, *items], context) for e in node.expressions])
    return node


def _beside(node: exp.Expr, others: list[Binding | None], context: Context) -> exp.Expr:
    """Return *node* as it compares with values of the types *others*."""
    own = binding_of(node)
    known = list(filter(None, others))
    if own is None or not known:
        return node
    time = next((b for b in known if b.kind == "TIMESTAMP"), None)
    if time is not None and own.kind != "TIMESTAMP":
        return _as_time(node, own, time.precision, context)
    if own.type.text:
        return _text_beside(node, own, known, context)
    return _truth_beside(node, known) if own.kind == "BOOL" else node


def _text_beside(node: exp.Expr, own: Binding, others: list[Binding], context: Context) -> exp.Expr:
    """Return a text beside a number as the number that it is, NULL where it is none."""
    is_constant = isinstance(node.unnest(), exp.Literal)
    if own.kind == "JSON" and any(b.type.numeric or b.kind == "BOOL" for b in others):
        return json_number([node], context)
    if any(b.type.numeric for b in others):
        return exp.TryCast(this=node, to=_DOUBLE.copy())
    if any(b.kind == "VARBINARY" for b in others) and not is_constant:
        return convert_to(node, own, Binding(_BYTES), context)
    return node


def _truth_beside(node: exp.Expr, others: list[Binding]) -> exp.Expr:
    """Return a BOOL beside a number as 0 or 1."""
    if any(b.kind in ("FLOAT", "DOUBLE", "DECIMAL", "JSON") for b in others):
        return exp.Cast(this=node, to=_DOUBLE.copy())
    if any(b.type.integer for b in others):
        return exp.Cast(this=node, to=_BIGINT.copy())
    return node


def _as_time(node: exp.Expr, own: Binding, precision: str, context: Context) -> exp.Expr:
    """Return a value beside a time as a time: a number is ticks of the database, a text is a time
    in the session's zone unless it names its own.
    """
    inner = node.unnest()
    if isinstance(inner, exp.Literal) and inner.is_string:
        ticks = exp.Literal.number(read_time(str(inner.this), precision, context.timezone))
        return call(MOMENTS[precision], pass_on(inner, ticks))
    if own.type.text:
        return exp.TryCast(this=node, to=_TIMESTAMP.copy())
    return compared_time(node, precision, context) if own.type.numeric else node

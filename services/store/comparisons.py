"""Comparisons in a query: both sides are brought to types that compare, as in streams
(`penstock.sql.compile.comparison`).
"""

from __future__ import annotations

from sqlglot import exp

from penstock.sql.relational import Binding, binding_of
from services.store.arithmetic import call, moment
from services.store.binding import Context
from services.store.casts import MOMENTS
from services.store.times import read_time

COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_DOUBLE = exp.DataType.build("DOUBLE")
_TIMESTAMP = exp.DataType.build("TIMESTAMP")


def align(node: exp.Expr, sides: tuple[str, ...], context: Context) -> None:
    """Bring the sides of a comparison to types that compare."""
    bindings = [binding_of(node.args[side]) for side in sides]
    for side in sides:
        others = [b for s, b in zip(sides, bindings, strict=True) if s != side]
        node.set(side, _beside(node.args[side], others, context.timezone))


def align_list(node: exp.In, context: Context) -> None:
    """Bring a value and those of a list to types that compare."""
    if not node.expressions:
        return
    items = [binding_of(e) for e in node.expressions]
    own = binding_of(node.this)
    node.set("this", _beside(node.this, items, context.timezone))
    node.set("expressions", [_beside(e, [own, *items], context.timezone) for e in node.expressions])


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
        return call(MOMENTS[precision], exp.Literal.number(ticks))
    if own.type.text:
        return exp.TryCast(this=node, to=_TIMESTAMP.copy())
    return moment(node, precision) if own.type.numeric else node

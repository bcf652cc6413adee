"""FILTER in a stream: computed as CASE, because aggregates skip NULL."""

from __future__ import annotations

from sqlglot import exp

from penstock.sql.functions.base import BIGINT
from penstock.sql.relational import Binding, binding_of, note


def as_call(node: exp.Filter) -> exp.Anonymous:
    """Return the call that is `sum(x) FILTER (WHERE c)` (bound): the sum of x where c is true."""
    made = node.this.copy()
    assert isinstance(made, exp.Anonymous)  # nothing else was bound
    first = made.expressions[0]
    place = first if isinstance(first, exp.Distinct) else made
    value = place.expressions[0]
    binding = Binding(BIGINT) if isinstance(value, exp.Star) else binding_of(value)
    counted = exp.Literal.number(1) if isinstance(value, exp.Star) else value.copy()
    case = exp.Case(ifs=[exp.If(this=node.expression.this.copy(), true=counted)])
    if binding is not None:
        note(case, binding)
    place.set("expressions", [case, *place.expressions[1:]])
    made.meta.update({key: node.meta[key] for key in ("start", "end") if key in node.meta})
    return made

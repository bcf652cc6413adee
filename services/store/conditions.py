"""The conditions of a WHERE that must all be true, and how each reads with its sides swapped."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

#: comparison → the one that says the same with its sides swapped
SWAPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.EQ: exp.EQ,
}


def conditions(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield what must all be true."""
    pending = [node]
    while pending:
        one = pending.pop()
        if isinstance(one, exp.And):
            pending += [one.this, one.expression]
        elif isinstance(one, exp.Paren):
            pending.append(one.this)
        else:
            yield one

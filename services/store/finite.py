"""Arithmetic of a query gives a finite number or NULL, as in a stream.

DuckDB counts on with NaN and infinity, and divides a FLOAT by a whole number as FLOAT. What is
checked is the end of a chain of operators: nothing that is not finite becomes finite again there.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.sql.functions.macros import FINITE
from penstock.sql.relational import binding_of, note
from services.store.binding import Context

_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_DOUBLE = exp.DataType.build("DOUBLE")
#: nodes of a number that is written twice; DuckDB computes it once
_MOST_WRITTEN_TWICE = 50


def keep_finite(tree: exp.Expr, context: Context) -> None:
    """Check the arithmetic of a bound tree whose values are converted, in place."""
    found = [node for node in tree.walk(bfs=True) if isinstance(node, _ARITHMETIC)]
    checked: set[int] = set()
    for node in reversed(found):  # innermost first
        if _kind(node) != "DOUBLE":
            continue
        if isinstance(node, exp.Div | exp.Mod) and "FLOAT" in _kinds(node):
            node.set("this", exp.Cast(this=node.this, to=_DOUBLE.copy()))
        if not _goes_on(node):
            _check(node, context, checked)


def _check(node: exp.Expr, context: Context, checked: set[int]) -> None:
    """Replace *node* by itself where it is finite."""
    below = list(node.walk())
    once = len(below) > _MOST_WRITTEN_TWICE or any(id(b) in checked for b in below)
    binding = binding_of(node)
    made: exp.Expr
    if once:
        # written twice, what is nested would double with each level
        context.needed.setdefault(FINITE.name, FINITE)
        made = exp.Anonymous(this=FINITE.name, expressions=[node.copy()])
    else:
        is_finite = exp.Anonymous(this="isfinite", expressions=[node.copy()])
        made = exp.Case(ifs=[exp.If(this=is_finite, true=node.copy())])
    if binding is not None:
        note(made, binding)
    checked.add(id(made))
    node.replace(made)


def _goes_on(node: exp.Expr) -> bool:
    """Tell if *node* is the left side of more arithmetic, which is checked instead."""
    above = node.parent
    below: exp.Expr = node
    while isinstance(above, exp.Paren):
        below = above
        above = above.parent
    if isinstance(above, exp.Cast):
        return False
    return isinstance(above, _ARITHMETIC) and above.this is below and _kind(above) == "DOUBLE"


def _kinds(node: exp.Expr) -> tuple[str, str]:
    return _kind(node.this.unnest()), _kind(node.expression.unnest())


def _kind(node: exp.Expr) -> str:
    binding = binding_of(node)
    return binding.kind if binding is not None else ""

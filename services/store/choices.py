"""Choices in a query: the values of CASE, coalesce and their kin are brought to the one type that
the choice is bound to, so that DuckDB has none to find.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.sql.functions.base import common
from penstock.sql.relational import Binding, binding_of
from services.store.binding import Context
from services.store.casts import convert_to
from services.store.comparisons import align_sides
from services.store.functions import function_name

#: index of the first argument that may be chosen
_FIRST = {"coalesce": 0, "ifnull": 0, "nvl": 0, "greatest": 0, "least": 0, "if": 1, "nvl2": 1}


def align_choice(node: exp.Anonymous, context: Context) -> exp.Expr:
    """Return a call that chooses a value, with values of one type; any other call as it is."""
    name = function_name(node)
    made = binding_of(node)
    if made is None:
        return node
    if name == "nullif" and len(node.expressions) == 2:
        return _nullif(node, made, context)
    if name in _FIRST:
        first = _FIRST[name]
        values = [_as_chosen(value, made, context) for value in node.expressions[first:]]
        node.set("expressions", [*node.expressions[:first], *values])
    return node


def align_case(node: exp.Case, context: Context) -> exp.Expr:
    """Give the values of a CASE one type, and compare its subject with each value by its type."""
    made = binding_of(node)
    if made is None:
        return node
    for branch in node.args["ifs"]:
        branch.set("true", _as_chosen(branch.args["true"], made, context))
    if node.args.get("default") is not None:
        node.set("default", _as_chosen(node.args["default"], made, context))
    subject = node.this
    if subject is None or all(_alike(subject, branch.this) for branch in node.args["ifs"]):
        return node
    for branch in node.args["ifs"]:
        equal = exp.EQ(this=subject.copy(), expression=branch.this)
        align_sides(equal, context)
        branch.set("this", equal)
    node.set("this", None)
    return node


def _alike(left: exp.Expr, right: exp.Expr) -> bool:
    kinds = {binding.kind for node in (left, right) if (binding := binding_of(node)) is not None}
    return len(kinds - {"NULL"}) < 2


def _nullif(node: exp.Anonymous, made: Binding, context: Context) -> exp.Expr:
    """Return nullif of two types: they are compared as one, and the first stays what it is."""
    left, right = node.expressions
    if _alike(left, right):
        return node
    bindings = [binding for side in (left, right) if (binding := binding_of(side)) is not None]
    kind = common([binding.type for binding in bindings])
    assert kind is not None  # the binder has seen that there is one
    one = Binding(kind, made.precision)
    equal = exp.EQ(
        this=_as_chosen(left.copy(), one, context), expression=_as_chosen(right, one, context)
    )
    return exp.Case(ifs=[exp.If(this=equal, true=exp.Null())], default=left)


def _as_chosen(value: exp.Expr, made: Binding, context: Context) -> exp.Expr:
    """Return a value as the type of the choice; a text stays as long as it is."""
    given = binding_of(value)
    if given is None or "NULL" in (given.kind, made.kind):
        return value
    same = given.kind == made.kind and given.kind != "DECIMAL"
    if same or given == made or (given.type.text and made.type.text):
        return value
    return convert_to(value, given, made, context)

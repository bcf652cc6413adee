"""FILTER in a stream: written as CASE, because aggregates skip NULL."""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp

from penstock.sql.functions import AGGREGATES, REGISTRY
from penstock.sql.planning.refusals import refuse
from penstock.sql.statements import CreateStream

#: aggregates that take NULL for a value
_WITH_NULL = frozenset({"last_row"})


def write_filters(statement: CreateStream, select: exp.Select) -> exp.Select:
    """Return *select* without FILTER: `sum(x) FILTER (WHERE c)` is the sum of x where c is true."""
    if select.find(exp.Filter) is None:
        return select
    made = select.copy()
    for node in list(made.find_all(exp.Filter)):
        node.replace(_as_case(statement, node))
    return made


def _as_case(statement: CreateStream, node: exp.Filter) -> exp.Expr:
    call: exp.Expr = node.this
    name = str(call.this).lower() if isinstance(call, exp.Anonymous) else ""
    _check_call(statement, node, name)
    first = call.expressions[0] if call.expressions else exp.Star()
    if isinstance(first, exp.Star) and name != "count":
        _refuse(statement, node, f"{name}(*) takes no FILTER", "name the column")
    place = first if isinstance(first, exp.Distinct) else call
    value = place.expressions[0] if not isinstance(first, exp.Star) else exp.Literal.number(1)
    kept = exp.If(this=node.expression.this.copy(), true=value.copy())
    place.set("expressions", [exp.Case(ifs=[kept]), *place.expressions[1:]])
    call.meta.update(node.meta)  # a column without a name of its own is called as it is written
    return call


def _check_call(statement: CreateStream, node: exp.Filter, name: str) -> None:
    """Refuse what FILTER cannot stand behind."""
    if not name or name in REGISTRY:
        _refuse(statement, node, "FILTER stands behind an aggregate", "write it behind sum(…)")
    if name in _WITH_NULL:
        _refuse(statement, node, f"{name}() takes no FILTER here", "write last(…) FILTER (…)")
    function = AGGREGATES.get(name)
    given = len(node.this.expressions)
    if function is not None and not function.least <= given <= function.at_most:
        _refuse(statement, node, f"{name}() takes one value here", f"write {function.signature}")


def _refuse(statement: CreateStream, node: exp.Expr, what: str, hint: str) -> NoReturn:
    refuse(statement, "E_UNSUPPORTED_QUERY", node, what=what, hint=hint)

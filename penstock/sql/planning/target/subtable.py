"""SUBTABLE: names of child tables, made of partition keys."""

from __future__ import annotations

from sqlglot import exp

from penstock.sql.dialect import to_sql
from penstock.sql.planning.forbidden import check_functions
from penstock.sql.planning.refusals import refuse
from penstock.sql.planning.target.request import TargetRequest
from penstock.sql.relational.stream_names import spell


def plan_subtable(request: TargetRequest) -> str | None:
    """Return SUBTABLE's expression over `_k0…`, if there is one."""
    node = request.statement.subtable
    context = request.context
    if node is None:
        return None
    columns = {f"_k{i}": k.type for i, k in enumerate(request.keys.items)}
    check_functions(request.statement, node)
    lowered = _over_keys(request, spell(node, context.relation, context.refuse))
    kind = context.compile(lowered, columns).type
    if kind.kind != "VARCHAR":
        refuse(request.statement, "E_SUBTABLE_TYPE", node, type=kind)
    return to_sql(lowered)


def _over_keys(request: TargetRequest, node: exp.Expr) -> exp.Expr:
    """Return *node* (bound) with keys for the expressions that they are."""
    place = request.keys.place(node)
    if place is None and isinstance(node, exp.Column):
        place = _place_of_column(request, node)
    if place is not None:
        key = exp.Column(this=exp.Identifier(this=f"_k{place}", quoted=False))
        key.meta.update(node.meta)
        return key
    for name, value in list(node.args.items()):
        if isinstance(value, exp.Expr) and not isinstance(value, exp.Identifier):
            node.set(name, _over_keys(request, value))
        elif isinstance(value, list):
            node.set(
                name, [_over_keys(request, v) if isinstance(v, exp.Expr) else v for v in value]
            )
    return node


def _place_of_column(request: TargetRequest, node: exp.Column) -> int:
    place = request.keys.place_of_alias(node.name)
    if place is None:
        known = ", ".join(k.alias for k in request.keys.items)
        hint = (
            f"use {known}, or add it: PARTITION BY …, {node.name}"
            if known
            else f"add PARTITION BY {node.name}"
        )
        refuse(request.statement, "E_SUBTABLE_COLUMN", node, name=node.name, hint=hint)
    return place

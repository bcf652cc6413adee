"""Calls that choose rows: where they may stand, what they take, what they give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.sql.functions.base import NULL, Compiled
from penstock.sql.functions.row_choosers import ROW_CHOOSERS, RowChooser
from penstock.sql.relational.query_aggregates import (
    compile_constant,
    find_time,
    is_constant,
    refuse_without_time,
)
from penstock.sql.relational.refusals import refuse_argument, refuse_place
from penstock.sql.relational.signatures import AGGREGATE_NAMES

if TYPE_CHECKING:
    from penstock.sql.relational.typer import ExpressionTyper


def type_chooser(typer: ExpressionTyper, node: exp.Anonymous, name: str) -> Compiled:
    """Type a call of a function that chooses rows, and give it their time where there is one."""
    function = ROW_CHOOSERS[name]
    _check_place(typer, node, function)
    _check_constants(typer, node, function)
    typer.clause.choosers += 1
    typer.inside = name
    try:
        kind = typer.type_of(node.expressions[0])
    finally:
        typer.inside = ""
    if function.kind == "number" and not (kind.numeric or kind.kind == "BOOL" or kind == NULL):
        typer.refuse(
            node.expressions[0],
            f"{name}() needs a number, not {kind}",
            code="E_TYPE",
            hint="order by the column and write LIMIT",
        )
    time = find_time(typer, node.expressions[0])
    if time is not None:
        node.append("expressions", time)
    elif function.by_time:
        refuse_without_time(typer, node)
    return typer.value(kind)


def _check_place(typer: ExpressionTyper, node: exp.Anonymous, function: RowChooser) -> None:
    name = function.name
    select, clause = _place_of(node)
    if typer.inside:
        refuse_place(
            typer, node, f"{name}() cannot stand inside {typer.inside}()", "choose in a subquery"
        )
    if clause not in ("expressions", "order"):
        refuse_place(
            typer,
            node,
            f"{name}() chooses rows and stands in the select list only",
            "choose in a subquery, and write the condition around it",
        )
    if select.args.get("joins"):
        refuse_place(
            typer,
            node,
            f"{name}() chooses rows of one table, not of a join",
            "join in a subquery: FROM (SELECT … FROM … JOIN …)",
        )
    if select.args.get("group") is not None or select.args.get("from_") is None:
        refuse_place(
            typer,
            node,
            f"{name}() chooses rows of a table or of its partitions",
            "write PARTITION BY in place of GROUP BY",
        )
    own = {id(part) for part in node.walk()}
    for other in _calls(select):
        if id(other) not in own:
            _check_beside(typer, node, function, other)


def _place_of(node: exp.Expr) -> tuple[exp.Select, str]:
    """Return the SELECT that *node* is of, and which part of it has it."""
    part = node
    while not isinstance(part.parent, exp.Select):
        assert part.parent is not None  # an expression of a query stands in a SELECT
        part = part.parent
    return part.parent, str(part.arg_key)


def _calls(select: exp.Select) -> list[exp.Anonymous]:
    """Return the calls in the select list, without those of subqueries."""
    return [
        call
        for item in select.expressions
        for call in item.walk(prune=lambda n: isinstance(n, exp.Query))
        if isinstance(call, exp.Anonymous)
    ]


def _check_beside(
    typer: ExpressionTyper, node: exp.Anonymous, function: RowChooser, other: exp.Anonymous
) -> None:
    name = str(other.this).lower()
    if name in AGGREGATE_NAMES:
        refuse_place(
            typer,
            other,
            f"{name}() makes one row of many beside {function.name}(), which chooses several",
            "ask for them in two queries",
        )
    given = function.at_most
    if name in ROW_CHOOSERS and not _same(node.expressions[:given], other.expressions, name, node):
        refuse_place(
            typer,
            node,
            f"{function.name}() and another call choose different rows",
            "choose once in a SELECT; its other columns are those of the chosen rows",
        )


def _same(
    arguments: list[exp.Expr], others: list[exp.Expr], name: str, node: exp.Anonymous
) -> bool:
    """Tell if another call is the same; the one bound earlier has its time as one argument more."""
    shared = min(len(arguments), len(others))
    return name == str(node.this).lower() and arguments[:shared] == others[:shared]


def _check_constants(typer: ExpressionTyper, node: exp.Anonymous, function: RowChooser) -> None:
    count = len(node.expressions)
    if not function.least <= count <= function.at_most:
        refuse_argument(typer, node, f"{function.name}() does not take {count} arguments", function)
    if isinstance(node.expressions[0], exp.Star | exp.Distinct):
        refuse_argument(typer, node, f"{function.name}() takes one value of a row", function)
    for argument, (low, high) in zip(node.expressions[1:], function.limits, strict=False):
        value = compile_constant(typer, argument).value if is_constant(argument) else None
        if not isinstance(value, int) or not low <= value <= high:
            message = f"this is a whole number from {low} to {high}, written as a constant"
            refuse_argument(typer, argument, f"{function.name}(): {message}", function)

"""Aggregates of a SELECT: where they may stand, what they take, what they give."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from sqlglot import exp

from penstock.sql.functions import AGGREGATES, QUERY_AGGREGATES
from penstock.sql.functions.aggregate import AggregateFunction
from penstock.sql.functions.base import BIGINT, NULL, Compiled
from penstock.sql.relational.companions import BY_TIME, chosen_among, note_chosen
from penstock.sql.relational.query_aggregates import check_query_aggregate
from penstock.sql.relational.signatures import OF_NUMBERS, result_type
from penstock.types import ColumnType

if TYPE_CHECKING:
    from penstock.sql.relational.typer import ExpressionTyper

_ALGORITHMS = ("default", "t-digest")


def type_aggregate(typer: ExpressionTyper, node: exp.Anonymous, name: str) -> Compiled:
    """Type a call of the aggregate *name*."""
    check_place(typer, node, name)
    typer.clause.aggregates += 1
    typer.inside = name
    try:
        kind = result_of_aggregate(typer, node, name)
    finally:
        typer.inside = ""
    return typer.value(kind)


def check_place(typer: ExpressionTyper, node: exp.Anonymous, name: str) -> None:
    """Refuse a call of the aggregate *name* where none may stand."""
    if typer.inside:
        typer.refuse(
            node,
            f"{name}() cannot stand inside {typer.inside}()",
            code="E_AGGREGATE_HERE",
            hint=typer.way_out or f"compute {name}() in a subquery",
        )
    if typer.clause.no_aggregates:
        typer.refuse(
            node,
            f"{name}() is an aggregate and cannot stand in {typer.clause.no_aggregates}",
            code="E_AGGREGATE_HERE",
            hint=typer.way_out or "conditions on aggregates stand in HAVING, or around a subquery",
        )


def result_of_aggregate(typer: ExpressionTyper, node: exp.Anonymous, name: str) -> ColumnType:
    """Check a call of the aggregate *name* wherever it stands, and return its type."""
    of_query = QUERY_AGGREGATES.get(name)
    if of_query is not None:
        return check_query_aggregate(typer, node, of_query)
    function = AGGREGATES.get(name)
    arguments = _arguments(node)
    kind: ColumnType | None
    if function is not None:
        kind = _check(typer, node, name, function, arguments)
    else:
        types = [typer.type_of(a) for a in arguments]
        if name in OF_NUMBERS and types and types[0].text:
            _refuse_type(typer, arguments[0], name, types[0])
        kind = result_type(name, types)
    return BIGINT if kind is None or kind == NULL else kind


def _refuse_type(typer: ExpressionTyper, node: exp.Expr, name: str, kind: ColumnType) -> NoReturn:
    typer.refuse(
        node,
        f"{name}() needs a number, not {kind}",
        code="E_TYPE",
        detail=f"{kind} and DOUBLE do not fit",
        hint="write CAST(… AS DOUBLE)",
    )


def _arguments(node: exp.Anonymous) -> list[exp.Expr]:
    """Return the arguments, those behind DISTINCT too."""
    first = node.expressions[0] if node.expressions else None
    if isinstance(first, exp.Distinct):
        return [*first.expressions, *node.expressions[1:]]
    return list(node.expressions)


def _check(
    typer: ExpressionTyper,
    node: exp.Anonymous,
    name: str,
    function: AggregateFunction,
    arguments: list[exp.Expr],
) -> ColumnType:
    """Check a call of an aggregate that streams have, by their rules."""
    hint = f"{function.signature}: {function.doc}"
    if not function.least <= len(arguments) <= function.at_most:
        typer.refuse(
            node,
            f"{name}() takes {_wanted(function)}, not {len(arguments)}",
            code="E_FUNCTION_ARGUMENT",
            hint=hint,
        )
    if isinstance(arguments[0], exp.Star):
        if name == "count":
            return BIGINT
        typer.refuse(node, f"{name}(*) is not possible", code="E_FUNCTION_ARGUMENT", hint=hint)
    kind = typer.type_of(arguments[0])
    # of NULL alone they make what they make of whole numbers
    kind = BIGINT if kind == NULL else kind
    if not function.takes(kind):
        _refuse_type(typer, arguments[0], name, kind)
    _check_parameters(typer, node, name, arguments[1:], hint)
    if function.chooses:
        _note_rows(typer, node, name, arguments[0])
    return function.returns(kind)


def _note_rows(typer: ExpressionTyper, node: exp.Anonymous, name: str, argument: exp.Expr) -> None:
    """Note among which rows a call chooses."""
    chosen = chosen_among(typer.names, argument)
    if name in BY_TIME and not chosen.time:
        typer.refuse(
            node,
            f"{name}() needs a table whose first column is a time",
            code="E_FUNCTION_ARGUMENT",
            hint="let the subquery select the time first, or use max() or min()",
        )
    note_chosen(node, chosen)


def _wanted(function: AggregateFunction) -> str:
    if function.at_most == 1:
        return "one argument"
    return f"{function.least} to {function.at_most} arguments"


def _check_parameters(
    typer: ExpressionTyper,
    node: exp.Anonymous,
    name: str,
    parameters: list[exp.Expr],
    hint: str,
) -> None:
    """Check p and the algorithm of a percentile."""
    values = [typer.compile(p) for p in parameters]
    possible = (_is_percentage, _is_algorithm)
    for value, is_possible in zip(values, possible, strict=False):
        if not value.literal or not is_possible(value.value):
            typer.refuse(
                node,
                f"{name}() takes p from 0 to 100 and 'default' or 't-digest', both constants",
                code="E_FUNCTION_ARGUMENT",
                hint=hint,
            )


def _is_percentage(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 100


def _is_algorithm(value: object) -> bool:
    return str(value).lower() in _ALGORITHMS

"""`cols(last(v), x)`: the value of x in the row that another function chooses.

The parser has written several columns as a call for each. Beside the call there may be others that
choose other rows, and what it chooses by is no column of the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.functions import AGGREGATES
from penstock.sql.functions.base import Compiled
from penstock.sql.relational.aggregates import check_place, result_of_aggregate
from penstock.sql.relational.bindings import Binding, note

if TYPE_CHECKING:
    from penstock.sql.relational.typer import ExpressionTyper

_CHOOSERS = tuple(name for name, function in AGGREGATES.items() if function.chooses)
_HINT = "write cols(last(v), ts, v AS newest)"


def is_chosen_column(node: exp.Expr) -> bool:
    """Tell if *node* is a call of cols()."""
    return isinstance(node, exp.Anonymous) and str(node.this).lower() == nodes.COLS


def type_chosen_column(typer: ExpressionTyper, node: exp.Anonymous, name: str) -> Compiled:
    """Type a call of cols(): both of its arguments are of rows."""
    check_place(typer, node, name)
    chooser, value = _arguments(typer, node)
    typer.clause.aggregates += 1
    chooser_name = str(chooser.this).lower()
    typer.inside = chooser_name
    try:
        kind = result_of_aggregate(typer, chooser, chooser_name)
        note(chooser, Binding(kind, typer.scope.precision))
        typer.inside = name
        kind = typer.type_of(value)
    finally:
        typer.inside = ""
    return typer.value(kind)


def _arguments(typer: ExpressionTyper, node: exp.Anonymous) -> tuple[exp.Anonymous, exp.Expr]:
    """Return the call that chooses the row, and what is taken from it."""
    arguments = node.expressions
    if len(arguments) < 2:
        _refuse(typer, node, "cols() takes a function that chooses a row, and columns of that row")
    if len(arguments) > 2 or isinstance(arguments[1], exp.Alias):
        _refuse(typer, node, "cols() with names or several columns is no part of an expression")
    chooser, value = arguments
    if not isinstance(chooser, exp.Anonymous) or str(chooser.this).lower() not in _CHOOSERS:
        _refuse(
            typer,
            chooser,
            f"cols() takes columns of the row that {', '.join(_CHOOSERS)} chooses",
        )
    if any(isinstance(argument, exp.Distinct) for argument in chooser.expressions):
        _refuse(typer, chooser, "of different values no row is chosen")
    return chooser, value


def _refuse(typer: ExpressionTyper, node: exp.Expr, message: str) -> NoReturn:
    typer.refuse(node, message, code="E_FUNCTION_ARGUMENT", hint=_HINT)

"""Errors about calls of functions that only a SELECT has."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from sqlglot import exp

from penstock.sql.functions.query_function import QueryFunction

if TYPE_CHECKING:
    from penstock.sql.relational.typer import ExpressionTyper


def refuse_place(typer: ExpressionTyper, node: exp.Expr, message: str, hint: str) -> NoReturn:
    """Refuse a call where it stands."""
    typer.refuse(node, message, code="E_AGGREGATE_HERE", hint=hint)


def refuse_argument(
    typer: ExpressionTyper, node: exp.Expr, message: str, function: QueryFunction
) -> NoReturn:
    """Refuse an argument of *function*, or how many there are."""
    hint = f"{function.signature}: {function.doc}"
    typer.refuse(node, message, code="E_FUNCTION_ARGUMENT", hint=hint)

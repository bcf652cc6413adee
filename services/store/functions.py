"""Calls in a query: their names and arguments, and what DuckDB gets for them."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from penstock.errors import SqlSemanticError
from penstock.sql.functions import AGGREGATES, QUERY_FUNCTIONS, REGISTRY
from penstock.sql.functions.duckdb import Arguments, DuckForm
from services.store.binding import Context

#: makes the call for DuckDB from arguments that are rewritten already
_Make = Callable[[Arguments, Context], exp.Expr]


def function_name(node: exp.Expr) -> str:
    """Return the name of a call in lower case, "" for anything else."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else ""


def arguments(node: exp.Expr) -> list[exp.Expr]:
    """Return the arguments of a call in order."""
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    found: list[exp.Expr] = []
    for value in node.args.values():
        if isinstance(value, list):
            found += value
        elif isinstance(value, exp.Expr):
            found.append(value)
    return found


def _checked(name: str, form: DuckForm, least: int, most: int, signature: str) -> _Make:
    """Return *form* for calls with the right number of arguments."""

    def make(args: Arguments, context: Context) -> exp.Expr:
        distinct = args[0].expressions[1:] if args and isinstance(args[0], exp.Distinct) else []
        count = len(args) + len(distinct)
        if not least <= count <= most:
            raise SqlSemanticError(
                f"{name}() does not take {count} arguments",
                code="E_FUNCTION_ARGUMENT",
                hint=signature,
            )
        return form(args, context)

    return make


def _scalars() -> dict[str, _Make]:
    return {
        name: _checked(name, function.duckdb, *function.arity, function.signature)
        for name, function in REGISTRY.items()
        if function.duckdb is not None
    }


def _aggregates() -> dict[str, _Make]:
    return {
        name: _checked(name, function.duckdb, function.least, function.at_most, function.signature)
        for name, function in AGGREGATES.items()
    }


def _queries() -> dict[str, _Make]:
    return {
        name: _checked(name, function.duckdb, *function.arity, function.signature)
        for name, function in QUERY_FUNCTIONS.items()
    }


#: the dialect's functions, from the registry
FUNCTIONS: dict[str, _Make] = {**_queries(), **_aggregates(), **_scalars()}

"""Functions without arguments in a SELECT without FROM: who asks, where, and of which server."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from penstock.sql.functions.query import SPOKEN_VERSION


def session_values(user: str, database: str | None) -> dict[str, str | int | None]:
    """Return what each function stands for."""
    return {
        "client_version": SPOKEN_VERSION,
        "current_user": user,
        "database": database,
        # whoever hears an answer has a server that works
        "server_status": 1,
        "server_version": SPOKEN_VERSION,
        "user": user,
    }


def insert_values(tree: exp.Query, values: Mapping[str, str | int | None]) -> None:
    """Put the values of functions in their place."""
    for call in list(tree.find_all(exp.Anonymous)):
        name = call.name.lower()
        if name not in values or call.expressions:
            continue
        literal = _literal(values[name])
        if isinstance(call.parent, exp.Select):
            call.replace(exp.alias_(literal, f"{name}()", quoted=True))
        else:
            call.replace(literal)


def _literal(value: str | int | None) -> exp.Expression:
    if value is None:
        return exp.cast(exp.null(), "VARCHAR")
    return exp.Literal.number(value) if isinstance(value, int) else exp.Literal.string(value)

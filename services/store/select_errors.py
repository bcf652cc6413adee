"""Errors that point at a whole SELECT of a query."""

from __future__ import annotations

from penstock.errors import SqlSemanticError
from penstock.sql.relational import SelectPlan
from penstock.sql.statements import Query


def refusal_of(select: SelectPlan, statement: Query, message: str, hint: str) -> SqlSemanticError:
    """Return the error of a SELECT that cannot be as it is, where it stands in its text."""
    start, end = select.span or (statement.start, statement.start + 1)
    return statement.source.semantic_error(
        message, start, end - start, code="E_UNSUPPORTED_QUERY", hint=hint
    )

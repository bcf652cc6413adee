"""Clauses of a SELECT that mean something beside another one only."""

from __future__ import annotations

from sqlglot import exp

from penstock.sql.relational.names import Refuse


def refuse_lone_fill(select: exp.Select, refuse: Refuse) -> None:
    """Refuse FILL in a SELECT without windows. Raises SqlSemanticError."""
    fill = select.args.get("fill")
    if fill is not None:
        refuse(
            fill,
            "FILL fills the gaps between windows, and there are no windows",
            code="E_QUERY",
            hint="write INTERVAL(1m) FILL(PREV), or RANGE(from, to) EVERY(1m) FILL(PREV)",
        )

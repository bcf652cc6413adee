"""Items of ORDER BY and keys that are written as constants: positions of columns, and texts."""

from __future__ import annotations

from sqlglot import exp

from penstock.sql.relational.relations import Output
from penstock.sql.relational.typer import ExpressionTyper


def check_position(node: exp.Expr, outputs: tuple[Output, ...], typer: ExpressionTyper) -> bool:
    """Tell if *node* is the position of a column, as in ORDER BY 1."""
    if not isinstance(node, exp.Literal) or node.is_string:
        return False
    if not str(node.this).isdigit() or not 1 <= int(node.this) <= len(outputs):
        typer.refuse(
            node,
            f"there is no column {node.this} in the select list",
            code="E_QUERY",
            hint=f"a number here is a position from 1 to {len(outputs)}",
        )
    return True


def refuse_text(node: exp.Expr, typer: ExpressionTyper) -> None:
    """Refuse a text in ORDER BY, which is the same for every row."""
    if isinstance(node, exp.Literal) and node.is_string:
        typer.refuse(
            node,
            f"'{node.name[:64]}' is a text and orders nothing",
            code="E_QUERY",
            hint="write a column without quotes, or in backticks",
        )

"""FILTER in the SELECT of a stream: where it may stand, and what it gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from sqlglot import exp

from penstock.sql.functions import AGGREGATES, REGISTRY
from penstock.sql.functions.base import Compiled
from penstock.sql.relational.over import type_filtered

if TYPE_CHECKING:
    from penstock.sql.relational.stream_typer import StreamTyper

#: aggregates that take NULL for a value, so that they would choose a row that is left out
_WITH_NULL = frozenset({"last_row"})


def type_stream_filter(typer: StreamTyper, node: exp.Filter) -> Compiled:
    """Type an aggregate of the rows that meet a condition."""
    name = str(node.this.this).lower() if isinstance(node.this, exp.Anonymous) else ""
    _check_call(typer, node, name)
    return type_filtered(typer, node, name)


def _check_call(typer: StreamTyper, node: exp.Filter, name: str) -> None:
    """Refuse what FILTER cannot stand behind."""
    function = AGGREGATES.get(name)
    if not name or _is_of_rows(typer, name):
        _refuse(typer, node, "FILTER stands behind an aggregate", "write it behind sum(…)")
    if name in _WITH_NULL:
        _refuse(typer, node, f"{name}() takes no FILTER here", "write last(…) FILTER (…)")
    given = node.this.expressions
    if function is not None and not function.least <= len(given) <= function.at_most:
        _refuse(typer, node, f"{name}() takes one value here", f"write {function.signature}")
    if given and isinstance(given[0], exp.Star) and name != "count":
        _refuse(typer, node, f"{name}(*) takes no FILTER", "name the column")


def _is_of_rows(typer: StreamTyper, name: str) -> bool:
    """Tell if *name* is a function of one row; of an unknown one it is said what is meant."""
    user = typer.functions(name)
    return name in REGISTRY or (user is not None and not user.aggregate)


def _refuse(typer: StreamTyper, node: exp.Filter, message: str, hint: str) -> NoReturn:
    typer.refuse(node, message, code="E_UNSUPPORTED_QUERY", hint=hint)

"""Times in a query that cannot be read: where they stand, and the forms that can be."""

from __future__ import annotations

import re
from collections.abc import Iterator

import duckdb
from sqlglot import exp

from penstock.errors import SqlSemanticError
from penstock.sql.relational import Binding, QueryPlan, binding_of, nodes_of
from penstock.sql.statements import Query
from penstock.sql.words import TIME_FORMS
from services.store.casts import constant
from services.store.times import literal_ticks

_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In)
#: DuckDB's complaint of a text that it cannot cast; the text is in quotes
_NO_CAST = re.compile(r'timestamp field .*?"(.*?)"(?:,| when|$)')


def check_times(plan: QueryPlan, statement: Query, timezone: str) -> None:
    """Refuse a literal beside a time, or as one, that is no time, where it stands.

    Raises:
        SqlSemanticError
    """
    for node in nodes_of(plan):
        if isinstance(node, _COMPARED):
            _check_sides(node, statement, timezone)
        elif isinstance(node, exp.Cast):
            _check_cast(node, statement, timezone)


def _check_sides(node: exp.Expr, statement: Query, timezone: str) -> None:
    sides = list(_sides(node))
    time = next((b for side in sides if (b := _time_of(side)) is not None), None)
    if time is None:
        return
    for side in sides:
        if isinstance(side, exp.Literal) and not _is_time(side, time.precision, timezone):
            raise _no_time(side.name, statement, side)


def _check_cast(node: exp.Cast, statement: Query, timezone: str) -> None:
    """Refuse `TIMESTAMP 'text'` and CAST of a text that is written there and is no time."""
    made = _time_of(node)
    text = node.this.unnest()
    if made is None or not isinstance(text, exp.Literal) or not text.is_string:
        return
    if constant(node, made.precision, timezone) is None:
        # TIMESTAMP '…' knows its place as a whole
        raise _no_time(text.name, statement, text if "start" in text.meta else node)


def _sides(node: exp.Expr) -> Iterator[exp.Expr]:
    for key in ("this", "expression", "low", "high"):
        if isinstance(node.args.get(key), exp.Expr):
            yield node.args[key]
    yield from node.expressions


def _time_of(node: exp.Expr) -> Binding | None:
    """Return what *node* is bound to, if that is a time."""
    binding = binding_of(node)
    return binding if binding is not None and binding.kind == "TIMESTAMP" else None


def _is_time(literal: exp.Literal, precision: str, timezone: str) -> bool:
    return literal_ticks(literal, precision, timezone) is not None


def explain_cast(error: duckdb.Error, statement: Query) -> SqlSemanticError | None:
    """Return a better error of a text that DuckDB could not make a TIMESTAMP of, or None."""
    match = _NO_CAST.search(str(error).splitlines()[0])
    if not isinstance(error, duckdb.ConversionException) or match is None:
        return None
    text = match.group(1)
    same = (x for x in statement.query.find_all(exp.Literal) if x.is_string and x.this == text)
    return _no_time(text, statement, next(same, None))


def _no_time(text: str, statement: Query, at: exp.Expr | None) -> SqlSemanticError:
    return statement.error(f"'{text[:64]}' is no time", at, code="E_TYPE", hint=TIME_FORMS)

"""WHERE of NOTIFY: which windows are told of."""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp

from penstock.sql.dialect import to_sql
from penstock.sql.event_condition import compile_condition, name_results
from penstock.sql.functions import AGGREGATES
from penstock.sql.functions.time import NOW
from penstock.sql.plan import Key, Target
from penstock.sql.planning.forbidden import check_functions
from penstock.sql.planning.refusals import refuse
from penstock.sql.statements import CreateStream, NotifyClause


def plan_condition(
    statement: CreateStream,
    clause: NotifyClause,
    target: Target,
    keys: tuple[Key, ...],
    timezone: str,
) -> str:
    """Return the condition of *clause* as the plan has it; empty: it has none.

    Raises:
        SqlSemanticError: it can be no condition over the stream's results.
    """
    if clause.where is None:
        return ""
    where = name_results(clause.where, target, statement.text)
    check_functions(statement, where)
    _check_names(statement, where)
    _check_calls(statement, where)
    condition = compile_condition(where, target, keys, timezone, statement.source)
    if NOW in condition.others:
        _refuse(
            statement,
            where,
            "the time now differs when an event is sent again",
            "compare with columns of the result, such as _wstart, and with constants",
        )
    if "WINDOW_OPEN" in clause.on and condition.results:
        column = next(iter(condition.results))
        _refuse(
            statement,
            where,
            f"a window that opens has no result yet, and no {column}",
            "write ON ('WINDOW_CLOSE'), or a condition over keys of PARTITION BY",
        )
    return to_sql(where)


def _check_names(statement: CreateStream, where: exp.Expr) -> None:
    """Refuse names with a table in front: there is just the result."""
    for column in where.find_all(exp.Column):
        if column.table:
            _refuse(
                statement,
                column,
                f"{column.table} is no table here",
                f"write {column.name}: columns are those of the stream's result",
            )


def _check_calls(statement: CreateStream, where: exp.Expr) -> None:
    """Refuse aggregates that the select list does not have."""
    for call in where.find_all(exp.Anonymous):
        name = str(call.this).lower()
        if name in AGGREGATES:
            _refuse(
                statement,
                call,
                f"the result has no such {name}()",
                f"write {name}(…) as the select list has it, or the name that it has there",
            )


def _refuse(statement: CreateStream, at: exp.Expr, what: str, hint: str) -> NoReturn:
    refuse(statement, "E_NOTIFY_WHERE", at, what=what, hint=hint)

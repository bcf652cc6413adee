"""The select list of a stream without window: scalars over rows."""

from __future__ import annotations

from sqlglot import exp

from penstock.sql.functions.aggregate import AGGREGATES
from penstock.sql.planning.context import PlanningContext
from penstock.sql.planning.refusals import refuse
from penstock.sql.planning.select.items import SelectList, output_of
from penstock.sql.relational import StreamSelect


def select_rows(context: PlanningContext, query: StreamSelect) -> SelectList:
    """Plan the select list of a stream without window."""
    selection = SelectList()
    for item, written in zip(query.select.items, query.written, strict=True):
        _refuse_aggregates(context, item.expression)
        hint = "write CAST(… AS VARCHAR(…)), or take a value out of it: tag->'key'"
        selection.add(written, output_of(context, item, item.expression, hint), filled=False)
    return selection


def _refuse_aggregates(context: PlanningContext, bound: exp.Expr) -> None:
    for call in bound.find_all(exp.Anonymous):
        function = str(call.this).lower()
        if function in AGGREGATES:
            refuse(context.statement, "E_NONWINDOW_AGG", call, function=function)

"""The select list of a stream without window: scalars over rows."""

from __future__ import annotations

from sqlglot import exp

from penstock.sql.dialect import to_sql
from penstock.sql.functions.aggregate import AGGREGATES
from penstock.sql.plan import Output
from penstock.sql.planning.binder import WINDOW_NAMES, Binder
from penstock.sql.planning.refusals import refuse
from penstock.sql.planning.select.items import (
    SelectList,
    expand_items,
    output_name,
    without_alias,
)


def select_rows(binder: Binder, select: exp.Select) -> SelectList:
    """Plan the select list of a stream without window."""
    selection = SelectList()
    for item in expand_items(select, binder):
        bound = binder.bind(without_alias(item))
        _refuse_aggregates(binder, bound)
        _refuse_window_names(binder, item, bound)
        kind = binder.compile(bound).type
        if kind.kind == "JSON":
            binder.refuse_query(
                item,
                "a result column cannot be JSON",
                "write CAST(… AS VARCHAR(…)), or take a value out of it: tag->'key'",
            )
        output = Output(output_name(item, bound), to_sql(bound), kind)
        selection.add(item, output, filled=False)
    return selection


def _refuse_aggregates(binder: Binder, bound: exp.Expr) -> None:
    for call in bound.find_all(exp.Anonymous):
        function = str(call.this).lower()
        if function in AGGREGATES:
            refuse(binder.statement, "E_NONWINDOW_AGG", call, function=function)


def _refuse_window_names(binder: Binder, item: exp.Expr, bound: exp.Expr) -> None:
    for column in bound.find_all(exp.Column):
        if column.name in WINDOW_NAMES and column.name not in binder.columns:
            binder.refuse_query(
                item, f"{column.name} needs a window", "add a window such as INTERVAL(10s)"
            )

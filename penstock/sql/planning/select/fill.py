"""FILL of empty windows."""

from __future__ import annotations

from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.dialect import to_sql
from penstock.sql.plan import Fill, FillMode, Output
from penstock.sql.planning.context import PlanningContext
from penstock.sql.planning.refusals import refuse
from penstock.sql.planning.select.items import SelectList
from penstock.sql.relational import StreamSelect


def fill_mode(query: StreamSelect) -> FillMode | None:
    """Return the mode of FILL, if any; NULL_F and VALUE_F are NULL and VALUE in a stream."""
    if query.fill is None:
        return None
    mode: FillMode = query.fill.args["mode"].removesuffix("_F").lower()
    return mode


def plan_fill(context: PlanningContext, query: StreamSelect, selection: SelectList) -> Fill:
    """Plan FILL, with one value for each output that is made of aggregates."""
    mode = fill_mode(query)
    node = query.fill
    if node is None or mode is None:
        return Fill("none")
    if not isinstance(query.window, nodes.IntervalWindow):
        refuse(context.statement, "E_FILL_WINDOW", node)
    if any(a.function.startswith("user:") for a in selection.aggregates):
        context.refuse_query(
            node,
            "FILL cannot make up values of a user-defined aggregate",
            "leave FILL out, or use an aggregate of the dialect",
        )
    if mode != "value":
        return Fill(mode)
    values = node.args["values"]
    takes_value = selection.takes_values()
    wanted = sum(takes_value)
    if len(values) != wanted:
        refuse(context.statement, "E_FILL_VALUES", node, given=len(values), wanted=wanted)
    texts = iter(values)
    outputs = zip(selection.outputs, takes_value, strict=True)
    return Fill(
        "value",
        tuple(
            _fill_value(context, next(texts), output) if takes else None
            for output, takes in outputs
        ),
    )


def _fill_value(context: PlanningContext, node: exp.Expr, output: Output) -> str:
    value = context.compile(node, {})
    if not value.literal:
        raise context.statement.error(
            "a FILL value must be a constant",
            node,
            code="E_FILL_VALUES",
            hint=f"it is for {output.name}",
        )
    if output.type.numeric and value.type.text:
        try:
            float(value.value)
        except ValueError:
            raise context.statement.error(
                f"'{value.value}' does not fit column {output.name}",
                node,
                code="E_FILL_VALUES",
                detail=f"{value.type} and {output.type} do not fit",
                hint="write a number",
            ) from None
    return to_sql(node)

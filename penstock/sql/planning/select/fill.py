"""FILL of empty windows."""

from __future__ import annotations

from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.dialect import to_sql
from penstock.sql.plan import Fill, FillMode, Output
from penstock.sql.planning.binder import Binder
from penstock.sql.planning.refusals import refuse
from penstock.sql.planning.select.items import SelectList


def fill_mode(select: exp.Select) -> FillMode | None:
    """Return the mode of FILL, if any; NULL_F and VALUE_F are NULL and VALUE in a stream."""
    node = select.args.get("fill")
    if node is None:
        return None
    mode: FillMode = node.args["mode"].removesuffix("_F").lower()
    return mode


def plan_fill(binder: Binder, select: exp.Select, selection: SelectList) -> Fill:
    """Plan FILL, with one value for each output that is made of aggregates."""
    mode = fill_mode(select)
    if mode is None:
        return Fill("none")
    node = select.args["fill"]
    if not isinstance(select.args.get("window"), nodes.IntervalWindow):
        refuse(binder.statement, "E_FILL_WINDOW", node)
    if any(a.function.startswith("user:") for a in selection.aggregates):
        binder.refuse_query(
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
        refuse(binder.statement, "E_FILL_VALUES", node, given=len(values), wanted=wanted)
    texts = iter(values)
    outputs = zip(selection.outputs, takes_value, strict=True)
    return Fill(
        "value",
        tuple(
            _fill_value(binder, next(texts), output) if takes else None for output, takes in outputs
        ),
    )


def _fill_value(binder: Binder, node: exp.Expr, output: Output) -> str:
    value = binder.compile(node, {})
    if not value.literal:
        raise binder.statement.error(
            "a FILL value must be a constant",
            node,
            code="E_FILL_VALUES",
            hint=f"it is for {output.name}",
        )
    if output.type.numeric and value.type.text:
        try:
            float(value.value)
        except ValueError:
            raise binder.statement.error(
                f"'{value.value}' does not fit column {output.name}",
                node,
                code="E_FILL_VALUES",
                detail=f"{value.type} and {output.type} do not fit",
                hint="write a number",
            ) from None
    return to_sql(node)

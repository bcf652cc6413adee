"""The select list in plan terms."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from penstock.sql.dialect import to_sql
from penstock.sql.functions.base import BIGINT, NULL
from penstock.sql.plan import Aggregate, Output
from penstock.sql.planning.context import PlanningContext
from penstock.sql.relational import SelectItem

#: mark in the `meta` of a select item that a query around the windows reads and nobody sees
HIDDEN = "hidden"


@dataclass
class SelectList:
    """The select list in plan terms. The name of `outputs[i]` is the one that the user sees, and
    `nodes[i]` is the item as it is written.
    """

    outputs: list[Output] = field(default_factory=list)
    aggregates: list[Aggregate] = field(default_factory=list)
    #: whether output i is filled by FILL (made of aggregates) or computed
    filled: list[bool] = field(default_factory=list)
    nodes: list[exp.Expr] = field(default_factory=list)

    def takes_values(self) -> list[bool]:
        """Tell of each output if FILL(VALUE, …) has a value for it."""
        return [
            filled and not node.meta.get(HIDDEN)
            for filled, node in zip(self.filled, self.nodes, strict=True)
        ]

    def add(self, node: exp.Expr, output: Output, *, filled: bool) -> None:
        """Append the output of a select item."""
        self.outputs.append(output)
        self.filled.append(filled)
        self.nodes.append(node)


def output_of(context: PlanningContext, item: SelectItem, lowered: exp.Expr, hint: str) -> Output:
    """Return the output of *item*, which is *lowered* in plan terms; *hint* is for one of JSON."""
    name, kind = item.output.name, item.output.type
    if kind.kind == "JSON":
        context.refuse_query(item.expression, "a result column cannot be JSON", hint)
    return Output(name, to_sql(lowered), BIGINT if kind == NULL else kind)

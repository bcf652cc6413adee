"""Calls of aggregates, checked and collected: equal ones are computed once."""

from __future__ import annotations

from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.dialect import to_sql
from penstock.sql.functions.aggregate import AggregateFunction
from penstock.sql.plan import Aggregate
from penstock.sql.planning.context import PlanningContext
from penstock.sql.relational.select_list import column_reference
from penstock.sql.relational.stream_names import type_of
from penstock.types import ColumnType
from penstock.udf import UserFunction


class AggregateCalls:
    """Adds calls to *aggregates*; each is replaced by the name of its result."""

    def __init__(self, context: PlanningContext, aggregates: list[Aggregate]) -> None:
        self._context = context
        self._aggregates = aggregates

    def add(
        self,
        function: str,
        sql: str | None,
        kind: ColumnType,
        parameters: tuple[float | int | str, ...],
        node: exp.Expr,
    ) -> exp.Expr:
        """Add an aggregate unless there is an equal one; return its result in place of *node*."""
        for known in self._aggregates:
            if (known.function, known.sql, known.params) == (function, sql, parameters):
                return column_reference(known.name, node)
        name = f"_a{len(self._aggregates)}"
        self._aggregates.append(Aggregate(name, function, sql, kind, parameters))
        return column_reference(name, node)

    def add_call(self, function: AggregateFunction, node: exp.Anonymous) -> exp.Expr:
        """Add a call of one of the dialect's aggregates."""
        first = node.expressions[0]
        if isinstance(first, exp.Distinct):
            self._context.refuse_query(
                node,
                f"{function.name}(DISTINCT …) must keep every value",
                "use hyperloglog(x), or PARTITION BY x",
            )
        kind = type_of(node)
        if isinstance(first, exp.Star):
            return self.add("count", None, kind, (), node)
        if kind.kind == "JSON":
            self._context.refuse_query(
                first,
                "a result column cannot be JSON",
                "take a value out of it: CAST(tag->'key' AS VARCHAR(64))",
            )
        name = function.plan_name or function.name
        return self.add(name, to_sql(first), kind, self._parameters(node), node)

    def add_user_call(self, function: UserFunction, node: exp.Anonymous) -> exp.Expr:
        """Add a call of a user-defined aggregate, which gets all values of a window at once."""
        [wanted] = function.parameters
        [argument] = node.expressions
        if type_of(argument) != wanted:
            argument = exp.Cast(this=argument.copy(), to=nodes.TypeName(this=str(wanted)))
        return self.add(f"user:{function.name}", to_sql(argument), function.returns, (), node)

    def _parameters(self, node: exp.Anonymous) -> tuple[float | int | str, ...]:
        """Return p and the algorithm of a percentile, which are constants."""
        values = (self._context.compile(argument, {}).value for argument in node.expressions[1:])
        return tuple(value.lower() if isinstance(value, str) else value for value in values)

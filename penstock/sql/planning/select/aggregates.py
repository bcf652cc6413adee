"""Calls of aggregates, checked and collected: equal ones are computed once."""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.dialect import to_sql
from penstock.sql.functions.aggregate import AggregateFunction
from penstock.sql.plan import Aggregate
from penstock.sql.planning.binder import TIMESTAMP, Binder
from penstock.sql.planning.select.items import column_reference
from penstock.types import ColumnType
from penstock.udf import UserFunction

BIGINT = ColumnType("BIGINT")
WINDOW_TYPES = {"_wstart": TIMESTAMP, "_wend": TIMESTAMP, "_wduration": BIGINT}
_ALGORITHMS = ("default", "t-digest")


class AggregateCalls:
    """Adds calls to *aggregates*; each is replaced by the name of its result."""

    def __init__(self, binder: Binder, aggregates: list[Aggregate]) -> None:
        self._binder = binder
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
        self._check_count(function, node)
        first = node.expressions[0]
        if isinstance(first, exp.Distinct):
            self._binder.refuse_query(
                node,
                f"{function.name}(DISTINCT …) must keep every value",
                "use hyperloglog(x), or PARTITION BY x",
            )
        if isinstance(first, exp.Star):
            if function.name != "count":
                self._bad_call(node, f"{function.name}(*) is not possible", function)
            return self.add("count", None, BIGINT, (), node)
        kind = self._argument_type(function, first)
        name = function.plan_name or function.name
        parameters = self._parameters(function, node)
        return self.add(name, to_sql(first), function.returns(kind), parameters, node)

    def add_user_call(self, function: UserFunction, node: exp.Anonymous) -> exp.Expr:
        """Add a call of a user-defined aggregate, which gets all values of a window at once."""
        [wanted] = function.parameters
        if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Star):
            message = f"{function.name}() takes one argument"
            raise self._binder.statement.error(
                message, node, code="E_FUNCTION_ARGUMENT", hint=f"{function.name}({wanted})"
            )
        argument = node.expressions[0]
        self._refuse_window_times(argument, function.name)
        if self._binder.compile(argument).type != wanted:
            argument = exp.Cast(this=argument, to=nodes.TypeName(this=str(wanted)))
            self._binder.compile(argument)
        return self.add(f"user:{function.name}", to_sql(argument), function.returns, (), node)

    def _check_count(self, function: AggregateFunction, node: exp.Anonymous) -> None:
        count = len(node.expressions)
        if function.least <= count <= function.at_most:
            return
        wanted = "one argument"
        if function.at_most > 1:
            wanted = f"{function.least} to {function.at_most} arguments"
        self._bad_call(node, f"{function.name}() takes {wanted}, not {count}", function)

    def _refuse_window_times(self, argument: exp.Expr, function: str) -> None:
        for column in argument.find_all(exp.Column):
            if column.name in WINDOW_TYPES:
                self._binder.refuse_query(
                    argument,
                    f"{column.name} is known only when the window is",
                    f"take it out of {function}()",
                )

    def _argument_type(self, function: AggregateFunction, argument: exp.Expr) -> ColumnType:
        self._refuse_window_times(argument, function.name)
        kind = self._binder.compile(argument).type
        if function.name in ("first", "last", "last_row") and kind.kind == "JSON":
            self._binder.refuse_query(
                argument,
                "a result column cannot be JSON",
                "take a value out of it: CAST(tag->'key' AS VARCHAR(64))",
            )
        if not takes(function, kind):
            raise self._binder.statement.error(
                f"{function.name}() needs a number, not {kind}",
                argument,
                code="E_TYPE",
                detail=f"{kind} and DOUBLE do not fit",
                hint="write CAST(… AS DOUBLE)",
            )
        return kind

    def _parameters(
        self, function: AggregateFunction, node: exp.Anonymous
    ) -> tuple[float | int | str, ...]:
        """Return p and the algorithm of a percentile."""
        parameters: list[float | int | str] = []
        for i, argument in enumerate(node.expressions[1:]):
            value = self._binder.compile(argument)
            possible = is_percentage(value.value) if i == 0 else is_algorithm(value.value)
            if not value.literal or not possible:
                self._bad_call(
                    node,
                    f"{function.name}() takes p from 0 to 100 and 'default' or 't-digest', both"
                    " constants",
                    function,
                )
            parameters.append(value.value.lower() if isinstance(value.value, str) else value.value)
        return tuple(parameters)

    def _bad_call(self, node: exp.Expr, what: str, function: AggregateFunction) -> NoReturn:
        raise self._binder.statement.error(
            what, node, code="E_FUNCTION_ARGUMENT", hint=f"{function.signature}: {function.doc}"
        )


def takes(function: AggregateFunction, kind: ColumnType) -> bool:
    if function.name in ("min", "max"):
        return kind.kind not in ("JSON", "VARBINARY")
    if function.argument == "any":
        return True
    if kind.numeric or kind.kind == "BOOL":
        return True
    return function.argument == "spread" and kind.kind == "TIMESTAMP"


def is_percentage(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 100


def is_algorithm(value: object) -> bool:
    return str(value).lower() in _ALGORITHMS

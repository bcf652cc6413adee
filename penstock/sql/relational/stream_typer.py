"""Types of the expressions of a stream's SELECT: those of a query's, as far as the kernels of
streams compute them.
"""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.compile import NODES, Functions
from penstock.sql.compile.compiler import Compiler
from penstock.sql.dialect import to_sql
from penstock.sql.functions import AGGREGATES
from penstock.sql.functions.base import NULL, Compiled
from penstock.sql.relational.aggregates import check_place, type_aggregate
from penstock.sql.relational.bindings import Binding, note
from penstock.sql.relational.chosen_columns import type_chosen_column
from penstock.sql.relational.relations import Output, SelectScope
from penstock.sql.relational.stream_filters import type_stream_filter
from penstock.sql.relational.stream_names import KEY_TEXT, plan_names, strip_parentheses
from penstock.sql.relational.typer import QUERY_NODES, ExpressionTyper, NodeTypes
from penstock.sql.source import Source
from penstock.sql.source_names import WINDOW_TYPES
from penstock.udf import UserFunction


class StreamTyper(ExpressionTyper):
    """Types the expressions of one SELECT, and sees how large they become in the kernels.

    Args:
        windowed: it has a window clause.
    """

    way_out = "aggregates belong into the select list beside a window, and not into each other"

    def __init__(
        self,
        names: SelectScope,
        *,
        precision: str,
        timezone: str,
        source: Source,
        functions: Functions,
        windowed: bool,
    ) -> None:
        super().__init__(
            names,
            self._refuse_query,
            precision=precision,
            timezone=timezone,
            source=source,
            functions=functions,
        )
        self.windowed = windowed
        self._json_keys: set[str] = set()

    def node_types(self) -> NodeTypes:
        return STREAM_NODES

    def note_json_key(self, key: exp.Expr) -> None:
        """Note that the values of *key* (bound) are text where the key is meant."""
        self._json_keys.add(to_sql(plan_names(key, {})))

    def fold(self, value: Compiled, node: exp.Expr) -> Compiled:
        # not as for a query, where each value that is no constant counts as one column
        value = Compiler.fold(self, value, node)
        if value.type.kind == "JSON" and self._is_json_key(node):
            value = self.value(KEY_TEXT)
        if not isinstance(node, exp.Column):
            note(node, Binding(value.type, self.scope.precision))
        return value

    def _is_json_key(self, node: exp.Expr) -> bool:
        if self.inside or not self._json_keys:
            return False
        return to_sql(plan_names(strip_parentheses(node), {})) in self._json_keys

    def _refuse_query(self, query: exp.Query, names: SelectScope) -> tuple[Output, ...]:
        self.refuse(query, "a subquery cannot stand here", code="E_UNSUPPORTED_QUERY")


def _column(typer: StreamTyper, node: exp.Column) -> Compiled:
    name = node.name.lower()
    if not typer.windowed or name not in WINDOW_TYPES or node.table:
        return QUERY_NODES[exp.Column](typer, node)
    if typer.inside:
        _refuse_window(typer, node, "", f"take it out of {typer.inside}()")
    if not typer.clause.no_aggregates:
        kind = WINDOW_TYPES[name]
        node.this.set("this", name)
        note(node, Binding(kind, typer.scope.precision))
        return typer.value(kind)
    if not typer.names.having(name):
        time = typer.names.relations[0].columns[0].name
        where = f", and cannot stand in {typer.clause.no_aggregates}"
        _refuse_window(typer, node, where, f"write {time}, the time of a row")
    return QUERY_NODES[exp.Column](typer, node)


def _refuse_window(typer: StreamTyper, node: exp.Column, where: str, hint: str) -> NoReturn:
    """Refuse a time of the window where its rows are read."""
    typer.refuse(
        node,
        f"{node.name} is known only when the window is{where}",
        code="E_UNSUPPORTED_QUERY",
        hint=hint,
    )


def _call(typer: StreamTyper, node: exp.Anonymous) -> Compiled:
    name = str(node.this).lower()
    if name == "_group_key" and typer.windowed:
        return _group_key(typer, node)
    if name in AGGREGATES:
        return type_aggregate(typer, node, name)
    if name == nodes.COLS:
        return type_chosen_column(typer, node, name)
    function = typer.functions(name) if typer.windowed else None
    if function is not None and function.aggregate:
        return _user_aggregate(typer, node, function)
    return NODES[exp.Anonymous](typer, node)


def _group_key(typer: StreamTyper, node: exp.Anonymous) -> Compiled:
    kinds = [typer.type_of(argument) for argument in node.expressions]
    # only a key can be looked up, which whoever knows the keys says
    return typer.value(kinds[0] if kinds else NULL)


def _user_aggregate(typer: StreamTyper, node: exp.Anonymous, function: UserFunction) -> Compiled:
    """Type a call of a user-defined aggregate, which gets all values of a window at once."""
    check_place(typer, node, function.name)
    [wanted] = function.parameters
    if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Star):
        typer.refuse(
            node,
            f"{function.name}() takes one argument",
            code="E_FUNCTION_ARGUMENT",
            hint=f"{function.name}({wanted})",
        )
    argument = node.expressions[0]
    typer.inside = function.name
    try:
        if typer.type_of(argument) != wanted:
            typer.type_of(exp.Cast(this=argument.copy(), to=nodes.TypeName(this=str(wanted))))
    finally:
        typer.inside = ""
    return typer.value(function.returns)


#: a subquery, EXISTS and OVER have been refused
STREAM_NODES: NodeTypes = {
    **QUERY_NODES,
    exp.Column: _column,
    exp.Anonymous: _call,
    exp.Filter: type_stream_filter,
}

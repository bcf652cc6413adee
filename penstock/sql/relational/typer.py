"""Types of a SELECT's expressions, by the rules of the stream compiler.

The compiler is asked for what it would compile; only the type is kept. Every value that is no
constant is one column to it, so that a long expression costs no more than its length.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, NoReturn, TypeAlias

import polars as pl
from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.compile import NODES, Functions
from penstock.sql.compile.comparison import compare
from penstock.sql.compile.compiler import Compiler
from penstock.sql.compile.patterns import check_regex
from penstock.sql.functions import FORBIDDEN, QUERY_ONLY, REGISTRY, SERIES, WINDOW_FUNCTIONS
from penstock.sql.functions.base import BOOL, NULL, Compiled
from penstock.sql.functions.other_names import did_you_mean
from penstock.sql.functions.row_choosers import ROW_CHOOSERS
from penstock.sql.relational import names
from penstock.sql.relational.aggregates import type_aggregate
from penstock.sql.relational.bindings import Binding, note, note_alias
from penstock.sql.relational.chosen_columns import type_chosen_column
from penstock.sql.relational.over import refuse_without_over, type_filter, type_window
from penstock.sql.relational.relations import Alias, Output, SelectScope
from penstock.sql.relational.row_choosers import type_chooser
from penstock.sql.relational.series import refuse_series_alias, type_series
from penstock.sql.relational.signatures import AGGREGATE_NAMES, result_type
from penstock.sql.source import Source
from penstock.types import ColumnType
from penstock.udf import UserFunction

#: stands for whatever differs from row to row
_VALUE = pl.col("_value")
#: binds a query inside an expression and returns its columns
BindQuery = Callable[[exp.Query, SelectScope], tuple[Output, ...]]
NodeTypes: TypeAlias = "dict[type[exp.Expr], Callable[[Any, Any], Compiled]]"


class Counts(NamedTuple):
    """Numbers of calls: aggregates and what chooses rows, those with OVER, those of series."""

    aggregates: int
    windows: int
    series: int


@dataclass
class Clause:
    """The part of a SELECT that is being typed, and what was found in it."""

    #: as errors call it; "" where aggregates may stand
    no_aggregates: str = ""
    #: the same for OVER, where it is not so for aggregates
    no_windows: str = ""
    #: columns outside aggregates, with their (relation, column) in lower case
    plain: list[tuple[exp.Column, tuple[str, str]]] = field(default_factory=list)
    aggregates: int = 0
    #: calls with OVER
    windows: int = 0
    #: calls of functions of a row and the rows before it
    series: list[exp.Anonymous] = field(default_factory=list)
    #: calls that choose rows
    choosers: int = 0

    def count(self) -> Counts:
        """Return what was found so far."""
        return Counts(self.aggregates + self.choosers, self.windows, len(self.series))


class ExpressionTyper(Compiler):
    """Types the expressions of one SELECT."""

    #: of an aggregate where none may stand, if HAVING and subqueries are none
    way_out = ""

    def __init__(
        self,
        names_in_scope: SelectScope,
        bind_query: BindQuery,
        *,
        precision: str,
        timezone: str,
        source: Source,
        functions: Functions,
    ) -> None:
        super().__init__(self.node_types(), {}, precision, timezone, source, functions, {})
        self.names = names_in_scope
        self.bind_query = bind_query
        self.clause = Clause()
        #: name of the aggregate whose argument is being typed
        self.inside = ""
        #: name of the function whose OVER is being typed
        self.over = ""

    def node_types(self) -> NodeTypes:
        """Return what types each type of node."""
        return QUERY_NODES

    def value(self, kind: ColumnType) -> Compiled:
        """Return a value of *kind* that differs from row to row."""
        return Compiled(_VALUE, kind)

    def fold(self, value: Compiled, node: exp.Expr) -> Compiled:
        if not value.literal and value.type != NULL:
            if value.expr.meta.root_names():
                value = replace(value, expr=_VALUE, raw=None)
            else:
                value = super().fold(value, node)
        if not isinstance(node, exp.Column):
            note(node, Binding(value.type, self.scope.precision))
        return value

    def type_of(self, node: exp.Expr) -> ColumnType:
        """Return the type of *node*, which all below it has as well afterwards."""
        return self.compile(node).type


def _column(typer: ExpressionTyper, node: exp.Column) -> Compiled:
    if isinstance(node.this, exp.Star):
        typer.refuse(
            node,
            "* is not possible inside an expression",
            code="E_UNSUPPORTED_EXPRESSION",
            hint="name the column",
        )
    found = names.resolve(typer.names, node, typer.refuse)
    note(node, Binding(found.output.type, found.output.precision))
    if found.alias is not None:
        note_alias(node)
        _check_alias(typer, node, found.alias)
    elif found.own and not typer.inside:
        typer.clause.plain.append((node, found.place))
    return typer.value(found.output.type)


def _check_alias(typer: ExpressionTyper, node: exp.Column, alias: Alias) -> None:
    """Refuse the name of an aggregate, of a call with OVER or of a series where itself could not
    stand.
    """
    clause = typer.clause.no_aggregates
    outer = typer.inside
    if alias.windowed:
        clause = typer.clause.no_windows or clause
        outer = outer or typer.over
    computed = alias.windowed or alias.aggregated or alias.of_series
    if not computed or not (outer or clause):
        return
    if alias.of_series and not alias.windowed:
        refuse_series_alias(typer, node)
    where = f"inside {outer}()" if outer else f"in {clause}"
    what = "an aggregate"
    hint = "conditions on aggregates stand in HAVING, or around a subquery"
    if alias.windowed:
        what = "computed by OVER"
        hint = "write QUALIFY instead of WHERE, or the condition around a subquery"
    typer.refuse(
        node, f"{node.name} is {what} and cannot stand {where}", code="E_AGGREGATE_HERE", hint=hint
    )


#: functions that are typed in ways of their own
_KINDS: tuple[tuple[Container[str], Callable[..., Compiled]], ...] = (
    ((nodes.COLS,), type_chosen_column),
    (AGGREGATE_NAMES, type_aggregate),
    (ROW_CHOOSERS, type_chooser),
)


def _call(typer: ExpressionTyper, node: exp.Anonymous) -> Compiled:
    name = str(node.this).lower()
    for known, type_call in _KINDS:
        if name in known:
            return type_call(typer, node, name)
    if name in REGISTRY:
        return NODES[exp.Anonymous](typer, node)
    if name in WINDOW_FUNCTIONS:
        refuse_without_over(typer, node, name)
    function = typer.functions(name)
    if function is not None:
        return _user_call(typer, function, node)
    if name in SERIES:
        return type_series(typer, node, name)
    return _query_call(typer, node, name)


def _query_call(typer: ExpressionTyper, node: exp.Anonymous, name: str) -> Compiled:
    """Type a call of a function that only queries have."""
    arguments = [typer.compile(a) for a in node.expressions]
    kind = result_type(name, [a.type for a in arguments])
    if kind is None:
        _refuse_function(typer, node, name)
    if name.startswith("regexp_") and len(arguments) > 1 and isinstance(arguments[1].value, str):
        check_regex(typer, arguments[1].value, node.expressions[1])
    return typer.value(kind)


def _refuse_function(typer: ExpressionTyper, node: exp.Anonymous, name: str) -> NoReturn:
    known = [
        *REGISTRY,
        *AGGREGATE_NAMES,
        nodes.COLS,
        *ROW_CHOOSERS,
        *QUERY_ONLY,
        *SERIES,
        *WINDOW_FUNCTIONS,
    ]
    hint = did_you_mean(name, known) or "docs/sql-functions.md lists all functions"
    if name == "interp":
        typer.refuse(
            node,
            "interp() stands in the select list of a SELECT with RANGE",
            code="E_FUNCTION_ARGUMENT",
            hint="SELECT _irowts, interp(x) FROM … RANGE(from, to) EVERY(1m) FILL(PREV)",
        )
    if name in FORBIDDEN:
        hint = f"instead: {FORBIDDEN[name][1]}"
    typer.refuse(node, f"there is no function {name[:80]}()", code="E_UNKNOWN_FUNCTION", hint=hint)


def _user_call(typer: ExpressionTyper, function: UserFunction, node: exp.Anonymous) -> Compiled:
    wanted = len(function.parameters)
    if len(node.expressions) != wanted:
        shown = ", ".join(str(p) for p in function.parameters)
        typer.refuse(
            node,
            f"{function.name}() takes {wanted} arguments, not {len(node.expressions)}",
            code="E_FUNCTION_ARGUMENT",
            hint=f"{function.name}({shown})",
        )
    for argument in node.expressions:
        typer.compile(argument)
    return typer.value(function.returns)


def _one_column(typer: ExpressionTyper, query: exp.Query, node: exp.Expr) -> ColumnType:
    """Bind a query whose rows are values, and return their type."""
    columns = typer.bind_query(query, typer.names)
    if len(columns) != 1:
        typer.refuse(
            node,
            f"a subquery here gives one column, not {len(columns)}",
            code="E_QUERY",
            hint="select the one column that is meant",
        )
    return columns[0].type


def _subquery(typer: ExpressionTyper, node: exp.Subquery) -> Compiled:
    return typer.value(_one_column(typer, node.this, node))


def _exists(typer: ExpressionTyper, node: exp.Exists) -> Compiled:
    typer.bind_query(node.this, typer.names)
    return typer.value(BOOL)


def _in(typer: ExpressionTyper, node: exp.In) -> Compiled:
    query = node.args.get("query")
    if query is None:
        return NODES[exp.In](typer, node)
    left = typer.compile(node.this)
    right = typer.value(_one_column(typer, query.this, query))
    compare(typer, exp.EQ, left, right, node)
    if not _go_together(left.type, right.type):
        typer.mismatch(
            node,
            "IN:",
            left.type,
            right.type,
            hint="let the subquery select CAST(… AS …)",
        )
    return typer.value(BOOL)


def _go_together(left: ColumnType, right: ColumnType) -> bool:
    """Tell if values of two types compare as they are: those of a subquery are not converted."""
    if NULL in (left, right) or left.kind == right.kind:
        return True
    return (left.text and right.text) or (left.numeric and right.numeric)


QUERY_NODES: NodeTypes = {
    **NODES,
    exp.Column: _column,
    exp.Anonymous: _call,
    exp.Subquery: _subquery,
    exp.Exists: _exists,
    exp.In: _in,
    exp.Filter: type_filter,
    exp.Window: type_window,
}

"""Calls of the aggregates that only a SELECT has: their arguments and types, and the time of the
row, which the text leaves to be understood.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.functions.base import NULL, TIMESTAMP, Compiled
from penstock.sql.functions.query_function import QueryAggregate
from penstock.sql.relational.bindings import Binding, note
from penstock.sql.relational.refusals import refuse_argument, refuse_place
from penstock.sql.relational.relations import Relation
from penstock.types import ColumnType

if TYPE_CHECKING:
    from penstock.sql.relational.typer import ExpressionTyper


def check_query_aggregate(
    typer: ExpressionTyper, node: exp.Anonymous, function: QueryAggregate
) -> ColumnType:
    """Check a call, and add the time of the row to its arguments where it needs one."""
    arguments = _arguments(typer, node, function)
    first = arguments[0]
    if isinstance(first, exp.Star):
        refuse_argument(typer, node, f"{function.name}(*) is not possible here", function)
    kind = typer.type_of(first)
    if kind != NULL and not _takes(function.kinds[0], kind):
        wanted = "a time" if function.kinds[0] == "time" else "a number"
        typer.refuse(
            first,
            f"{function.name}() needs {wanted}, not {kind}",
            code="E_TYPE",
            hint=f"{function.signature}; a text becomes a number by CAST(… AS DOUBLE)",
        )
    _check_constants(typer, node, function, arguments[1:])
    if function.many_rows:
        _check_alone(typer, node, function)
    if function.timed:
        time = find_time(typer, first)
        if time is None:
            refuse_without_time(typer, node)
        node.append("expressions", time)
    return function.returns(kind, len(arguments))


def find_time(typer: ExpressionTyper, argument: exp.Expr) -> exp.Column | None:
    """Return the time of the rows that *argument* is computed from; None where they have none."""
    relation = _relation_of(typer, argument)
    time = relation.columns[0] if relation is not None and relation.columns else None
    if relation is None or time is None or time.type != TIMESTAMP:
        return None
    several = len(typer.names.relations) > 1
    column = exp.column(time.name, table=relation.name if several else None, quoted=True)
    note(column, Binding(time.type, time.precision))
    return column


def refuse_without_time(typer: ExpressionTyper, node: exp.Anonymous) -> NoReturn:
    """Refuse a call over rows without a time."""
    typer.refuse(
        node,
        f"{str(node.this).lower()}() needs the time of each row",
        code="E_FUNCTION_ARGUMENT",
        hint="the time is the first column of a table; select it first in a subquery, too",
    )


def _relation_of(typer: ExpressionTyper, argument: exp.Expr) -> Relation | None:
    """Return the relation of the first column in *argument*, or the first of FROM."""
    relations = typer.names.relations
    for column in argument.find_all(exp.Column):
        if column.table:
            return typer.names.relation(column.table)
        having = [relation for relation in relations if relation.find(column.name) is not None]
        if having:
            return having[0]
    return relations[0] if relations else None


def _arguments(
    typer: ExpressionTyper, node: exp.Anonymous, function: QueryAggregate
) -> list[exp.Expr]:
    """Return the arguments, those behind DISTINCT too."""
    arguments = list(node.expressions)
    first = arguments[0] if arguments else None
    if isinstance(first, exp.Distinct):
        if not function.of_different:
            refuse_argument(typer, node, f"{function.name}() does not take DISTINCT", function)
        arguments = [*first.expressions, *arguments[1:]]
    if not function.least <= len(arguments) <= function.at_most:
        message = f"{function.name}() does not take {len(arguments)} arguments"
        refuse_argument(typer, node, message, function)
    return arguments


def _takes(wanted: str, kind: ColumnType) -> bool:
    if wanted == "any":
        return kind.kind not in ("JSON", "VARBINARY")
    if wanted == "time":
        return kind == TIMESTAMP
    return kind.numeric or kind.kind == "BOOL"


def _check_constants(
    typer: ExpressionTyper,
    node: exp.Anonymous,
    function: QueryAggregate,
    given: list[exp.Expr],
) -> None:
    for argument in given:
        if not is_constant(argument):
            message = f"{function.name}() takes constants behind its first argument"
            refuse_argument(typer, argument, message, function)
    values = [compile_constant(typer, argument) for argument in given]
    complaint = function.check(values, typer.scope.precision)
    if complaint:
        refuse_argument(typer, node, f"{function.name}(): {complaint}", function)


def is_constant(node: exp.Expr) -> bool:
    """Tell if *node* is written as a constant."""
    inner = node.this if isinstance(node, exp.Neg) else node
    return isinstance(inner, exp.Literal | nodes.DurationLiteral)


def compile_constant(typer: ExpressionTyper, node: exp.Expr) -> Compiled:
    """Compile a constant; a whole number has no zeros in front from now on."""
    compiled = typer.compile(node)
    if isinstance(node, exp.Literal) and not node.is_string and isinstance(compiled.value, int):
        node.set("this", str(compiled.value))
    return compiled


def _check_alone(typer: ExpressionTyper, node: exp.Anonymous, function: QueryAggregate) -> None:
    """Refuse a call that gives several rows and is no item of the select list."""
    item = node.parent if isinstance(node.parent, exp.Alias) else node
    select = item.parent
    if not isinstance(select, exp.Select) or item.arg_key != "expressions":
        message = f"{function.name}() gives several rows and cannot stand inside an expression"
        refuse_place(typer, node, message, "compute with its rows in a query around this one")
    limits = ("limit", "offset", "slimit", "soffset")
    if select.args.get("partition_by") is not None and any(map(select.args.get, limits)):
        message = f"{function.name}() gives several rows, which no limit of partitions counts"
        refuse_place(typer, node, message, "write LIMIT in a query around this one")

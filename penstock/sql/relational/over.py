"""`OVER` and `FILTER`: where they may stand, what they take, what they give."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.functions.base import TIMESTAMP, Compiled
from penstock.sql.functions.over import WINDOW_FUNCTIONS, WindowFunction
from penstock.sql.relational.aggregates import result_of_aggregate
from penstock.sql.relational.bindings import Binding, note
from penstock.sql.relational.signatures import AGGREGATE_NAMES
from penstock.types import ColumnType

if TYPE_CHECKING:
    from penstock.sql.relational.typer import ExpressionTyper

_AROUND = "write it in a subquery: SELECT … FROM (SELECT …) WHERE …; or QUALIFY instead of WHERE"


def call_of(node: exp.Window | exp.Filter) -> exp.Expr:
    """Return the call in front of FILTER and OVER."""
    inner: exp.Expr = node.this
    return inner.this if isinstance(inner, exp.Filter) else inner


def is_over(call: exp.Expr) -> bool:
    """Tell if *call* is the function in front of OVER, and so makes no one row of many."""
    parent = call.parent
    if isinstance(parent, exp.Filter) and parent.this is call:
        call, parent = parent, parent.parent
    return isinstance(parent, exp.Window) and parent.this is call


def refuse_without_over(typer: ExpressionTyper, node: exp.Anonymous, name: str) -> NoReturn:
    """Refuse a function that needs OVER and has none."""
    typer.refuse(
        node,
        f"{name}() needs OVER",
        code="E_FUNCTION_ARGUMENT",
        hint=f"write {WINDOW_FUNCTIONS[name].signature} OVER (PARTITION BY … ORDER BY …)",
    )


# ---------------------------------------------------------------- FILTER


def type_filter(typer: ExpressionTyper, node: exp.Filter) -> Compiled:
    """Type an aggregate of the rows that meet a condition."""
    name = _name(node.this)
    if name not in AGGREGATE_NAMES:
        typer.refuse(
            node,
            "FILTER stands behind an aggregate",
            code="E_QUERY",
            hint="write sum(…) FILTER (WHERE …)",
        )
    return type_filtered(typer, node, name)


def type_filtered(typer: ExpressionTyper, node: exp.Filter, name: str) -> Compiled:
    """Type the aggregate *name* and the condition behind it."""
    kind = typer.type_of(node.this)
    typer.inside = name
    try:
        typer.truth(node.expression.this)
    finally:
        typer.inside = ""
    return typer.value(kind)


# ---------------------------------------------------------------- OVER


def type_window(typer: ExpressionTyper, node: exp.Window) -> Compiled:
    """Type a function of a row among others."""
    call = call_of(node)
    name = _name(call)
    _check_place(typer, node, name)
    typer.clause.windows += 1
    typer.over = name
    try:
        kind = _result(typer, call, name)
        if node.this is not call:
            _type_condition(typer, node.this, name)
            note(node.this, Binding(kind, typer.scope.precision))
        _type_parts(typer, node)
    finally:
        typer.over = ""
    _check_frame(typer, node, name)
    note(call, Binding(kind, typer.scope.precision))
    return typer.value(kind)


def _name(call: exp.Expr) -> str:
    return str(call.this).lower() if isinstance(call, exp.Anonymous) else call.key


def _check_place(typer: ExpressionTyper, node: exp.Window, name: str) -> None:
    outer = typer.inside or typer.over
    if outer:
        typer.refuse(
            node,
            f"{name}() OVER cannot stand inside {outer}()",
            code="E_AGGREGATE_HERE",
            hint=f"compute {name}() OVER in a subquery",
        )
    clause = typer.clause.no_windows or typer.clause.no_aggregates
    if clause:
        typer.refuse(
            node,
            f"{name}() OVER looks at the rows that are left and cannot stand in {clause}",
            code="E_AGGREGATE_HERE",
            hint=_AROUND,
        )


def _result(typer: ExpressionTyper, call: exp.Expr, name: str) -> ColumnType:
    if isinstance(call, exp.Anonymous):
        if name in AGGREGATE_NAMES:
            return result_of_aggregate(typer, call, name)
        function = WINDOW_FUNCTIONS.get(name)
        if function is not None:
            return _result_of(typer, call, function)
    typer.refuse(
        call,
        f"{name[:80]}() is no function for OVER",
        code="E_UNKNOWN_FUNCTION",
        hint=f"OVER takes aggregates and {', '.join(WINDOW_FUNCTIONS)}",
    )


def _result_of(typer: ExpressionTyper, call: exp.Anonymous, function: WindowFunction) -> ColumnType:
    arguments = call.expressions
    hint = f"{function.signature}: {function.doc}"
    if not function.least <= len(arguments) <= function.at_most:
        typer.refuse(
            call,
            f"{function.name}() does not take {len(arguments)} arguments",
            code="E_FUNCTION_ARGUMENT",
            hint=hint,
        )
    _check_count(typer, call, function, hint)
    kind = function.returns([typer.type_of(argument) for argument in arguments])
    if kind is None:
        typer.refuse(
            call,
            f"{function.name}(): the default is of another type than the value",
            code="E_TYPE",
            hint="convert one of them with CAST(… AS …)",
        )
    return kind


def _check_count(
    typer: ExpressionTyper, call: exp.Anonymous, function: WindowFunction, hint: str
) -> None:
    if function.count is None or len(call.expressions) <= function.count[0]:
        return
    place, least = function.count
    node = call.expressions[place]
    if not _is_whole(node) or int(node.name) < least:
        typer.refuse(
            node,
            f"{function.name}() takes a whole number of {least} or more here, as a constant",
            code="E_FUNCTION_ARGUMENT",
            hint=hint,
        )


def _is_whole(node: object) -> bool:
    return (
        isinstance(node, exp.Literal)
        and not node.is_string
        and node.name.isascii()
        and node.name.isdigit()
        and int(node.name) < 2**63
    )


def _type_condition(typer: ExpressionTyper, node: exp.Filter, name: str) -> None:
    if name not in AGGREGATE_NAMES:
        typer.refuse(
            node,
            f"{name}() takes no FILTER",
            code="E_QUERY",
            hint="FILTER stands behind an aggregate",
        )
    typer.truth(node.expression.this)


def _type_parts(typer: ExpressionTyper, node: exp.Window) -> None:
    for key in node.args.get("partition_by") or []:
        typer.compile(key)
    for item in _order(node):
        typer.compile(item.this)


def _order(node: exp.Window) -> list[exp.Ordered]:
    order = node.args.get("order")
    return list(order.expressions) if order is not None else []


# ---------------------------------------------------------------- frames


def _check_frame(typer: ExpressionTyper, node: exp.Window, name: str) -> None:
    spec = node.args.get("spec")
    if spec is None:
        return
    function = WINDOW_FUNCTIONS.get(name)
    if function is not None and not function.of_frame:
        typer.refuse(
            spec,
            f"{name}() looks at all rows of the partition and takes no frame",
            code="E_QUERY",
            hint="leave ROWS or RANGE out",
        )
    for key in ("start", "end"):
        bound = spec.args.get(key)
        if isinstance(bound, exp.Expr):
            _check_bound(typer, node, spec, bound)


def _check_bound(
    typer: ExpressionTyper, node: exp.Window, spec: exp.WindowSpec, bound: exp.Expr
) -> None:
    if spec.args["kind"] == "ROWS":
        if not _is_whole(bound):
            typer.refuse(
                bound,
                "ROWS counts rows: a whole number is needed here",
                code="E_QUERY",
                hint="RANGE reaches as far as a number or a length of time says",
            )
        return
    order = _order(node)
    if len(order) != 1:
        typer.refuse(
            spec,
            "RANGE with a distance needs one ORDER BY in OVER",
            code="E_QUERY",
            hint="write OVER (ORDER BY ts RANGE 10s PRECEDING)",
        )
    kind = typer.type_of(order[0].this)
    duration = isinstance(bound, nodes.DurationLiteral)
    if duration != (kind == TIMESTAMP) or not (duration or kind.numeric):
        wanted = "a length of time such as 10s" if kind == TIMESTAMP else "a number"
        able = kind == TIMESTAMP or kind.numeric
        typer.refuse(
            bound,
            f"RANGE over {kind} needs {wanted} here" if able else f"RANGE cannot measure {kind}",
            code="E_TYPE",
            hint="ROWS counts rows of any kind",
        )

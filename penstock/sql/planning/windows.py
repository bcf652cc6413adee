"""The window clause: limits, units, and what each kind asks of its source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.dialect import to_sql
from penstock.sql.plan import Count, Duration, Event, Interval, Session, State, Window
from penstock.sql.planning.context import PlanningContext
from penstock.sql.planning.refusals import refuse
from penstock.sql.relational.stream_names import type_of

#: a row may be in so many INTERVAL windows at most
MOST_WINDOWS_PER_ROW = 10_000
MIN_INTERVAL_NANOS = 10_000_000
_MAX_COUNT = 2**31 - 1


def plan_window(node: nodes.WindowClause, context: PlanningContext) -> Window:
    """The window of *node*, which is bound to the source."""
    planners: dict[type[nodes.WindowClause], Callable[[Any, PlanningContext], Window]] = {
        nodes.IntervalWindow: _interval,
        nodes.SessionWindow: _session,
        nodes.StateWindow: _state,
        nodes.EventWindow: _event,
        nodes.CountWindow: _count,
    }
    return planners[type(node)](node, context)


def check_length(
    context: PlanningContext, given: Duration, clause: str, at: int | exp.Expr | None
) -> Duration:
    """Return *given*; refuse what is no fixed length of whole ticks."""
    if given.natural:
        refuse(
            context.statement,
            "E_DURATION",
            at,
            clause=clause,
            given=given,
            hint="months and years have no fixed length; write days",
        )
    _whole_ticks(context, given, clause, at)
    return given


def _whole_ticks(
    context: PlanningContext, given: Duration, clause: str, at: int | exp.Expr | None
) -> None:
    source = context.source
    if Duration(given.ticks(source.precision), _TICK[source.precision]).ticks("ns") != given.ticks(
        "ns"
    ):
        refuse(
            context.statement,
            "E_INTERVAL_PRECISION",
            at,
            clause=clause,
            given=given,
            precision=source.precision,
            database=source.database,
        )


_TICK: dict[str, Any] = {"ms": "a", "us": "u", "ns": "b"}


def _months(given: Duration) -> int:
    return given.value * (12 if given.unit == "y" else 1)


def _longer(a: Duration, b: Duration) -> int:
    """Sign of a - b; months compare as months where both are natural."""
    x, y = (_months(a), _months(b)) if a.natural and b.natural else (a.ticks("ns"), b.ticks("ns"))
    return (x > y) - (x < y)


def _interval(node: nodes.IntervalWindow, context: PlanningContext) -> Window:
    statement = context.statement
    size: Duration = node.args["size"].duration
    if size.ticks("ns") < MIN_INTERVAL_NANOS:
        refuse(statement, "E_INTERVAL_TOO_SMALL", node.args["size"], size=size)
    _whole_ticks(context, size, "INTERVAL", node.args["size"])
    offset = _offset(node, context, size)
    sliding_node = node.args.get("sliding")
    if sliding_node is None:
        return Interval(size, size, offset)
    sliding: Duration = sliding_node.duration
    if sliding.value <= 0:
        refuse(
            statement,
            "E_SLIDING_TOO_SMALL",
            sliding_node,
            sliding=sliding,
            size=size,
            most=MOST_WINDOWS_PER_ROW,
        )
    if _longer(sliding, size) > 0:
        refuse(statement, "E_SLIDING_GT_INTERVAL", sliding_node, sliding=sliding, size=size)
    if sliding.natural and not size.natural:
        refuse(statement, "E_SLIDING_UNIT", sliding_node, sliding=sliding, size=size)
    _whole_ticks(context, sliding, "SLIDING", sliding_node)
    if size.ticks("ns") > MOST_WINDOWS_PER_ROW * sliding.ticks("ns"):
        refuse(
            statement,
            "E_SLIDING_TOO_SMALL",
            sliding_node,
            sliding=sliding,
            size=size,
            most=MOST_WINDOWS_PER_ROW,
        )
    return Interval(size, sliding, offset)


def _offset(
    node: nodes.IntervalWindow, context: PlanningContext, size: Duration
) -> Duration | None:
    offset_node = node.args.get("offset")
    if offset_node is None:
        return None
    if not isinstance(offset_node, nodes.DurationLiteral):
        refuse(context.statement, "E_OFFSET_AUTO", node, size=size)
    offset = offset_node.duration
    if offset.natural:
        # The grid of months and years moves by elapsed time only.
        refuse(context.statement, "E_OFFSET_UNIT", offset_node, offset=offset, size=size)
    if _longer(offset, size) >= 0:
        refuse(context.statement, "E_OFFSET_GE_INTERVAL", offset_node, offset=offset, size=size)
    _whole_ticks(context, offset, "INTERVAL", offset_node)
    return offset if offset.value else None


def _session(node: nodes.SessionWindow, context: PlanningContext) -> Window:
    time = context.source.columns[0].name
    tol = node.args["tol"]
    bound = node.args["ts"]
    if not isinstance(bound, exp.Column) or bound.name != time:
        refuse(context.statement, "E_SESSION_COLUMN", bound, name=time, tol=tol.duration)
    if tol.duration.natural or tol.duration.value <= 0:
        refuse(context.statement, "E_SESSION_GAP", tol, tol=tol.duration)
    return Session(check_length(context, tol.duration, "SESSION", tol))


def _true_for(node: nodes.WindowClause, context: PlanningContext) -> Duration | None:
    given = node.args.get("true_for")
    if given is None or not given.duration.value:
        return None
    return check_length(context, given.duration, "TRUE_FOR", given)


def _state(node: nodes.StateWindow, context: PlanningContext) -> Window:
    bound = node.args["expr"]
    kind = type_of(bound)
    if isinstance(bound, exp.Column):
        tags = {t.name for t in context.source.tags} | {"tbname"}
        if bound.name in tags:
            what = "a name" if bound.name == "tbname" else "a tag"
            refuse(
                context.statement, "E_STATE_COLUMN", node.args["expr"], name=bound.name, what=what
            )
    if not (kind.integer or kind.kind in ("BOOL", "VARCHAR", "NCHAR")):
        refuse(context.statement, "E_STATE_TYPE", node.args["expr"], type=kind)
    return State(to_sql(bound), kind, _true_for(node, context))


def _event(node: nodes.EventWindow, context: PlanningContext) -> Window:
    start, end = (_condition(node.args[key], key, context) for key in ("start", "end"))
    return Event(to_sql(start), to_sql(end), _read(start), _read(end), _true_for(node, context))


def _condition(node: exp.Expr, which: str, context: PlanningContext) -> exp.Expr:
    kind = type_of(node)
    if kind.kind != "BOOL" and not kind.numeric:
        refuse(
            context.statement,
            "E_EVENT_CONDITION",
            node,
            what=f"the {which} condition is {kind}, not a condition",
        )
    return node


def _read(bound: exp.Expr) -> tuple[str, ...]:
    """Columns that a condition reads, each once, in order."""
    return tuple(dict.fromkeys(c.name for c in bound.find_all(exp.Column, bfs=False)))


def _whole(node: exp.Expr) -> int:
    return -int(node.this.name) if isinstance(node, exp.Neg) else int(node.name)


def _count(node: nodes.CountWindow, context: PlanningContext) -> Window:
    size_node = node.args["size"]
    sliding_node = node.args.get("sliding")
    size = _whole(size_node)
    if not 2 <= size <= _MAX_COUNT:
        refuse(context.statement, "E_COUNT_SIZE", size_node, size=size)
    sliding = size if sliding_node is None else _whole(sliding_node)
    if not 1 <= sliding <= size:
        refuse(context.statement, "E_COUNT_SLIDING", sliding_node, size=size, sliding=sliding)
    return Count(size, sliding)

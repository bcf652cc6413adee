"""CREATE STREAM to a `StreamPlan`: names bound, types derived, defaults applied, everything
impossible refused with a reason.

The only maker of plans. Reads the catalog through `SchemaView`, writes nothing: a target table that
does not exist yet is handed back as a definition. The order of steps decides which refusal a
statement with several faults gets.
"""

from __future__ import annotations

import zoneinfo
from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp

from penstock.names import MAX_NAME_BYTES
from penstock.sql import nodes
from penstock.sql.dialect import to_sql
from penstock.sql.functions import AGGREGATES
from penstock.sql.functions.base import TIMESTAMP
from penstock.sql.functions.zones import zone
from penstock.sql.plan import Notify, Output, Source, StreamPlan, Target, Window
from penstock.sql.planning.context import PlanningContext
from penstock.sql.planning.explain import explain
from penstock.sql.planning.forbidden import check_functions
from penstock.sql.planning.notify import check_without_result, plan_notify
from penstock.sql.planning.notify_condition import plan_condition
from penstock.sql.planning.options import plan_options
from penstock.sql.planning.query import check_shape, find_source
from penstock.sql.planning.refusals import REFUSALS, Refusal, refuse
from penstock.sql.planning.select import (
    PartitionKeys,
    SelectList,
    WindowSelect,
    fill_mode,
    plan_fill,
    plan_keys,
    select_rows,
)
from penstock.sql.planning.target import TargetRequest, check_name, plan_target
from penstock.sql.planning.view import SchemaView, TableDef
from penstock.sql.planning.windows import plan_window
from penstock.sql.relational import SelectPlan, StreamSelect
from penstock.sql.statements import CreateStream

__all__ = [
    "REFUSALS",
    "PlannedStream",
    "Refusal",
    "SchemaView",
    "TableDef",
    "explain",
    "plan_stream",
]


@dataclass(frozen=True)
class PlannedStream:
    """A plan, and the bound SELECT that it is made of. `new_target` is the result table to create
    first, unless it exists; `notices` are for the user.
    """

    plan: StreamPlan
    query: StreamSelect
    new_target: TableDef | None
    notices: tuple[str, ...] = ()


def plan_stream(
    statement: CreateStream,
    view: SchemaView,
    *,
    database: str | None,
    stream_id: int,
    target_id: int,
    timezone: str = "UTC",
) -> PlannedStream:
    """Plan *statement*. *database* is the current one, for names without; *target_id* is the id of
    a table that is created.
    """
    try:
        return _plan(statement, view, database, stream_id, target_id, timezone)
    except RecursionError:
        raise statement.error(
            "an expression is nested too deeply",
            code="E_UNSUPPORTED_QUERY",
            hint="nest it less, or compute a part of it first",
        ) from None


def _plan(
    statement: CreateStream,
    view: SchemaView,
    database: str | None,
    stream_id: int,
    target_id: int,
    timezone: str,
) -> PlannedStream:
    check_name(statement, statement.stream, "CREATE STREAM", MAX_NAME_BYTES)
    timezone = _check_zone(statement, timezone)
    select = check_shape(statement)
    source, names = find_source(statement, view, select, database)
    _check_database(statement, source)
    check_functions(statement, select)
    context = PlanningContext(statement, source, names, timezone, view.function)
    query = context.bind(select)
    keys = plan_keys(context, query)
    if statement.target is None:
        check_without_result(statement, query)
    window = plan_window(query.window, context) if query.window is not None else None
    selection = _select(context, keys, window, query)
    options = plan_options(
        context, window, keys.by_table, fill_mode(query), _has_sliding(query.window)
    )
    if window is None:
        _check_first(context, selection)
    fill = plan_fill(context, query, selection)
    home = _target_database(statement, view, database or source.database, source)
    request = TargetRequest(statement, context, view, home, keys, selection, window is not None)
    planned = plan_target(request, target_id)
    plan = StreamPlan(
        stream_id=stream_id,
        database=source.database,
        name=statement.stream.name,
        sql=statement.text,
        source=_plan_source(source),
        path=_path(source, keys),
        where=to_sql(query.select.where) if query.select.where is not None else None,
        keys=keys.items,
        window=window,
        trigger=options.trigger,
        aggregates=tuple(selection.aggregates),
        outputs=planned.outputs,
        target=planned.target,
        watermark=options.watermark,
        ignore_expired=options.ignore_expired,
        ignore_update=options.ignore_update,
        delete_mark=options.delete_mark,
        idle_timeout=options.idle_timeout,
        fill_history=options.fill_history,
        fill_history_async=options.fill_history_async,
        fill=fill,
        notify=_plan_notify(context, window is not None, planned.target, keys),
        timezone=timezone,
        functions=tuple(context.used[n] for n in sorted(context.used)),
        on_error="stop" if statement.options.on_error == "stop" else "dead_letter",
        max_results=statement.options.max_results or 0,
        max_state=statement.options.max_state or 0,
    )
    return PlannedStream(plan, query, planned.definition, statement.notices)


def _plan_notify(
    context: PlanningContext, windowed: bool, target: Target, keys: PartitionKeys
) -> Notify | None:
    """Plan NOTIFY, whose condition is over the columns of the result."""
    statement = context.statement
    planned = plan_notify(statement, windowed)
    if planned is None or statement.notify is None:
        return None
    where = plan_condition(statement, statement.notify, target, keys.items, context.timezone)
    return replace(planned, where=where)


def _check_database(statement: CreateStream, source: TableDef) -> None:
    """Refuse a stream in another database than its source."""
    database = statement.stream.database
    if database is not None and database.lower() != source.database.lower():
        refuse(
            statement,
            "E_STREAM_DATABASE",
            statement.stream,
            database=source.database,
            name=statement.stream.name,
        )


def _select(
    context: PlanningContext, keys: PartitionKeys, window: Window | None, query: StreamSelect
) -> SelectList:
    if window is None:
        _check_rows(context, keys, query.select)
        return select_rows(context, query)
    selection = WindowSelect(context, keys, window).run(query)
    _add_start(selection)
    return selection


def _has_sliding(window: nodes.WindowClause | None) -> bool:
    return isinstance(window, nodes.IntervalWindow) and window.args.get("sliding") is not None


def _target_database(
    statement: CreateStream, view: SchemaView, current: str, source: TableDef
) -> str:
    """Return the database of the result table; without one, that of the stream."""
    target = statement.target
    if target is None:
        return source.database
    database = target.database or current
    if view.precision(database) is None:
        refuse(statement, "E_DATABASE_NOT_EXIST", target, clause="INTO", database=database)
    return database


def _plan_source(table: TableDef) -> Source:
    return Source(
        table.id,
        table.database,
        table.name,
        table.kind,
        table.columns,
        table.tags,
        table.precision,
        child=table.child,
        key_column=table.key_column,
        result_of=table.result_of,
        members=table.members,
    )


def _check_zone(statement: CreateStream, timezone: str) -> str:
    """Return the IANA name of the stream's time zone, which cuts its days and months for ever."""
    name = zone(timezone)
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        refuse(statement, "E_TIMEZONE", timezone=timezone)
    return name


def _path(source: TableDef, keys: PartitionKeys) -> Literal["scan", "exchange"]:
    """Return scan when all rows of a group are in one source partition, where it is finished."""
    if source.kind == "virtual":
        return "exchange"
    return "scan" if source.kind in ("child", "plain") or keys.by_table else "exchange"


def _check_rows(context: PlanningContext, keys: PartitionKeys, select: SelectPlan) -> None:
    """Check a stream without window, which keeps rows as they are: at once, and the rows of each
    table in a table of their own.
    """
    trigger = context.statement.options.trigger
    aggregates = any(
        str(call.this).lower() in AGGREGATES
        for item in select.items
        for call in item.expression.find_all(exp.Anonymous)
    )
    if context.source.many and not keys.by_table and not aggregates:
        context.refuse_query(
            context.statement.query,
            f"rows of {context.source.shown} would go into one result table, where equal times"
            " overwrite each other",
            "add PARTITION BY tbname, or a window such as INTERVAL(10s)",
        )
    if trigger is None or trigger.kind != "at_once":
        refuse(context.statement, "E_NONWINDOW_TRIGGER", context.statement.positions.get("trigger"))


def _check_first(context: PlanningContext, selection: SelectList) -> None:
    first = selection.outputs[0]
    if first.type.kind != "TIMESTAMP":
        context.refuse_query(
            selection.nodes[0],
            f"the first column must be a time, {first.name} is {first.type}",
            f"begin the list with {context.source.columns[0].name}",
        )
    key = context.source.key_column
    if key and (len(selection.outputs) < 2 or selection.outputs[1].sql != to_sql(exp.column(key))):
        context.refuse_query(
            selection.nodes[min(1, len(selection.nodes) - 1)],
            f"{context.source.shown} has the composite key {key}, which must be the second column",
            f"begin the list with {context.source.columns[0].name}, {key}",
        )


def _add_start(selection: SelectList) -> None:
    """Put the window's start before a list that does not begin with it: called _wstart, or ts if
    that is taken, or else numbered.
    """
    first = selection.outputs[0]
    if first.sql == "_wstart":
        return
    taken = {o.name.lower() for o in selection.outputs}
    names = ("_wstart", "ts", *(f"ts{i}" for i in range(1, len(taken) + 2)))
    name = next(n for n in names if n not in taken)
    start = exp.column("_wstart")
    selection.outputs.insert(0, Output(name, to_sql(start), TIMESTAMP))
    selection.filled.insert(0, False)
    selection.nodes.insert(0, selection.nodes[0])

"""Trigger and options: defaults, and which go with which window and source."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.sql.plan import Count, Duration, Event, Interval, State, Trigger, Window
from penstock.sql.planning.context import PlanningContext
from penstock.sql.planning.refusals import refuse
from penstock.sql.planning.windows import check_length
from penstock.sql.statements import CreateStream

DEFAULT_RECALCULATE = Duration(60, "m")
_MIN_DELAY = Duration(5, "s")
_MIN_RECALCULATE = Duration(10, "m")
_TRIGGERS = {
    "at_once": "AT_ONCE",
    "window_close": "WINDOW_CLOSE",
    "max_delay": "MAX_DELAY",
    "force_window_close": "FORCE_WINDOW_CLOSE",
    "continuous_window_close": "CONTINUOUS_WINDOW_CLOSE",
}


@dataclass(frozen=True)
class PlannedOptions:
    """Every option with its default applied."""

    trigger: Trigger
    watermark: Duration
    ignore_expired: bool
    ignore_update: bool
    delete_mark: Duration | None
    idle_timeout: Duration | None
    fill_history: bool
    fill_history_async: bool


def _at(statement: CreateStream, key: str) -> int | None:
    return statement.positions.get(key)


def plan_options(
    context: PlanningContext,
    window: Window | None,
    by_table: bool,
    fill_mode: str | None,
    sliding_given: bool,
) -> PlannedOptions:
    """Apply defaults to the options of the statement and check that they fit together.

    Args:
        by_table: tbname is among the PARTITION BY keys.
        fill_mode: mode of FILL, if there is one.
        sliding_given: SLIDING is written in the statement.
    """
    statement = context.statement
    given = statement.options
    trigger = given.trigger or Trigger("window_close")
    ignore_expired = given.ignore_expired is not False
    ignore_update = given.ignore_update is not False
    watermark = _watermark(context)
    if context.source.kind == "virtual":
        _check_virtual(statement, window, trigger, watermark)
    if not isinstance(window, Interval):
        _refuse_interval_trigger(statement, trigger)
    _check_timeline(context, window, by_table)
    if isinstance(window, Count):
        _check_count(statement, watermark, ignore_expired)
    if trigger.kind == "force_window_close" and isinstance(window, Interval):
        _check_force(context, window, by_table, fill_mode, sliding_given)
    if trigger.kind == "max_delay":
        trigger = _max_delay(context, trigger)
    if trigger.kind == "continuous_window_close":
        trigger = _continuous(context, trigger)
        # Late rows and updates are what its recalculation is for, so 1 is not taken at its word.
        ignore_expired = False
        ignore_update = False
    return PlannedOptions(
        trigger,
        watermark,
        ignore_expired,
        ignore_update,
        _delete_mark(context, window, watermark),
        _positive(context, given.idle_timeout, "IDLE_TIMEOUT"),
        bool(given.fill_history),
        bool(given.fill_history) and given.fill_history_async,
    )


def _watermark(context: PlanningContext) -> Duration:
    given = context.statement.options.watermark
    if given is None or not given.value:
        return Duration(0, "a")
    return check_length(context, given, "WATERMARK", _at(context.statement, "watermark"))


def _refuse_interval_trigger(statement: CreateStream, trigger: Trigger) -> None:
    """Refuse a trigger that only INTERVAL windows have."""
    if trigger.kind == "force_window_close":
        refuse(statement, "E_FWC_WINDOW", _at(statement, "trigger"))
    if trigger.kind == "continuous_window_close":
        refuse(statement, "E_CWC_WINDOW", _at(statement, "trigger"))


def _check_count(statement: CreateStream, watermark: Duration, ignore_expired: bool) -> None:
    if not watermark.value:
        refuse(statement, "E_COUNT_WATERMARK", _at(statement, "watermark"))
    if not ignore_expired:
        refuse(statement, "E_COUNT_IGNORE_EXPIRED", _at(statement, "ignore_expired"))


def _positive(context: PlanningContext, given: Duration | None, clause: str) -> Duration | None:
    if given is None:
        return None
    at = _at(context.statement, clause.lower())
    if given.value <= 0:
        refuse(
            context.statement,
            "E_DURATION",
            at,
            clause=clause,
            given=given,
            hint="write a time above 0",
        )
    return check_length(context, given, clause, at)


def _delete_mark(
    context: PlanningContext, window: Window | None, watermark: Duration
) -> Duration | None:
    """DELETE_MARK, but never shorter than the watermark or the window itself."""
    given = context.statement.options.delete_mark
    if given is None:
        return None
    if given.natural:
        given = Duration(given.ticks("ms") // 1000, "s")
    mark = _positive(context, given, "DELETE_MARK")
    lengths = [
        d
        for d in (mark, watermark, window.size if isinstance(window, Interval) else None)
        if d is not None
    ]
    return max(lengths, key=lambda d: d.ticks("ns"))


def _check_virtual(
    statement: CreateStream, window: Window | None, trigger: Trigger, watermark: Duration
) -> None:
    given = statement.options
    if trigger.kind not in ("at_once", "window_close"):
        refuse(
            statement,
            "E_VTABLE_TRIGGER",
            _at(statement, "trigger"),
            trigger=_TRIGGERS[trigger.kind],
        )
    if isinstance(window, Count):
        refuse(statement, "E_VTABLE_COUNT_WINDOW", statement.query.args.get("window"))
    if watermark.value:
        refuse(statement, "E_VTABLE_WATERMARK", _at(statement, "watermark"))
    if given.ignore_update is False:
        refuse(statement, "E_VTABLE_DISORDER", _at(statement, "ignore_update"), option="UPDATE")
    if given.ignore_expired is False:
        refuse(statement, "E_VTABLE_DISORDER", _at(statement, "ignore_expired"), option="EXPIRED")
    if given.fill_history:
        refuse(statement, "E_VTABLE_FILL_HISTORY", _at(statement, "fill_history"))


def _check_timeline(context: PlanningContext, window: Window | None, by_table: bool) -> None:
    """State, event and count windows need rows in one order."""
    if not isinstance(window, State | Event | Count):
        return
    statement = context.statement
    node = context.statement.query.args["window"]
    name = {"state": "STATE", "event": "EVENT", "count": "COUNT"}[window.kind]
    if context.source.many and not by_table:
        refuse(statement, f"E_{name}_NEEDS_TBNAME", node)
    if context.source.key_column:
        refuse(
            statement,
            "E_WINDOW_ON_COMPOSITE_KEY",
            node,
            window=f"{name}_WINDOW",
            table=context.source.shown,
        )


def _check_force(
    context: PlanningContext,
    window: Interval,
    by_table: bool,
    fill_mode: str | None,
    sliding_given: bool,
) -> None:
    statement = context.statement
    given = context.statement.options
    if sliding_given and window.sliding != window.size:
        refuse(statement, "E_FWC_SLIDING", statement.query.args["window"].args["sliding"])
    if given.fill_history:
        refuse(statement, "E_FWC_FILL_HISTORY", _at(statement, "fill_history"))
    if given.ignore_expired is False:
        refuse(statement, "E_FWC_IGNORE_EXPIRED", _at(statement, "ignore_expired"))
    if given.ignore_update is False:
        refuse(statement, "E_FWC_IGNORE_UPDATE", _at(statement, "ignore_update"))
    if context.source.many and not by_table:
        refuse(statement, "E_FWC_NEEDS_TBNAME", _at(statement, "trigger"))
    if fill_mode in ("next", "linear"):
        refuse(statement, "E_FWC_FILL_MODE", statement.query.args["fill"], mode=fill_mode.upper())


def _max_delay(context: PlanningContext, trigger: Trigger) -> Trigger:
    at = _at(context.statement, "trigger")
    assert trigger.every is not None  # the grammar asks for it
    if trigger.every.ticks("ns") < _MIN_DELAY.ticks("ns"):
        refuse(context.statement, "E_MAX_DELAY_MIN", at, given=trigger.every)
    return Trigger("max_delay", check_length(context, trigger.every, "MAX_DELAY", at))


def _continuous(context: PlanningContext, trigger: Trigger) -> Trigger:
    at = _at(context.statement, "trigger")
    every = trigger.every or DEFAULT_RECALCULATE
    if every.ticks("ns") < _MIN_RECALCULATE.ticks("ns"):
        refuse(context.statement, "E_CWC_RECALC_MIN", at, given=every)
    return Trigger("continuous_window_close", check_length(context, every, "RECALCULATE", at))

"""EXPLAIN CREATE STREAM: the plan in words, with a warning wherever it will do something else than
people expect.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.plan import Count, Event, Interval, Session, State, StreamPlan

_TRIGGERS = {
    "at_once": "after every write, each window it touched",
    "window_close": "when a window closes, and again when a late row, update or delete corrects it",
    "max_delay": "when a window closes, and every {every} the open windows that changed",
    "force_window_close": "once, when the clock passes the window's end plus the watermark",
    "continuous_window_close": "when a window closes; corrections every {every}",
}
#: aggregates whose state does not stay a few numbers
_SKETCHES = {
    "apercentile": "a digest of some hundred numbers",
    "hyperloglog": "16384 registers at most",
}


def explain(plan: StreamPlan) -> list[str]:
    """Lines for people; those that begin with `warning:` tell what may surprise."""
    lines = [
        f"stream   {plan.name} of database {plan.database}",
        f"source   {_source(plan)}",
        f"filter   {plan.where or 'all rows'}",
        f"groups   {', '.join(k.sql for k in plan.keys) or 'one group of all rows'}",
        f"path     {_path(plan)}",
        f"window   {_window(plan)}",
        f"publish  {_publication(plan)}",
        f"late     {_late(plan)}",
        f"state    {_state(plan)}",
        f"result   {_result(plan)}",
        *_tags_and_children(plan),
    ]
    return lines + [f"warning: {w}" for w in warnings(plan)]


def _source(plan: StreamPlan) -> str:
    kinds = {
        "stable": "supertable",
        "child": "child table",
        "plain": "table",
        "virtual": "virtual table",
    }
    name = f"{plan.source.database}.{plan.source.child or plan.source.table}"
    result = (
        ", the result of another stream: repeats replace"
        if plan.source.result_of is not None
        else ""
    )
    return f"{kinds[plan.source.kind]} {name}, times in {plan.source.precision}{result}"


def _path(plan: StreamPlan) -> str:
    if plan.path == "scan":
        return "scan: every group lies in one partition of the source topic and is finished there"
    return (
        "scan, then exchange: rows of a group lie in several partitions, so partial results travel"
        " once more to be joined"
    )


def _window(plan: StreamPlan) -> str:
    window = plan.window
    match window:
        case None:
            return "none"
        case Interval():
            return _intervals(window, plan.timezone)
        case Session():
            return f"sessions: rows no more than {window.tolerance} apart"
        case State():
            return f"runs of equal {window.sql}" + (
                f" that last {window.true_for}" if window.true_for else ""
            )
        case Event():
            return f"from a row with {window.start_sql} to one with {window.end_sql}"
        case Count():
            return f"{window.size} rows each" + (
                f", a new one every {window.sliding} rows" if window.sliding != window.size else ""
            )


def _intervals(window: Interval, timezone: str) -> str:
    text = f"intervals of {window.size}"
    if window.sliding != window.size:
        text += f", sliding by {window.sliding}"
    if window.offset:
        text += f", starting {window.offset} off the grid"
    if window.size.unit in "dwny" or window.sliding.unit in "dwny":
        text += f", cut in time zone {timezone}"
    return text


def _late(plan: StreamPlan) -> str:
    wait = f"windows wait {plan.watermark} for late rows; " if plan.watermark.value else ""
    expired = (
        "rows later than that are dropped and counted"
        if plan.ignore_expired
        else "rows later than that are still added"
    )
    update = (
        "a repeated time is one more row"
        if plan.ignore_update
        else "a repeated time replaces the row"
    )
    return f"{wait}{expired}; {update}"


def _state(plan: StreamPlan) -> str:
    if plan.window is None:
        return "none"
    if isinstance(plan.window, Interval):
        sketches = [
            f"{a.function}: {_SKETCHES[a.function]}"
            for a in plan.aggregates
            if a.function in _SKETCHES
        ]
        kept = "a few numbers per open window and group" + (
            f" ({'; '.join(sketches)})" if sketches else ""
        )
    else:
        kept = "the rows of open windows"
    mark = f"; dropped {plan.delete_mark} behind the latest row" if plan.delete_mark else ""
    reread = (
        ""
        if plan.ignore_expired and plan.ignore_update
        else "; corrections read the rows again from storage"
    )
    return kept + mark + reread


def _tags_and_children(plan: StreamPlan) -> list[str]:
    if not plan.target.stored:
        return []
    tags = ", ".join(f"{t.name} {t.type}" for t in plan.target.tags)
    return [f"tags     {tags}", f"children {_child_tables(plan)}"]


def _child_tables(plan: StreamPlan) -> str:
    if plan.target.subtable_sql is None:
        return "one per group, named t_ and a hash" if plan.keys else "one, named t_ and a hash"
    return (
        f"one per group, named {plan.target.subtable_sql} and a suffix that makes it unique"
        if plan.keys
        else plan.target.subtable_sql
    )


def warnings(plan: StreamPlan) -> list[str]:
    """Return surprises of the plan, one sentence each."""
    warn = [
        *_closing_warnings(plan),
        *_repeat_warnings(plan),
        *_window_warnings(plan),
        *_trigger_warnings(plan),
    ]
    return warn + [
        f"{a.function}() is approximate" for a in plan.aggregates if a.function in _SKETCHES
    ]


def _closing_warnings(plan: StreamPlan) -> Iterator[str]:
    if plan.trigger.kind != "window_close":
        return
    if plan.idle_timeout is None:
        early = "MAX_DELAY or AT_ONCE" if plan.target.stored else "AT_ONCE"
        yield (
            "the open window is not shown, and the last one closes only when a later row comes; "
            f"add IDLE_TIMEOUT, use {early}, or read it with SELECT … OPEN WINDOWS"
        )
    if not plan.watermark.value and plan.ignore_expired:
        yield (
            "without WATERMARK a row that comes after one of a later window is dropped; add"
            " WATERMARK or IGNORE EXPIRED 0"
        )


def _repeat_warnings(plan: StreamPlan) -> Iterator[str]:
    if plan.window is None or plan.trigger.kind == "force_window_close":
        return
    if plan.ignore_update and plan.source.result_of is None:
        yield (
            "IGNORE UPDATE is 1: a row that is written again counts twice; with IGNORE UPDATE 0 it"
            " replaces"
        )


def _window_warnings(plan: StreamPlan) -> Iterator[str]:
    window = plan.window
    if isinstance(window, Event):
        yield "an event window is published only once its end row is there, whatever the trigger"
    if isinstance(window, Session | State | Event | Count) and plan.path == "exchange":
        yield (
            "rows of such windows travel to the exchange one by one; PARTITION BY tbname keeps them"
            " where they are"
        )
    if isinstance(window, Interval):
        factor = window.size.ticks("ns") // window.sliding.ticks("ns")
        if factor >= 100:
            yield f"every row counts in {factor} windows; a longer SLIDING costs less"


def _trigger_warnings(plan: StreamPlan) -> Iterator[str]:
    if plan.fill_history and plan.trigger.kind == "window_close":
        yield "history is published at once, its newest window too, which is not closed yet"
    if plan.trigger.kind == "continuous_window_close" and plan.window is not None:
        yield f"late rows, updates and deletes show in the results only every {plan.trigger.every}"
    if plan.trigger.kind == "force_window_close":
        yield "rows that come after their window was published are never counted"


def _publication(plan: StreamPlan) -> str:
    if not plan.window:
        return "every row, as it comes"
    return _TRIGGERS[plan.trigger.kind].format(every=plan.trigger.every)


def _result(plan: StreamPlan) -> str:
    columns = ", ".join(f"{c.name} {c.type}" for c in plan.target.columns)
    if not plan.target.stored:
        return f"({columns}) in the events of NOTIFY, in no table"
    return f"{plan.target.database}.{plan.target.table}({columns})"

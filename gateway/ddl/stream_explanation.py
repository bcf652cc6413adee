"""EXPLAIN CREATE STREAM: the plan, what becomes of a replaced stream, and what surprises."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from gateway.answers import table_of
from gateway.ddl import replacing
from gateway.ddl.replacing import Replacement
from gateway.ddl.stream_planning import StreamPreview
from penstock.catalog.model import External
from penstock.sql.plan import StreamPlan
from penstock.sql.planner import PlannedStream
from penstock.sql.statements import CreateStream
from penstock.types import ColumnType

_COLUMNS = (("item", ColumnType("VARCHAR", 64)), ("value", ColumnType("VARCHAR", 65_535)))
_ON_ERROR = {"dead_letter": "DROP", "stop": "STOP"}
Line = tuple[str, str]


def explain(
    statement: CreateStream, preview: StreamPreview, replacement: Replacement | None
) -> pa.Table:
    """Return what *statement* would do."""
    planned = preview.planned
    name = f"{planned.plan.database}.{planned.plan.name}"
    lines = [("stream", name)]
    if replacement is not None:
        lines += _tell_replacement(replacement, planned)
    elif statement.or_replace:
        lines.append(("replaces", f"nothing: there is no stream {name}"))
    kept = replacement is not None and (replacement.goes_on or replacement.kept is not None)
    lines += _rows(planned, preview.mirrored, made=planned.new_target is not None and not kept)
    notices = (*planned.notices, *_surprises(planned))
    return table_of(_COLUMNS, [*lines, *(("notice", notice) for notice in notices)])


def _tell_replacement(replacement: Replacement, planned: PlannedStream) -> list[Line]:
    """Return what becomes of the stream that is replaced, and of what it holds."""
    old = replacement.old
    named = ("replaces", f"{old.database}.{old.name}")
    if replacement.goes_on:
        options = ", ".join(_option_changes(old.plan, planned.plan))
        return [
            named,
            ("state", "kept: it goes on with its open windows"),
            ("options", options or "as they are"),
            ("history", "not computed again"),
            ("results", f"go on in {_place(old.plan)}"),
        ]
    source = planned.plan.source
    lost = "none is left: the stream has failed" if replacement.failed else "open windows are lost"
    held = f"{source.database}.{source.child or source.table}"
    return [
        named,
        ("state", lost),
        ("history", f"computed anew from the rows that {held} holds"),
        ("results", _results(replacement, planned.plan)),
    ]


def _option_changes(old: StreamPlan, new: StreamPlan) -> Iterator[str]:
    """Yield each option that a stream which goes on gets, with what it was."""
    given = _options(replacing.with_new_options(old, new))
    for name, before in _options(old).items():
        if given[name] != before:
            yield f"{name} {given[name]} (was {before})"


def _options(plan: StreamPlan) -> dict[str, str]:
    return {
        "IDLE_TIMEOUT": str(plan.idle_timeout or "none"),
        "DELETE_MARK": str(plan.delete_mark or "none"),
        "ON_ERROR": _ON_ERROR[plan.on_error],
        "MAX_RESULTS": str(plan.max_results),
        "MAX_STATE": str(plan.max_state),
    }


def _results(replacement: Replacement, plan: StreamPlan) -> str:
    """Return what becomes of the results that are there, and where new ones go."""
    old = replacement.old.plan
    before, after = _place(old), _place(plan)
    same = replacement.kept is not None or old.target.table_id == plan.target.table_id
    if old.target.stored and plan.target.stored and same:
        return f"{before} is kept with its rows; new ones replace those of the same time and group"
    return f"go to {after}" + (f"; {before} and its rows stay" if old.target.stored else "")


def _place(plan: StreamPlan) -> str:
    """Return the result table of a plan, or what is in its place."""
    target = plan.target
    return f"{target.database}.{target.table}" if target.stored else "the events of NOTIFY"


def _rows(planned: PlannedStream, mirrored: External | None, *, made: bool) -> list[Line]:
    """Return the plan. *made*: its result table is new."""
    plan = planned.plan
    target = plan.target
    return [
        ("source", _source(plan, mirrored)),
        ("path", _path(plan)),
        ("window", "none" if plan.window is None else plan.window.kind),
        ("trigger", _trigger(plan)),
        ("watermark", str(plan.watermark)),
        ("where", plan.where or ""),
        ("keys", ", ".join(k.sql for k in plan.keys)),
        ("aggregates", ", ".join(f"{a.function}({a.sql or '*'})" for a in plan.aggregates)),
        ("target", _target(plan) + (" (new)" if made else "")),
        ("columns", ", ".join(f"{c.name} {c.type}" for c in target.columns)),
        ("tags", ", ".join(f"{c.name} {c.type}" for c in target.tags) if target.stored else ""),
    ]


def _source(plan: StreamPlan, mirrored: External | None) -> str:
    source = plan.source
    text = f"{source.database}.{source.child or source.table} ({source.kind})"
    if mirrored is None:
        return text
    return f"{text}, a mirror of external stream {mirrored.database}.{mirrored.name}"


def _target(plan: StreamPlan) -> str:
    if not plan.target.stored:
        return "none: results are in the events of NOTIFY only"
    return _place(plan)


def _path(plan: StreamPlan) -> str:
    if plan.path == "scan":
        return f"{plan.path}: finished in the scan of its source partition"
    return f"{plan.path}: groups cross partitions"


def _trigger(plan: StreamPlan) -> str:
    kind = plan.trigger.kind.upper()
    return f"{kind} {plan.trigger.every}" if plan.trigger.every else kind


def _surprises(planned: PlannedStream) -> list[str]:
    """Return what people ask about afterwards."""
    plan = planned.plan
    found = []
    if plan.window is not None and plan.trigger.kind == "window_close":
        found.append(
            "TRIGGER WINDOW_CLOSE shows a window only when later rows have closed it; AT_ONCE or"
            " FLUSH STREAM show it earlier"
        )
    if plan.window is not None and plan.ignore_expired:
        found.append(
            "rows that come after their window closed are dropped (IGNORE EXPIRED 1); a WATERMARK"
            " waits for them"
        )
    if plan.ignore_update:
        found.append("a row written again counts again (IGNORE UPDATE 1)")
    if plan.path == "exchange":
        found.append(
            "groups cross partitions: each result takes one more hop, through the exchange"
        )
    return found

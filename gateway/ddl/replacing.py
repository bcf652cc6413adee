"""ALTER STREAM and CREATE OR REPLACE STREAM: what a stream can become without starting over. Pure
decisions over plans.

State is kept when the windows it holds mean the same afterwards. Else a replaced stream starts
over, which needs FILL_HISTORY 1: a result half computed from now on would overwrite the whole one
that is there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.catalog.model import StreamEntry, Table
from penstock.catalog.view import Catalog
from penstock.errors import CatalogError
from penstock.sql import parse_one
from penstock.sql import render as sql_text
from penstock.sql.plan import Duration, Interval, Precision, StreamPlan
from penstock.sql.planner import PlannedStream
from penstock.sql.planning.target import match_tags
from penstock.sql.planning.view import SchemaView, TableDef
from penstock.sql.statements import AlterStream, CreateStream
from penstock.udf import UserFunction

#: options that ALTER STREAM takes
ALTERABLE = ("idle_timeout", "delete_mark", "on_error", "max_results", "max_state")


class Without:
    """A catalog in which *stream* is not there, nor the table that was made for its result."""

    def __init__(self, view: SchemaView, stream: StreamEntry) -> None:
        self._view = view
        self._stream = stream

    def precision(self, database: str) -> Precision | None:
        return self._view.precision(database)

    def function(self, name: str) -> UserFunction | None:
        return self._view.function(name)

    def table(self, database: str, name: str) -> TableDef | None:
        found = self._view.table(database, name)
        return None if found is not None and found.result_of == self._stream.id else found

    def table_names(self, database: str) -> Sequence[str]:
        return self._view.table_names(database)

    def streams_into(self, database: str, table: str) -> Sequence[str]:
        return [s for s in self._view.streams_into(database, table) if s != self._stream.name]


def _same(plan: StreamPlan) -> StreamPlan:
    """Return *plan* without what may change while its state is kept."""
    return replace(
        plan,
        stream_id=0,
        sql="",
        idle_timeout=None,
        on_error="dead_letter",
        delete_mark=None,
        fill_history=False,
        fill_history_async=False,
        max_results=0,
        max_state=0,
        source=replace(plan.source, members=()),
        target=replace(plan.target, table_id=0, beside=False),
    )


def with_tags_of(old: StreamEntry, known: Table | None, planned: PlannedStream) -> PlannedStream:
    """Return *planned* with the automatic tags that the result of the stream it replaces, *known*,
    has already.
    """
    made = planned.new_target
    target = planned.plan.target
    automatic = "group_id" in old.plan.target.tag_of and "group_id" in target.tag_of
    if known is None or made is None or known.result_of != old.id or not automatic:
        return planned
    kept = replace(
        target, tags=known.tags, tag_of=match_tags(known.tags, target.tags, target.tag_of)
    )
    return replace(
        planned, plan=replace(planned.plan, target=kept), new_target=replace(made, tags=known.tags)
    )


def keeps_state(old: StreamPlan, new: StreamPlan) -> bool:
    """Tell whether *new* can go on with the state of *old*."""
    return _same(old) == _same(new)


def with_new_options(old: StreamPlan, new: StreamPlan) -> StreamPlan:
    """Return *old* with the options of *new*, which keeps its state."""
    return replace(
        old,
        sql=new.sql,
        idle_timeout=new.idle_timeout,
        on_error=new.on_error,
        delete_mark=new.delete_mark,
        max_results=new.max_results,
        max_state=new.max_state,
    )


@dataclass(frozen=True)
class Replacement:
    """What becomes of the stream *old*, whose place another takes."""

    old: StreamEntry
    #: its windows went when it failed
    failed: bool
    #: the new one goes on with its state, under other options
    goes_on: bool
    #: its result table, when the new one begins anew and writes into that
    kept: Table | None = None

    def with_target(self, plan: StreamPlan) -> StreamPlan:
        """Return *plan* with the result table that is kept, if one is."""
        if self.kept is None:
            return plan
        beside = self.old.plan.target.beside
        return replace(plan, target=replace(plan.target, table_id=self.kept.id, beside=beside))


def decide(
    catalog: Catalog, old: StreamEntry, planned: PlannedStream, *, failed: bool
) -> Replacement:
    """Decide what becomes of *old* when *planned* takes its place.

    Raises:
        CatalogError: the stream would start over with half of its windows, or with other columns.
    """
    if keeps_state(old.plan, planned.plan) and not failed:
        return Replacement(old, failed, goes_on=True)
    return Replacement(old, failed, goes_on=False, kept=_target_to_keep(catalog, old, planned))


def _target_to_keep(catalog: Catalog, old: StreamEntry, planned: PlannedStream) -> Table | None:
    """Return the result table to keep, when the replaced stream's fits; else None, and the plan
    says where results go. Raises CatalogError.
    """
    plan = planned.plan
    if not plan.fill_history:
        raise CatalogError(
            f"{plan.name} cannot go on with the state it has",
            code="E_STREAM_STATE",
            detail=(
                "only IDLE_TIMEOUT, ON_ERROR, DELETE_MARK and quotas can change while windows are"
                " kept; a stream that failed has none"
            ),
            hint=(
                "FILL_HISTORY 1 computes everything anew from what is stored; DROP STREAM and"
                " CREATE STREAM begin now"
            ),
        )
    known = catalog.table(plan.target.database, plan.target.table)
    if known is None or planned.new_target is None or known.result_of != old.id:
        return None
    made = planned.new_target
    if (known.columns, known.tags, known.key_column) != (made.columns, made.tags, made.key_column):
        raise CatalogError(
            f"{known.name} has other columns or tags than the new stream gives",
            code="E_STREAM_STATE",
            hint="write INTO another table, or drop the stream and its table first",
        )
    return known


def with_options(statement: AlterStream, plan: StreamPlan) -> StreamPlan:
    """Return *plan* with the options of ALTER STREAM."""
    given = _options_of(statement)
    wrong = [k for k in given if k not in ALTERABLE]
    if wrong:
        raise statement.error(
            f"{wrong[0].upper()} cannot change while {plan.name} keeps its state",
            statement.stream,
            code="E_STREAM_STATE",
            hint="CREATE OR REPLACE STREAM … FILL_HISTORY 1 computes everything anew",
        )
    made = plan
    if "idle_timeout" in given:
        length = _length(statement, "idle_timeout", given["idle_timeout"])
        made = replace(made, idle_timeout=length)
    if "delete_mark" in given:
        length = _length(statement, "delete_mark", given["delete_mark"])
        made = replace(made, delete_mark=_longest(plan, length))
    if "on_error" in given:
        made = replace(made, on_error="stop" if given["on_error"] == "stop" else "dead_letter")
    quotas = {name: given[name] for name in ("max_results", "max_state") if name in given}
    made = replace(made, **quotas)
    parsed = parse_one(plan.sql)
    assert isinstance(parsed, CreateStream)
    return replace(made, sql=sql_text(replace(parsed, options=replace(parsed.options, **given))))


def _options_of(statement: AlterStream) -> dict[str, Any]:
    """Return the options that the statement has."""
    options = statement.options
    values = {f.name: getattr(options, f.name) for f in dataclasses.fields(options)}
    return {k: v for k, v in values.items() if v is not None and v is not False}


def _length(statement: AlterStream, name: str, length: Duration) -> Duration:
    """Return *length* if it is one. Raises SqlSemanticError."""
    if length.value <= 0 or length.natural:
        raise statement.error(
            f"{name.upper()} needs a length of time above 0",
            statement.stream,
            code="E_DURATION",
        )
    return length


def _longest(plan: StreamPlan, mark: Duration) -> Duration:
    """Return *mark*, but not less than what the stream's windows need."""
    needed = [mark, plan.watermark]
    if isinstance(plan.window, Interval):
        needed.append(plan.window.size)
    return max(needed, key=lambda d: d.ticks("ns"))

"""CREATE STREAM as a plan, and EXPLAIN, which shows it. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from gateway.answers import table_of
from gateway.ddl import replacing, stream_sink
from gateway.ddl.child_tables import ChildTables
from gateway.ddl.definer import Definer
from gateway.federation.mirrors import Mirrors, over
from penstock.catalog.model import External, StreamEntry, Table
from penstock.catalog.schema_view import CatalogSchema
from penstock.errors import CatalogError
from penstock.sql.plan import StreamPlan
from penstock.sql.planner import PlannedStream, plan_stream
from penstock.sql.planning.view import SchemaView
from penstock.sql.statements import CreateStream
from penstock.types import ColumnType

_EXPLAIN = (("item", ColumnType("VARCHAR", 64)), ("value", ColumnType("VARCHAR", 65_535)))


class StreamPlanner:
    """Plans streams over the catalog as it is now."""

    def __init__(self, definer: Definer, child_tables: ChildTables, mirrors: Mirrors) -> None:
        self._definer = definer
        self._child_tables = child_tables
        self._mirrors = mirrors

    def plan(
        self,
        statement: CreateStream,
        database: str | None,
        timezone: str,
        stream_id: int,
        target_id: int,
        replaced: StreamEntry | None = None,
        source: Table | None = None,
    ) -> PlannedStream:
        """Plan a stream.

        Args:
            replaced: the one it takes the place of.
            source: what it reads, if that is not in the catalog yet.
        """
        view: SchemaView = CatalogSchema(
            self._definer.catalog, self._child_tables.stable_of, find_other=_finder(source)
        )
        if replaced is not None:
            view = replacing.Without(view, replaced)
        planned = plan_stream(
            statement,
            view,
            database=database,
            stream_id=stream_id,
            target_id=target_id,
            timezone=timezone,
        )
        if replaced is None:
            return planned
        target = planned.plan.target
        result = self._definer.catalog.table(target.database, target.table)
        return replacing.with_tags_of(replaced, result, planned)

    def preview(
        self, statement: CreateStream, database: str | None, timezone: str
    ) -> tuple[PlannedStream, External | None]:
        """Plan CREATE STREAM as it would be carried out; return the plan, and the external stream
        that it reads by way of a mirror. Any thread: nothing is made. Raises PenstockError.
        """
        home = statement.stream.database or database
        known = None
        if statement.or_replace and home is not None:
            known = self._definer.catalog.stream(home, statement.stream.name)
        try:
            source, mirrored = self._mirrors.preview(statement, database)
        except CatalogError as error:
            raise statement.error(
                error.message, code=error.code, detail=error.detail, hint=error.hint
            ) from error
        if source is not None:
            statement = over(statement, source)
        statement, _ = stream_sink.redirect(self._definer, statement, database)
        return self.plan(statement, database, timezone, 0, 0, known, source), mirrored

    def explain(self, statement: CreateStream, database: str | None, timezone: str) -> pa.Table:
        """Return what CREATE STREAM would do."""
        planned, mirrored = self.preview(statement, database, timezone)
        notices = (*planned.notices, *_surprises(planned))
        rows = [*_rows(planned, mirrored), *(("notice", notice) for notice in notices)]
        return table_of(_EXPLAIN, rows)


def _finder(table: Table | None) -> Callable[[str, str], Table | None] | None:
    """Return what finds *table* by its database and name."""
    if table is None:
        return None
    own = (table.database.lower(), table.name.lower())
    return lambda database, name: table if (database.lower(), name.lower()) == own else None


def _rows(planned: PlannedStream, mirrored: External | None) -> list[tuple[str, str]]:
    plan = planned.plan
    target = plan.target
    return [
        ("stream", f"{plan.database}.{plan.name}"),
        ("source", _source(plan, mirrored)),
        ("path", _path(plan)),
        ("window", "none" if plan.window is None else plan.window.kind),
        ("trigger", _trigger(plan)),
        ("watermark", str(plan.watermark)),
        ("where", plan.where or ""),
        ("keys", ", ".join(k.sql for k in plan.keys)),
        ("aggregates", ", ".join(f"{a.function}({a.sql or '*'})" for a in plan.aggregates)),
        ("target", _target(planned)),
        ("columns", ", ".join(f"{c.name} {c.type}" for c in target.columns)),
        ("tags", ", ".join(f"{c.name} {c.type}" for c in target.tags) if target.stored else ""),
    ]


def _source(plan: StreamPlan, mirrored: External | None) -> str:
    source = plan.source
    text = f"{source.database}.{source.child or source.table} ({source.kind})"
    if mirrored is None:
        return text
    return f"{text}, a mirror of external stream {mirrored.database}.{mirrored.name}"


def _target(planned: PlannedStream) -> str:
    target = planned.plan.target
    if not target.stored:
        return "none: results are in the events of NOTIFY only"
    return f"{target.database}.{target.table}{' (new)' if planned.new_target is not None else ''}"


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

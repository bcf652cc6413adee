"""CREATE STREAM as a plan. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.ddl import replacing, stream_sink
from gateway.ddl.child_tables import ChildTables
from gateway.ddl.definer import Definer
from gateway.federation.mirrors import Mirrors, over
from penstock.catalog.model import External, StreamEntry, Table
from penstock.catalog.schema_view import CatalogSchema
from penstock.sql.planner import PlannedStream, plan_stream
from penstock.sql.planning.view import SchemaView
from penstock.sql.statements import CreateStream


@dataclass(frozen=True)
class StreamPreview:
    """What a CREATE STREAM would make."""

    planned: PlannedStream
    #: the stream that it takes the place of
    replaced: StreamEntry | None
    #: the external stream that it reads by way of a mirror
    mirrored: External | None


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
    ) -> StreamPreview:
        """Plan CREATE STREAM as it would be carried out. Any thread: nothing is made. Raises
        PenstockError.
        """
        home = statement.stream.database or database
        known = None
        if statement.or_replace and home is not None:
            known = self._definer.catalog.stream(home, statement.stream.name)
        source, mirrored = self._mirrors.preview(statement, database)
        if source is not None:
            statement = over(statement, source)
        statement, _ = stream_sink.redirect(self._definer, statement, database)
        planned = self.plan(statement, database, timezone, 0, 0, known, source)
        return StreamPreview(planned, known, mirrored)


def _finder(table: Table | None) -> Callable[[str, str], Table | None] | None:
    """Return what finds *table* by its database and name."""
    if table is None:
        return None
    own = (table.database.lower(), table.name.lower())
    return lambda database, name: table if (database.lower(), name.lower()) == own else None

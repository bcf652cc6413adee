"""Streams: CREATE, ALTER, DROP, PAUSE, RESUME, FLUSH and RECALCULATE.

Owns the order of things: plan, then one catalog transaction with the result table and the entry,
then control records to every partition of the source. Whatever fails after the transaction is made
up for by the stream jobs, which repeat what the catalog says.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import tzinfo

import polars as pl
import pyarrow as pa

from gateway import literals, times
from gateway.ddl import replacing, stream_explanation, stream_sink
from gateway.ddl.definer import Definer
from gateway.ddl.replacing import Replacement
from gateway.ddl.stream_planning import StreamPlanner, StreamPreview
from gateway.ddl.stream_replies import StreamReplies
from penstock.catalog import changes
from penstock.catalog.changes import Change
from penstock.catalog.model import Entry, StreamEntry, Table
from penstock.errors import CatalogError
from penstock.outbound.reach import Outbound
from penstock.records import ControlRecord
from penstock.runtime.clock import Clock, milliseconds
from penstock.sql.announcement import announced
from penstock.sql.plan import TICKS_PER_SECOND, StreamPlan
from penstock.sql.planner import PlannedStream
from penstock.sql.statements import (
    AlterStream,
    CreateStream,
    Name,
    RecalculateStream,
    Statement,
)


class StreamDefinitions:
    """Runs in the DDL thread, except `check`, `explain`, `wait_live` and `open_windows`."""

    def __init__(
        self,
        definer: Definer,
        planner: StreamPlanner,
        replies: StreamReplies,
        clock: Clock,
        notified: Outbound,
    ) -> None:
        """*notified*: whom streams may notify."""
        self._definer = definer
        self._planner = planner
        self._replies = replies
        self._clock = clock
        self._notified = notified

    def create(
        self, statement: CreateStream, database: str | None, timezone: str
    ) -> StreamEntry | None:
        """CREATE STREAM: return the entry, or None when there is one already and that is fine."""
        catalog = self._definer.catalog
        home = statement.stream.database or database
        known = catalog.stream(home, statement.stream.name) if home is not None else None
        if known is not None and statement.if_not_exists:
            return None
        # the stream's id is the highest of its commit: a processor that knows of a higher one and
        # not of the stream takes it for dropped
        target_id, version_id, stream_id = (self._definer.new_id() for _ in range(3))
        statement, sink = stream_sink.redirect(self._definer, statement, database)
        replaced = known if statement.or_replace else None
        planned = self._planner.plan(statement, database, timezone, stream_id, target_id, replaced)
        self._check_notify(planned.plan, self._definer.user)
        replacement = self._decide(replaced, planned)
        if replacement is not None and replacement.goes_on:
            old = replacement.old
            self._alter(old, replacing.with_new_options(old.plan, planned.plan))
            return old
        plan, puts = self._with_target(planned, replacement, sink, (target_id, version_id))
        change = changes.create_stream(
            catalog,
            plan,
            created=milliseconds(self._clock),
            replaces=replaced,
            maker=self._definer.user,
        )
        self._definer.commit(Change((*puts, *change.puts), change.removes))
        stream = change.puts[0]
        assert isinstance(stream, StreamEntry)
        if replaced is not None:
            self._replies.send(replaced, ControlRecord("stream_off", stream=replaced.id))
        on = ControlRecord("stream_on", stream=stream.id, body=announced(plan))
        self._replies.send(stream, on)
        return stream

    def _decide(self, replaced: StreamEntry | None, planned: PlannedStream) -> Replacement | None:
        """Return what becomes of *replaced* when *planned* takes its place. Raises CatalogError."""
        if replaced is None:
            return None
        failed = self._replies.has_failed(replaced)
        return replacing.decide(self._definer.catalog, replaced, planned, failed=failed)

    def _with_target(
        self,
        planned: PlannedStream,
        replacement: Replacement | None,
        sink: Table | None,
        new_ids: tuple[int, int],
    ) -> tuple[StreamPlan, tuple[Entry, ...]]:
        """Return the plan and the table that its results go to, if that is made or changes."""
        plan = planned.plan
        if replacement is not None and replacement.kept is not None:
            kept = replace(replacement.kept, result_of=plan.stream_id)
            return replacement.with_target(plan), (kept,)
        new = planned.new_target
        if new is None:
            return plan, ()
        ids = iter(new_ids)
        made = changes.create_table(
            self._definer.catalog,
            lambda: next(ids),
            new.database,
            new.name,
            new.columns,
            new.tags,
            kind="stable" if new.kind == "stable" else "plain",
            key_column=new.key_column,
            result_of=plan.stream_id,
        )
        if sink is None:
            return plan, made.puts
        return plan, stream_sink.mark(self._definer, made.puts, sink)

    def _check_notify(self, plan: StreamPlan, user: str) -> None:
        """Raise TargetRefused for targets that the notifier would never connect to for *user*."""
        reach = self._notified.reach(user)
        for url in plan.notify.urls if plan.notify is not None else ():
            reach.check_notify(url)

    def check(
        self, statement: CreateStream, database: str | None, timezone: str, user: str
    ) -> tuple[StreamPreview, Replacement | None]:
        """Decide all that CREATE STREAM of *user* decides, and do nothing. Any thread.

        Raises:
            PenstockError: the statement would be refused.
        """
        try:
            preview = self._planner.preview(statement, database, timezone)
            self._check_notify(preview.planned.plan, user)
            replacement = self._decide(preview.replaced, preview.planned)
            self._check_flow(preview.planned.plan, replacement)
        except CatalogError as error:
            raise statement.error(
                error.message, code=error.code, detail=error.detail, hint=error.hint
            ) from error
        return preview, replacement

    def _check_flow(self, plan: StreamPlan, replacement: Replacement | None) -> None:
        """Raise CatalogError for a stream that the catalog would not take. A mirror that is still
        to be made leads nowhere.
        """
        catalog = self._definer.catalog
        if catalog.table_by_id(plan.source.table_id) is not None:
            changes.check_flow(catalog, replacement.with_target(plan) if replacement else plan)

    def explain(
        self, statement: CreateStream, database: str | None, timezone: str, user: str
    ) -> pa.Table:
        """Return what CREATE STREAM of *user* would do. Any thread. Raises PenstockError."""
        preview, replacement = self.check(statement, database, timezone, user)
        return stream_explanation.explain(statement, preview, replacement)

    def drop(self, stream: StreamEntry) -> None:
        """DROP STREAM; its result table stays."""
        self._definer.decide(lambda c, _: changes.drop_stream(c, stream.database, stream.name))
        self._replies.send(stream, ControlRecord("stream_off", stream=stream.id))

    def alter(self, statement: AlterStream, database: str | None) -> None:
        """ALTER STREAM: options that leave the state as it is."""
        stream = self.find(statement, statement.stream, database, False)
        assert stream is not None
        plan = replacing.with_options(statement, stream.plan)
        self._require_windows(statement, stream)
        self._alter(stream, plan)

    def _require_windows(
        self, statement: AlterStream | RecalculateStream, stream: StreamEntry
    ) -> None:
        """Raise SqlSemanticError if *stream* has failed."""
        if self._replies.has_failed(stream):
            raise statement.error(
                f"{stream.name} has failed: its windows are gone",
                statement.stream,
                code="E_STREAM_STATE",
                hint="CREATE OR REPLACE STREAM … FILL_HISTORY 1 computes everything anew",
            )

    def _alter(self, stream: StreamEntry, plan: StreamPlan) -> None:
        """Go on with *plan* and the state there is. NOTIFY has the rights of whoever wrote it."""
        maker = stream.maker if plan.notify == stream.plan.notify else self._definer.user
        self._definer.commit(Change((replace(stream, plan=plan, maker=maker),)))
        self._replies.send(stream, ControlRecord("alter", stream=stream.id, body=announced(plan)))

    def pause(self, stream: StreamEntry) -> None:
        """PAUSE STREAM: its source is read no further for it."""
        self._definer.decide(
            lambda c, _: changes.set_stream_status(c, stream.database, stream.name, "paused")
        )
        self._replies.send(stream, ControlRecord("pause", stream=stream.id))

    def resume(self, stream: StreamEntry, ignore_untreated: bool) -> None:
        """RESUME STREAM; *ignore_untreated* leaves out what came meanwhile."""
        self._definer.decide(
            lambda c, _: changes.set_stream_status(c, stream.database, stream.name, "running")
        )
        kind = "resume_skip" if ignore_untreated else "resume"
        self._replies.send(stream, ControlRecord(kind, stream=stream.id))

    def flush(self, stream: StreamEntry) -> None:
        """FLUSH STREAM: its open windows close now."""
        self._replies.send(stream, ControlRecord("flush", stream=stream.id))

    def recalculate(self, statement: RecalculateStream, stream: StreamEntry, tz: tzinfo) -> None:
        """RECALCULATE STREAM … FROM a [TO b]."""
        precision = stream.plan.source.precision
        now = self._clock.now() * TICKS_PER_SECOND[precision] // 10**9
        _, high = times.LIMITS[precision]
        try:
            low = literals.ticks(statement.begin, precision, tz, now)
            if statement.until is not None:
                high = literals.ticks(statement.until, precision, tz, now)
        except (ValueError, OverflowError) as wrong:
            raise statement.error(
                "this is not a range of times", code="E_TYPE", detail=str(wrong)
            ) from wrong
        self._require_windows(statement, stream)
        self._replies.send(
            stream, ControlRecord("recalculate", stream=stream.id, low=low, high=high)
        )

    def find(
        self, statement: Statement, name: Name, database: str | None, if_exists: bool
    ) -> StreamEntry | None:
        """Return the stream that *statement* names. Raises SqlSemanticError at the name."""
        home = name.database or database
        if home is None:
            raise statement.error(
                "which database?", name, code="E_WHICH_DATABASE", hint=f"write database.{name.name}"
            )
        stream = self._definer.catalog.stream(home, name.name)
        if stream is None and not if_exists:
            raise statement.error(
                f"there is no stream {home}.{name.name}",
                name,
                code="E_NO_STREAM",
                hint="SHOW STREAMS lists them",
            )
        return stream

    def open_windows(self, stream: StreamEntry, named: Collection[str]) -> pl.DataFrame:
        """See `StreamReplies.open_windows`."""
        return self._replies.open_windows(stream, named)

    def wait_live(self, stream: StreamEntry) -> None:
        """See `StreamReplies.wait_live`."""
        self._replies.wait_live(stream)

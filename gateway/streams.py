"""Streams: CREATE, DROP, PAUSE, RESUME, FLUSH, RECALCULATE and EXPLAIN, and waiting until one is
live.

Owns the order of things: plan, then one catalog transaction with the result table and the entry,
then control records to every partition of the source. Whatever fails after the transaction is made
up for by spark_jobs, which repeats what the catalog says.
"""

from __future__ import annotations

import base64
import dataclasses
import io
import json
import secrets
from dataclasses import replace
from datetime import tzinfo

import polars as pl
import pyarrow as pa
import redis

from gateway import literals, replacing, times
from gateway.answers import table_of
from gateway.children import text
from gateway.ddl import Definer
from gateway.stream_status import live_fields
from penstock import names
from penstock.catalog import changes
from penstock.catalog.changes import Change
from penstock.catalog.model import ROW_ID, Entry, StreamEntry, Table
from penstock.catalog.schema_view import CatalogSchema
from penstock.clock import Clock, milliseconds
from penstock.errors import BusError
from penstock.reach import Outbound
from penstock.records import ControlRecord
from penstock.redis_link import ask
from penstock.sql.plan import TICKS_PER_SECOND, StreamPlan
from penstock.sql.planner import PlannedStream, plan_stream
from penstock.sql.planning.view import SchemaView
from penstock.sql.statements import (
    AlterStream,
    CreateStream,
    Name,
    RecalculateStream,
    Statement,
    TargetColumn,
)
from penstock.targets import endpoint
from penstock.types import ColumnType


class Streams:
    """Runs in the DDL thread, except `wait_live` and `open_windows`."""

    def __init__(
        self,
        definer: Definer,
        client: redis.Redis,
        clock: Clock,
        notified: Outbound,
        *,
        wait_for_jobs: bool,
    ) -> None:
        """*notified*: whom streams may notify."""
        self._definer = definer
        self._redis = client
        self._clock = clock
        self._wait_for_jobs = wait_for_jobs
        self._notified = notified

    def create(
        self, statement: CreateStream, database: str | None, timezone: str
    ) -> StreamEntry | None:
        """CREATE STREAM; the entry, or None when there is one already and that is fine."""
        catalog = self._definer.catalog
        home = statement.stream.database or database
        known = catalog.stream(home, statement.stream.name) if home is not None else None
        if known is not None and statement.if_not_exists:
            return None
        # the stream's id is the highest of its commit: a lane that knows of a higher one and not of
        # the stream takes it for dropped
        target_id, version_id, stream_id = (self._definer.new_id() for _ in range(3))
        statement, sink = self._through_inlet(statement, database)
        planned = self._plan(
            statement,
            database,
            timezone,
            stream_id,
            target_id,
            known if statement.or_replace else None,
        )
        plan = planned.plan
        self._check_notify(plan)
        puts: tuple[Entry, ...] = ()
        kept: Table | None = None
        if known is not None and statement.or_replace:
            if replacing.keeps_state(known.plan, plan) and not self._failed(known):
                self._alter(known, replacing.altered(known.plan, plan))
                return known
            kept = replacing.target(self._definer.catalog, known, planned)
            if kept is not None:
                plan = replace(
                    plan,
                    target=replace(plan.target, table_id=kept.id, beside=known.plan.target.beside),
                )
                puts = (replace(kept, result_of=plan.stream_id),)
        if planned.new_target is not None and kept is None:
            target = planned.new_target
            ids = iter((target_id, version_id))
            made = changes.create_table(
                self._definer.catalog,
                lambda: next(ids),
                target.database,
                target.name,
                target.columns,
                target.tags,
                kind="stable" if target.kind == "stable" else "plain",
                key_column=target.key_column,
                result_of=plan.stream_id,
            )
            puts = made.puts
            if sink is not None:
                puts = tuple(
                    dataclasses.replace(t, options=self._inlet_options(t, sink))
                    for t in made.puts
                    if isinstance(t, Table)
                )
        replaced = known if statement.or_replace else None
        change = changes.create_stream(
            self._definer.catalog,
            plan,
            created=milliseconds(self._clock),
            replaces=replaced,
            maker=self._definer.user,
        )
        self._definer.commit(Change((*puts, *change.puts), change.removes))
        stream = change.puts[0]
        assert isinstance(stream, StreamEntry)
        if replaced is not None:
            self._control(replaced, ControlRecord("stream_off", stream=replaced.id))
        self._control(stream, ControlRecord("stream_on", stream=stream.id, body=plan.to_json()))
        return stream

    def _check_notify(self, plan: StreamPlan) -> None:
        """Refuse targets that the notifier would never connect to. Raises TargetRefused."""
        reach = self._notified.reach(self._definer.user)
        for url in plan.notify.urls if plan.notify is not None else ():
            reach.check_notify(endpoint(url))

    def _through_inlet(
        self, statement: CreateStream, database: str | None
    ) -> tuple[CreateStream, Table | None]:
        """A stream into a stream table of a raft group writes to a table beside it, from which the
        group's leader takes its rows.
        """
        home = statement.target.database or database or ""
        sink = self._definer.catalog.table(home, statement.target.name)
        if sink is not None and sink.foreign:
            hint = "let it write into a table, and a client carry on from there"
            raise statement.error(
                f"{sink.name} is a topic of another Kafka",
                statement.target,
                code="E_NO_LOG",
                hint=hint,
            )
        if sink is None or sink.replicated is None:
            return statement, None
        user = [c.name for c in sink.columns if c.name != ROW_ID]
        listed = statement.target_columns or tuple(TargetColumn(name) for name in user)
        unknown = [c.name for c in listed if c.name.lower() not in {u.lower() for u in user}]
        if unknown:
            hint = f"its columns are {', '.join(user)}"
            raise statement.error(
                f"{sink.name} has no column {unknown[0]}",
                statement.target,
                code="E_NO_COLUMN",
                hint=hint,
            )
        inlet = replace(statement.target, name=f"{sink.name}_from_{statement.stream.name}")
        return replace(statement, target=inlet, target_columns=listed), sink

    def _inlet_options(self, inlet: Table, sink: Table) -> dict[str, str]:
        ends = {
            str(p): offset
            for (_, p), offset in self._definer.log_ends(inlet.topic, inlet.partitions).items()
        }
        return {**inlet.options, "inlet_of": str(sink.id), "inlet_from": json.dumps(ends)}

    def explain(self, statement: CreateStream, database: str | None, timezone: str) -> pa.Table:
        """What CREATE STREAM would do."""
        planned = self._plan(statement, database, timezone, 0, 0)
        p = planned.plan
        rows = [
            ("stream", f"{p.database}.{p.name}"),
            ("source", f"{p.source.database}.{p.source.child or p.source.table} ({p.source.kind})"),
            (
                "path",
                f"{p.path}: "
                + (
                    "finished in the scan of its source partition"
                    if p.path == "scan"
                    else "groups cross partitions"
                ),
            ),
            ("window", "none" if p.window is None else p.window.kind),
            (
                "trigger",
                p.trigger.kind.upper() + (f" {p.trigger.every}" if p.trigger.every else ""),
            ),
            ("watermark", str(p.watermark)),
            ("where", p.where or ""),
            ("keys", ", ".join(k.sql for k in p.keys)),
            ("aggregates", ", ".join(f"{a.function}({a.sql or '*'})" for a in p.aggregates)),
            (
                "target",
                f"{p.target.database}.{p.target.table}"
                + (" (new)" if planned.new_target is not None else ""),
            ),
            ("columns", ", ".join(f"{c.name} {c.type}" for c in p.target.columns)),
            ("tags", ", ".join(f"{c.name} {c.type}" for c in p.target.tags)),
            *(("notice", notice) for notice in planned.notices),
            *(("notice", notice) for notice in _surprises(planned)),
        ]
        return table_of(
            (("item", ColumnType("VARCHAR", 64)), ("value", ColumnType("VARCHAR", 65_535))), rows
        )

    def drop(self, stream: StreamEntry) -> None:
        """DROP STREAM; its result table stays."""
        self._definer.decide(lambda c, _: changes.drop_stream(c, stream.database, stream.name))
        self._control(stream, ControlRecord("stream_off", stream=stream.id))

    def alter(self, statement: AlterStream, database: str | None) -> None:
        """ALTER STREAM: options that leave the state as it is."""
        stream = self.find(statement, statement.stream, database, False)
        assert stream is not None
        plan = replacing.with_options(statement, stream.plan)
        if self._failed(stream):
            raise statement.error(
                f"{stream.name} has failed: its windows are gone",
                statement.stream,
                code="E_STREAM_STATE",
                hint="CREATE OR REPLACE STREAM … FILL_HISTORY 1 computes everything anew",
            )
        self._alter(stream, plan)

    def _failed(self, stream: StreamEntry) -> bool:
        """Whether it has stopped in a lane, where its state went with it."""
        fields = ask(lambda: self._redis.hkeys(names.stream_status(stream.id)))
        return any(text(field).startswith(names.FAILED) for field in fields)

    def _alter(self, stream: StreamEntry, plan: StreamPlan) -> None:
        """Go on with *plan* and the state there is. NOTIFY has the rights of whoever wrote it."""
        maker = stream.maker if plan.notify == stream.plan.notify else self._definer.user
        self._definer.commit(Change((replace(stream, plan=plan, maker=maker),)))
        self._control(stream, ControlRecord("alter", stream=stream.id, body=plan.to_json()))

    def pause(self, stream: StreamEntry) -> None:
        self._definer.decide(
            lambda c, _: changes.set_stream_status(c, stream.database, stream.name, "paused")
        )
        self._control(stream, ControlRecord("pause", stream=stream.id))

    def resume(self, stream: StreamEntry, ignore_untreated: bool) -> None:
        self._definer.decide(
            lambda c, _: changes.set_stream_status(c, stream.database, stream.name, "running")
        )
        self._control(
            stream, ControlRecord("resume_skip" if ignore_untreated else "resume", stream=stream.id)
        )

    def flush(self, stream: StreamEntry) -> None:
        self._control(stream, ControlRecord("flush", stream=stream.id))

    def recalculate(self, statement: RecalculateStream, stream: StreamEntry, tz: tzinfo) -> None:
        """RECALCULATE STREAM … FROM a [TO b]."""
        precision = stream.plan.source.precision
        now = self._clock.now() * TICKS_PER_SECOND[precision] // 10**9
        low, high = times.LIMITS[precision]
        try:
            low = literals.ticks(statement.begin, precision, tz, now)
            high = (
                high
                if statement.until is None
                else literals.ticks(statement.until, precision, tz, now)
            )
        except (ValueError, OverflowError) as wrong:
            raise statement.error(
                "this is not a range of times", code="E_TYPE", detail=str(wrong)
            ) from wrong
        self._control(stream, ControlRecord("recalculate", stream=stream.id, low=low, high=high))

    def open_windows(self, stream: StreamEntry) -> pl.DataFrame:
        """Results of the windows of a stream that are open now, as `tbname`, columns and tags of
        its result table.
        """
        request = secrets.token_hex(8)
        key = names.open_windows(request)
        fields = live_fields(self._definer.catalog, stream)
        if stream.plan.path == "exchange":
            fields = {f for f in fields if f.startswith(names.EXCHANGE)}
        self._control(stream, ControlRecord("open_windows", id=request, stream=stream.id))
        wanted = [f.encode() for f in sorted(fields)]
        message = f"stream {stream.name} does not answer"
        self._definer.wait(
            lambda: all(v is not None for v in self._redis.hmget(key, wanted)),
            message,
            "is spark_jobs running?",
        )
        target = stream.plan.target
        layout = {
            "tbname": pl.String(),
            **{c.name: c.type.polars() for c in (*target.columns, *target.tags)},
        }
        found = [base64.b64decode(v or b"") for v in ask(lambda: self._redis.hmget(key, wanted))]
        frames = [pl.read_ipc_stream(io.BytesIO(f)).select(list(layout)) for f in found if f]
        times = [c.name for c in (*target.columns, *target.tags) if c.type.kind == "TIMESTAMP"]
        rows = pl.concat(frames, how="vertical_relaxed") if frames else pl.DataFrame(schema=layout)
        return rows.with_columns(
            pl.col(t).cast(pl.Datetime(target.precision, "UTC")) for t in times
        )

    def find(
        self, statement: Statement, name: Name, database: str | None, if_exists: bool
    ) -> StreamEntry | None:
        """The stream that *statement* names. Raises SqlSemanticError, which points at the name."""
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

    def wait_live(self, stream: StreamEntry) -> None:
        """Return when every partition has taken the stream up and filled its history. Blocks: call
        it from a worker thread.
        """
        if not self._wait_for_jobs or stream.plan.fill_history_async:
            return
        wanted = {f.encode() for f in live_fields(self._definer.catalog, stream)}
        key = names.stream_status(stream.id)
        said: dict[bytes | str, bytes | str] = {}

        def live() -> bool:
            said.update(self._redis.hgetall(key))
            return said.keys() >= wanted

        while True:
            before = dict(said)
            try:
                self._definer.wait(
                    live,
                    f"stream {stream.name} exists but is not live everywhere yet",
                    "SHOW STREAMS tells when it is; is spark_jobs running?",
                )
                return
            except BusError:
                # filling history takes as long as there is history; only what moves no more is
                # waited for in vain
                if said == before or not stream.plan.fill_history:
                    raise

    def _control(self, stream: StreamEntry, control: ControlRecord) -> None:
        for topic, partitions in self._definer.catalog.source_topics(stream.plan).items():
            self._definer.send(topic, range(partitions), control)

    def _plan(
        self,
        statement: CreateStream,
        database: str | None,
        timezone: str,
        stream_id: int,
        target_id: int,
        without: StreamEntry | None = None,
    ) -> PlannedStream:
        """*without*: a stream that the planned one replaces."""
        view: SchemaView = CatalogSchema(self._definer.catalog, self._definer.stable_of)
        if without is not None:
            view = replacing.Without(view, without)
        planned = plan_stream(
            statement,
            view,
            database=database,
            stream_id=stream_id,
            target_id=target_id,
            timezone=timezone,
        )
        if without is None:
            return planned
        result = self._definer.catalog.table(
            planned.plan.target.database, planned.plan.target.table
        )
        return replacing.with_tags_of(without, result, planned)


def _surprises(planned: PlannedStream) -> list[str]:
    """What people ask about afterwards."""
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

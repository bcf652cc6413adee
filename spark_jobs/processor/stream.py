"""One stream in one processor: its kernel, and whether it runs.

A stream that fails stops alone: its kernel is dropped, its status says why, and every other stream
goes on. Which rows a stream sees is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import polars as pl

from penstock import names
from penstock.bus import Delivery
from penstock.codec import Outgoing
from penstock.errors import PenstockError, SchemaError
from penstock.rows.rows import Rows
from penstock.rows.versions import without_clears
from penstock.runtime import log, traces
from penstock.sql.plan import StreamPlan, needs_ticks
from penstock.windows import make_kernel
from penstock.windows.emit.few_results import FewResults, TakesFew
from penstock.windows.kernel import Control, Delta, Emission, Kernel
from spark_jobs.history import StoredHistory
from spark_jobs.output import Outbox, nobody_waits
from spark_jobs.processor import chunk_spans
from spark_jobs.processor.result_batcher import ResultBatcher
from spark_jobs.processor.route import Route
from spark_jobs.processor.stats import Stats
from spark_jobs.processor.stream_output import StreamOutput
from spark_jobs.worker import Worker

_log = log.get(__name__)


class LiveStream:
    """A stream that is on. `text` is its plan as JSON, `status` running | paused | failed."""

    def __init__(
        self,
        worker: Worker,
        outbox: Outbox,
        topic: str,
        partition: int,
        text: str,
        status: str,
        history: StoredHistory | None,
        saved: Iterable[Delta] = (),
    ) -> None:
        """*history* None: this processor only passes the stream's rows on and computes nothing."""
        self._worker = worker
        self._topic = topic
        self._partition = partition
        self.text = text
        self.status = status
        self.changed = False
        #: what the kernel reads again
        self.history: StoredHistory | None = None
        self._kernel: Kernel | None = None
        #: the kernel's way for a few rows, if it has one
        self._take_few: Callable[[Rows], FewResults | None] | None = None
        #: where the stream's rows go, when this processor passes them on
        self.route: Route | None = None
        self.stats = Stats()
        self.output = StreamOutput(worker, outbox, topic, partition, worker.plan(text), self.stats)
        if status != "failed":
            self.guard(lambda: self._start(history, [self.stats.take(d) for d in saved]), -1, -1)

    @property
    def plan(self) -> StreamPlan:
        """The plan that the stream goes by now."""
        return self.output.plan

    @property
    def id(self) -> int:
        """The stream's id in the catalog."""
        return self.plan.stream_id

    @property
    def timed(self) -> bool:
        """Whether ticks are for this stream."""
        return needs_ticks(self.plan)

    @property
    def child(self) -> str | None:
        """The only child table that is read, in lower case; None: all are."""
        source = self.plan.source
        return source.child.lower() if source.kind == "child" and source.child else None

    def _start(self, history: StoredHistory | None, saved: Iterable[Delta]) -> None:
        if history is None:
            self.route = Route(self.plan, self._worker.kernels.tables)
            self.route.restore(saved)
            return
        self.history = history
        worker = self._worker
        kernel = make_kernel(self.plan, history, worker.settings.live_rows, worker.kernels)
        self._kernel = kernel
        kernel.restore(saved)
        self._take_few = kernel.take_few if isinstance(kernel, TakesFew) else None

    def apply(
        self,
        rows: pl.DataFrame,
        first: int,
        last: int,
        batcher: ResultBatcher,
        trace: str | None = None,
    ) -> None:
        """Feed the rows of the chunk first..last and publish what comes of them, under the trace of
        the newest that has one.
        """
        if (kernel := self._kernel) is None:
            return
        self.count(rows)
        span = None
        if trace is not None:
            place = (self._topic, self._partition)
            span = chunk_spans.begin(trace, self.plan, place, (first, last))
        if span is not None:
            trace = traces.text_of(traces.name_of(trace), span.context)
        before = self.stats.rows_out
        self.guard(
            lambda: self._publish(kernel.apply(rows), first, last, batcher, trace, rows),
            first,
            last,
        )
        if span is not None:
            error = self.stats.error if self.status == "failed" else ""
            results = self.stats.rows_out - before
            chunk_spans.finish(span, rows=rows.height, results=results, error=error)

    def take_few(self, rows: Rows, first: int, last: int) -> bool:
        """Do with a few rows what `apply` does. Return False if nothing was done and it has to."""
        if self._kernel is None:
            return True
        if not rows.few or (take := self._take_few) is None:
            return False
        results: list[FewResults | None] = []
        self.guard(
            lambda: results.append(self._send_few(take(rows), rows, first, last)), first, last
        )
        return not results or results[0] is not None

    def _send_few(
        self, results: FewResults | None, rows: Rows, first: int, last: int
    ) -> FewResults | None:
        """Publish what came of *rows*, if anything did."""
        if results is None:
            return None
        child = self.child
        self.stats.rows_in += (
            len(rows) if child is None else sum(t.lower() == child for t in rows.column("tbname"))
        )
        if not len(results.rows):
            return results
        codec = self.output.target()
        self.stats.rows_out += len(results.rows)
        values = codec.encode_few_partitioned(
            results.rows,
            codec.table.partitions,
            results.hashes,
            producer=self.output.producer,
            from_offset=first,
            offset=last,
        )
        there = self.output.time_delivery(rows.column("_now")[0])
        self.output.send(codec.table.topic, last, values, there)
        return results

    def count(self, rows: pl.DataFrame) -> None:
        """Count rows of the source; behind the exchange they were counted before it."""
        if self._topic == names.EXCHANGE:
            return
        answers = self._worker.kernels.answers
        rows = answers.get(rows, "written", lambda: without_clears(rows))
        child = self.child
        mine = (
            rows.height
            if child is None
            else int((rows.get_column("tbname").str.to_lowercase() == child).sum())
        )
        self.stats.rows_in += mine

    def open_windows(self) -> pl.DataFrame | None:
        """Results of the windows that are open now; None when this processor computes none."""
        return self._kernel.open_windows() if self._kernel is not None else None

    def progress(self) -> tuple[int, str, str]:
        """How far this processor has come with the stream, for `Worker.report_streams`."""
        return self.id, f"{names.STATS}{self._topic}:{self._partition}", self.stats.to_json()

    def control(self, control: Control, offset: int) -> None:
        """Feed a control record."""
        if (kernel := self._kernel) is not None:
            self._at_once(lambda: kernel.control(control), offset)

    def fill_history(self, until: str, low: int, high: int, offset: int) -> None:
        """Process what the source held from *low* to *high* when it was at the mark *until*."""
        kernel = self._kernel
        history = self.history
        if kernel is None or history is None:
            return
        history.at(until)
        try:
            self._at_once(lambda: kernel.load_history(low, high), offset)
        finally:
            history.at("")

    def delta(self, full: bool) -> Delta | None:
        """State changed since the last call; None when there is none to keep."""
        self.changed = False
        keeper = self.route if self._kernel is None else self._kernel
        return self.stats.into(keeper.delta(full)) if keeper is not None else None

    def alter(self, text: str, history: StoredHistory | None) -> None:
        """Go on with another plan that means the same of the state there is."""
        self._set_plan(text)
        if self.route is not None:
            self.route.replan(self.plan)
        elif (kernel := self._kernel) is not None and history is not None:
            self.guard(lambda: self._start(history, [kernel.delta(True)]), -1, -1)

    def _set_plan(self, text: str) -> None:
        self.text = text
        self.output.plan = self._worker.plan(text)

    def sever(self, table_id: int, tables: Iterable[str]) -> bool:
        """Read *tables* of *table_id* no more, not even if they are made again: they were dropped.
        Return True if that changes anything.
        """
        gone = {t.lower() for t in tables}
        source = self.plan.source
        members = tuple(
            replace(
                m,
                origins=tuple(
                    o for o in m.origins if o.table_id != table_id or o.table.lower() not in gone
                ),
            )
            for m in source.members
        )
        if members == source.members:
            return False
        self._set_plan(replace(self.plan, source=replace(source, members=members)).to_json())
        if self.route is not None:
            self.route.replan(self.plan)
        return True

    def fail(self, reason: str) -> None:
        """Stop this stream, here only, and say why."""
        self.status = "failed"
        self._kernel = None
        self.route = None
        self.changed = True
        self.stats.error = reason[:1000]
        self.stats.state_bytes = 0
        self.stats.full_bytes = 0
        self._worker.report_streams([self.progress()])
        _log.error(
            "stream stopped",
            stream=self.plan.name,
            topic=self._topic,
            partition=self._partition,
            reason=reason,
        )
        self._worker.report_stream(
            self.id, f"{names.FAILED}{self._topic}:{self._partition}", reason
        )

    def guard(self, action: Callable[[], None], first: int, last: int) -> None:
        """Do *action* for the chunk first..last; what goes wrong in it stops this stream alone."""
        try:
            action()
            self.changed = True
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except SchemaError as error:
            self.fail(f"results do not fit the target table: {error.message}")
        except PenstockError as error:
            if error.code == "E_BUS":
                raise
            self.fail(str(error))
        except BaseException as error:  # noqa: B036  a panic of polars is no Exception
            _log.exception("kernel failed", stream=self.plan.name, first=first, last=last)
            self.fail(f"{type(error).__name__}: {error}")

    def _at_once(self, work: Callable[[], Emission], offset: int) -> None:
        """Publish what comes of *work* at one offset."""
        batcher = ResultBatcher()
        self.guard(lambda: self._publish(work(), offset, offset, batcher), offset, offset)
        batcher.flush()

    def _publish(
        self,
        emission: Emission,
        first: int,
        last: int,
        batcher: ResultBatcher,
        trace: str | None = None,
        made_of: pl.DataFrame | None = None,
    ) -> None:
        """*made_of*: the rows that led to it, where it was rows and not the clock or history."""
        if emission.rows is not None and emission.rows.height:
            self.stats.rows_out += emission.rows.height
            if self.plan.target.stored:
                self._add_results(emission, emission.rows, first, last, batcher, trace, made_of)
        if emission.events:
            self.output.send_events(emission.events, first, last, trace)
        if name := traces.name_of(trace):
            results = emission.rows.height if emission.rows is not None else 0
            _log.info(
                "rows were computed",
                stream=self.plan.name,
                trace=name,
                offset=last,
                results=results,
                events=len(emission.events),
            )
        if emission.late is not None and emission.late.height:
            self.output.bury_late(emission.late, last)
        if emission.failed is not None and emission.failed.height:
            self.output.bury(emission.failed, last)
            if self.plan.on_error == "stop":
                self.fail(f"ON_ERROR STOP: {emission.failed['_reason'][0]}")

    def _add_results(
        self,
        emission: Emission,
        rows: pl.DataFrame,
        first: int,
        last: int,
        batcher: ResultBatcher,
        trace: str | None,
        made_of: pl.DataFrame | None,
    ) -> None:
        """Have the result *rows* of an emission sent with those of other streams."""
        output = self.output
        codec = output.target()
        table = codec.table
        part = Outgoing(
            codec,
            rows,
            table.partitions,
            output.producer,
            first,
            last,
            trace=traces.stamp(trace),
            hashes=emission.hashes,
        )
        there: Callable[[Delivery], None] = nobody_waits
        if made_of is not None:
            # the broker's append times never go back within a partition
            there = output.time_delivery(int(made_of.item(0, "_now")))
        batcher.add(self, part, lambda values: output.send(table.topic, last, values, there))

"""Streams without a window: each source row that passes WHERE is one row of the result, at once.

The target row's key is (child, first select item[, second for a composite key]). Where that key
follows from the source row's own key (the usual case), updates and deletes need no look back;
otherwise the old row is read from `History`. IGNORE UPDATE 0, and a source that is itself a
stream's result, also remove the result of a row that passes no longer or moved (`FilterRules`). A
DELETE of a range reads from `History` which rows it takes, where IGNORE UPDATE 1 has left results
of earlier versions with all of these. Nothing expires: there is no window that could be over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from penstock.rows.rows import Rows
from penstock.rows.versions import DELETE, UPSERT
from penstock.sql.plan import StreamPlan
from penstock.windows.clocks.clock import TableClock
from penstock.windows.context import KernelContext
from penstock.windows.emit.few_results import FewResults, Picked
from penstock.windows.emit.output import EmissionBuffer
from penstock.windows.emit.projection import Projection
from penstock.windows.emit.result import Results
from penstock.windows.few_filter import few_filter
from penstock.windows.filter_rules import FilterRules
from penstock.windows.groups.groups import Groups
from penstock.windows.groups.table_names import OneChild
from penstock.windows.kernel import EARLIEST, LATEST, Control, Delta, Emission, History
from penstock.windows.rows import columnwise
from penstock.windows.rows.counted import standing
from penstock.windows.rows.merge import as_planned, complete
from penstock.windows.rows.row_columns import RowColumns
from penstock.windows.rows.scope import Scope, evaluate


class FilterKernel:
    """One plan without a window."""

    def __init__(
        self,
        plan: StreamPlan,
        history: History | None = None,
        context: KernelContext | None = None,
    ) -> None:
        """*context*: what it has in common with other kernels; None: nothing."""
        self.plan = plan
        self._names = (context or KernelContext()).tables
        self._history = history
        scope = Scope(plan)
        source = plan.source
        self._groups = Groups(scope, self._names)
        self._results = Results(scope, self._groups, windowed=False)
        self._child = OneChild(source.child, self._names) if source.child is not None else None
        where = scope.over_rows(plan.where).expr.fill_null(False) if plan.where else pl.lit(True)
        self._expressions = Projection([where.alias("_pass"), *self._groups.expressions])
        self._columns = RowColumns.of(source)
        self._rules = FilterRules.of(scope, self._groups.expressions)
        self._tables = TableClock(self._names)
        picked = Picked(source.child, where if plan.where else None)
        self._few = (
            None
            if self._rules.retracts
            else few_filter(picked, self._groups, self._results, self._results.identity)
        )

    def apply(self, rows: pl.DataFrame) -> Emission:
        out = EmissionBuffer()
        if self._child is not None:
            rows, _ = self._child.rows(rows)
        if rows.height:
            rows = complete(rows, self._history, self._columns)
            behind = self._behind(rows)
            if behind.any():
                self._change(rows, behind, out)
            else:
                self._put(rows, out)
        return out.emission(self._results.identity)

    def _put(self, rows: pl.DataFrame, out: EmissionBuffer) -> None:
        """Publish the results of *rows*, which are all new."""
        made, failed = evaluate(rows, self._expressions)
        out.fail(failed)
        passed = made.get_column("_pass")
        if passed.any():
            self._publish(made if passed.all() else columnwise.kept(made, passed), out)

    def _change(self, rows: pl.DataFrame, behind: pl.Series, out: EmissionBuffer) -> None:
        """Publish the results of *rows*, of which those *behind* may have to remove some."""
        rows = as_planned(rows, self.plan.source).with_columns(behind).with_row_index("_at")
        made, failed = evaluate(rows, self._expressions)
        out.fail(failed)
        put = pl.col("_pass") & (pl.col("_op") != DELETE)
        if self._rules.stable:
            op = pl.when(put).then(UPSERT).otherwise(DELETE).cast(pl.Int8).alias("_op")
            self._publish(made.filter(put | pl.col("_behind")).with_columns(op), out)
            return
        # what earlier versions had published is known from themselves only
        left = (
            made.unique(self._columns.identity, keep="last")
            if self._rules.replaces
            else standing(made, self._columns.identity)
        )
        lines = made.filter(put).with_columns(pl.lit(UPSERT, dtype=pl.Int8).alias("_op"))
        lines = lines.join(left.select("_at"), on="_at", how="semi", maintain_order="left")
        old = self._old(rows.filter(behind), out)
        self._publish(lines if old is None else pl.concat([old.select(lines.columns), lines]), out)

    def take_few(self, rows: Rows) -> FewResults | None:
        """See `TakesFew`."""
        return None if self._few is None else self._few.publish(rows)

    def _behind(self, rows: pl.DataFrame) -> pl.Series:
        """Rows that may have to remove a result: deletes, and updates where those retract."""
        behind = rows.get_column("_op") == DELETE
        if self._rules.retracts:
            numbers = self._names.numbers(rows)
            times = rows.get_column(self._columns.time).to_numpy()
            behind |= pl.Series(self._tables.behind(numbers, times))
            self._tables.advance(numbers, times)
        return behind.alias("_behind")

    def _old(self, rows: pl.DataFrame, out: EmissionBuffer) -> pl.DataFrame | None:
        """Return deletions of what stored versions of *rows* had published; None: nothing."""
        if self._history is None:
            return None
        touched = rows.select(self._columns.identity).unique(maintain_order=True)
        span = touched.get_column(self._columns.time)
        low = span.min()
        high = span.max()
        assert isinstance(low, int) and isinstance(high, int)
        found = self._fetch_published(
            self._history,
            low,
            high,
            touched.get_column("tbname").unique(maintain_order=True).to_list(),
        )
        if not found.height:
            return None
        found = found.join(
            touched, on=self._columns.identity, how="semi", nulls_equal=True, maintain_order="left"
        )
        blank = [
            pl.lit(None, dtype=pl.UInt32).alias("_at"),
            pl.lit(True).alias("_behind"),
            pl.lit(DELETE, dtype=pl.Int8).alias("_op"),
        ]
        made, failed = evaluate(found.with_columns(blank), self._expressions)
        out.fail(failed)
        return made.filter(pl.col("_pass"))

    def _fetch_published(
        self, history: History, low: int, high: int, tables: Sequence[str] | None
    ) -> pl.DataFrame:
        """Stored rows of low..high in all versions that may have a result."""
        if self._rules.replaces or self._rules.stable:
            return history.fetch(low, high, tables)
        return complete(history.fetch_versions(low, high, tables), None, self._columns)

    def _publish(self, made: pl.DataFrame, out: EmissionBuffer) -> None:
        """Publish what *made* rows put or remove, as each one's `_op` says."""
        if not made.height:
            return
        numbers = self._groups.numbers(made)
        result = self._results.changes(made.hstack([pl.Series("_g", numbers, dtype=pl.Int64)]))
        out.repeats = columnwise.repeats(result.rows, self._results.identity)
        out.put(result)

    def control(self, control: Control) -> Emission:
        out = EmissionBuffer()
        if self._history is not None:
            if control.kind == "recalculate":
                self._publish_again(self._history.fetch(control.low, control.high), UPSERT, out)
            elif control.kind == "delete":
                span = (control.low, control.high, control.tables)
                self._publish_again(self._fetch_published(self._history, *span), DELETE, out)
        return out.emission(self._results.identity)

    def _publish_again(self, stored: pl.DataFrame, op: int, out: EmissionBuffer) -> None:
        """Publish the results of *stored* rows again, or remove them, as *op* says."""
        if self._child is not None:
            stored, _ = self._child.rows(stored)
        made, failed = evaluate(stored, self._expressions)
        out.fail(failed)
        if op == UPSERT or not self._rules.stable:
            # otherwise what is stored fails WHERE now, but an earlier version may have a result
            made = made.filter(pl.col("_pass"))
        self._publish(made.with_columns(pl.lit(op, dtype=pl.Int8).alias("_op")), out)

    def skip(self, rows: pl.DataFrame) -> None:
        """Results are of rows one by one: none of them is computed again."""

    def load_history(self, low: int = EARLIEST, high: int = LATEST) -> Emission:
        out = EmissionBuffer()
        if self._history is not None:
            stored = self._history.fetch(low, high)
            if self._rules.retracts and stored.height:
                times = stored.get_column(self._columns.time).to_numpy()
                self._tables.advance(self._names.numbers(stored), times)
            self._publish_again(stored, UPSERT, out)
        return out.emission(self._results.identity)

    def open_windows(self) -> pl.DataFrame:
        return self._results.empty().drop("_op")

    def delta(self, full: bool = False) -> Delta:
        frames = {"groups": self._groups.delta(full), "tables": self._tables.delta(full)}
        return Delta({name: frame for name, frame in frames.items() if frame.height}, full)

    def restore(self, deltas: Iterable[Delta]) -> None:
        for delta in deltas:
            if "groups" in delta.frames:
                self._groups.restore(delta.frames["groups"])
            if "tables" in delta.frames:
                self._tables.restore(delta.frames["tables"])

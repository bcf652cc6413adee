"""Source rows → prepared rows: filtered, evaluated once, numbered by partition and arrival.

A prepared row holds only what windows need: `_g` partition, `_seq` arrival number, `_tab` table number, `tbname`, the time
and composite key columns, `_floor`, the aggregates' arguments `_x…` and the cutter's columns; while a call is worked
on also `_step`, `_op`, `_now`, `_pass` (WHERE holds). Rows on which an expression fails come back apart. Refuses to decide what becomes of a row.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from penstock.sql.plan import Event
from penstock.windows.aggregates import Aggregates
from penstock.windows.cut import Cutter
from penstock.windows.groups import Groups, KeyIndex
from penstock.windows.kernel import MERGE, UPSERT, History
from penstock.windows.scope import Scope, evaluate
from penstock.windows.timeline import NEVER

_CALL = ("_step", "_op", "_now", "_pass", "_source")


class Ingest:
    """Prepares the rows of one kernel."""

    def __init__(self, scope: Scope, groups: Groups, aggregates: Aggregates, cutter: Cutter) -> None:
        plan = scope.plan
        self.plan = plan
        self.groups = groups
        self.time, self.key = plan.source.time_column, plan.source.key_column
        self.tables = KeyIndex({"tbname": pl.String()})
        #: what makes two rows the same row
        self.identity = ["tbname", self.time, *([self.key] if self.key else [])]
        where = scope.over_rows(plan.where).expr.fill_null(False) if plan.where else pl.lit(True)
        self._expressions = [
            where.alias("_pass"), *groups.expressions, *cutter.expressions, *aggregates.argument_expressions(),
        ]  # fmt: skip
        fields: tuple[str, ...] = ()
        if plan.notify is not None and isinstance(plan.window, Event):
            fields = (*plan.window.start_columns, *plan.window.end_columns)
        evaluated = [e.meta.output_name() for e in (*cutter.expressions, *aggregates.argument_expressions())]
        kept = dict.fromkeys([*self.identity, *evaluated, *fields])
        #: columns of a prepared row, in order
        self.columns = ["_g", "_seq", "_tab", "_floor", *kept]
        self._inputs = [c.name for c in (*plan.source.columns, *plan.source.tags)]
        self._next = 0

    def prepare(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame | None]:
        """Prepared rows with the columns of the call, and the rows that failed (in the input layout with `_reason`)."""
        if self.plan.source.child is not None:
            rows = rows.filter(pl.col("tbname").str.to_lowercase() == self.plan.source.child.lower())
        made, failed = evaluate(rows.with_row_index("_source"), self._expressions)
        if failed is not None:
            failed = failed.drop("_source")
        numbers = self.groups.numbers(made) if made.height else np.empty(0, np.int64)
        tables = self.tables.numbers(made.select("tbname")) if made.height else np.empty(0, np.int64)
        sequence = np.arange(self._next, self._next + made.height, dtype=np.int64)
        self._next += made.height
        made = made.with_columns(
            pl.Series("_g", numbers, dtype=pl.Int64), pl.Series("_seq", sequence), pl.Series("_tab", tables, dtype=pl.Int64),
            pl.lit(NEVER).alias("_floor"),
        )  # fmt: skip
        return made.select(*self.columns, *_CALL), failed

    def merge(self, rows: pl.DataFrame, history: History | None) -> pl.DataFrame:
        """Rows of op MERGE made whole: NULL columns take the value the row had before, in this call or in *history*."""
        if not (rows.get_column("_op") == MERGE).any():
            return rows
        values = [c for c in self._inputs if c not in self.identity]
        touched = rows.filter(pl.col("_op") == MERGE).select(self.identity).unique()
        rows = rows.with_row_index("_at")
        part = rows.join(touched, on=self.identity, how="semi", nulls_equal=True)
        stored = self._stored(touched, history)
        if stored is not None:
            stored = stored.with_columns(pl.lit(UPSERT, dtype=pl.Int8).alias("_op"), pl.lit(None, dtype=pl.UInt32).alias("_at"))
            part = pl.concat([stored.select(part.columns).cast(dict(part.schema)), part])  # type: ignore[arg-type]
        part = part.with_columns((pl.col("_op") != MERGE).cum_sum().over(self.identity).alias("_life"))
        filled = part.with_columns(
            pl.when(pl.col("_op") == MERGE).then(pl.col(c).forward_fill().over([*self.identity, "_life"])).otherwise(pl.col(c)).alias(c) for c in values
        )
        whole = filled.filter((pl.col("_op") == MERGE) & pl.col("_at").is_not_null()).drop("_life")
        whole = whole.with_columns(pl.lit(UPSERT, dtype=pl.Int8).alias("_op"))
        rest = rows.filter(pl.col("_op") != MERGE)
        return pl.concat([rest, whole]).sort("_at").drop("_at")

    def _stored(self, touched: pl.DataFrame, history: History | None) -> pl.DataFrame | None:
        if history is None:
            return None
        times = touched.get_column(self.time)
        low, high = times.min(), times.max()
        assert isinstance(low, int) and isinstance(high, int)
        found = history.fetch(low, high, touched.get_column("tbname").unique().to_list())
        return found.join(touched, on=self.identity, how="semi", nulls_equal=True) if found.height else None

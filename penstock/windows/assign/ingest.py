"""Source rows → prepared rows: filtered, evaluated once, numbered by partition and arrival.

A prepared row holds only what windows need: `_g` partition, `_seq` arrival number, `_tab` table
number, the time and composite key columns, `_floor` and `_ceiling` (of overlapping windows it
counts in those that end from here to before there), the aggregates' arguments `_x…` and the
cutter's columns; while a call is worked on also `_step`, `_op`, `_now`, `_pass` (WHERE holds). Rows
on which an expression fails come back apart. Refuses to decide what becomes of a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from penstock.sql.plan import Event
from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.assign.cut import Cutter
from penstock.windows.clocks.ticks import ALWAYS, NEVER
from penstock.windows.emit.projection import Projection
from penstock.windows.groups.groups import Groups
from penstock.windows.groups.key_index import KeyIndex
from penstock.windows.kernel import History
from penstock.windows.rows.merge import written
from penstock.windows.rows.row_columns import RowColumns
from penstock.windows.rows.scope import Scope, evaluate

_CALL = ("_step", "_op", "_now", "_pass", "_source")


class Ingest:
    """Prepares the rows of one kernel."""

    def __init__(
        self, scope: Scope, groups: Groups, aggregates: Aggregates, cutter: Cutter
    ) -> None:
        plan = scope.plan
        self.plan = plan
        self.groups = groups
        self.time = plan.source.time_column
        self.key = plan.source.key_column
        self.tables = KeyIndex({"tbname": pl.String()})
        self._source = RowColumns.of(plan.source)
        #: what makes two prepared rows the same row
        self.identity = ["_tab", *self._source.identity[1:]]
        where = scope.over_rows(plan.where).expr.fill_null(False) if plan.where else pl.lit(True)
        ahead = [where.alias("_pass"), *groups.expressions, *cutter.expressions]
        self._expressions = Projection(
            [*ahead, *aggregates.arguments.expressions],
            [*(None for _ in ahead), *aggregates.arguments.quick],
        )
        fields: tuple[str, ...] = ()
        if plan.notify is not None and isinstance(plan.window, Event):
            fields = (*plan.window.start_columns, *plan.window.end_columns)
        evaluated = [
            e.meta.output_name() for e in (*cutter.expressions, *aggregates.arguments.expressions)
        ]
        kept = dict.fromkeys([*self.identity[1:], *evaluated, *fields])
        #: columns of a prepared row, in order
        self.columns = ["_g", "_seq", "_tab", "_floor", "_ceiling", *kept]
        #: how rows are ordered for a cut
        self.order = ["_g", self.time, *([self.key] if self.key else []), "_seq"]
        self._next = 0
        self._saved = 0

    def prepare(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame | None]:
        """Prepared rows with the columns of the call, and the rows that failed (in the input layout
        with `_reason`).
        """
        rows = rows.with_row_index("_source")
        if self.plan.source.child is not None:
            rows = rows.filter(
                pl.col("tbname").str.to_lowercase() == self.plan.source.child.lower()
            )
        made, failed = evaluate(rows, self._expressions)
        if failed is not None:
            failed = failed.drop("_source")
        numbers = self.groups.numbers(made) if made.height else np.empty(0, np.int64)
        tables = numbers
        if not self.groups.whole and made.height:
            tables = self.tables.numbers(made.select("tbname"))
        sequence = np.arange(self._next, self._next + made.height, dtype=np.int64)
        self._next += made.height
        made = made.with_columns(
            pl.Series("_g", numbers, dtype=pl.Int64),
            pl.Series("_seq", sequence),
            pl.Series("_tab", tables, dtype=pl.Int64),
            pl.lit(NEVER).alias("_floor"),
            pl.lit(ALWAYS).alias("_ceiling"),
        )
        return made.select(*self.columns, *_CALL), failed

    def renumbered(
        self, rows: pl.DataFrame, others: pl.DataFrame
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Prepared *rows* and *others* of one call as if they came only now, in the order in which
        they came.
        """
        numbers = np.concatenate(
            [rows.get_column("_seq").to_numpy(), others.get_column("_seq").to_numpy()]
        )
        if not len(numbers):
            return rows, others
        shift = self._next - int(numbers.min())
        self._next = int(numbers.max()) + shift + 1
        return rows.with_columns(pl.col("_seq") + shift), others.with_columns(
            pl.col("_seq") + shift
        )

    def as_now(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Prepared rows that were saved: those of earlier versions have no `_ceiling`."""
        if "_ceiling" not in rows.columns:
            rows = rows.with_columns(pl.lit(ALWAYS).alias("_ceiling"))
        return rows.select(self.columns)

    def tables_of(self, rows: pl.DataFrame) -> list[str] | None:
        """Names of the tables of prepared *rows*; None: any of them."""
        numbers = rows.get_column("_tab").unique()
        if not self.groups.whole:
            return self.tables.keys.get_column("tbname").gather(numbers).to_list()
        return self.names_of(numbers.to_numpy())

    @cached_property
    def empty(self) -> pl.DataFrame:
        """No prepared rows, in their layout."""
        source = self.plan.source
        types: dict[str, pl.DataType] = {
            "_step": pl.UInt32(),
            "_offset": pl.Int64(),
            "_now": pl.Int64(),
            "_op": pl.Int8(),
            "tbname": pl.String(),
            **{c.name: c.type.polars() for c in (*source.columns, *source.tags)},
        }
        return self.prepare(pl.DataFrame(schema=types))[0].select(self.columns)

    def names_of(self, numbers: npt.NDArray[np.int64]) -> list[str] | None:
        """Child tables whose rows make up the partitions *numbers*; None: any table's may."""
        column = self.groups.table_column
        if column is None:
            return None
        return (
            self.groups.keys()
            .get_column(column)
            .gather(numbers)
            .unique(maintain_order=True)
            .to_list()
        )

    def tables_named(self, names: Sequence[str]) -> npt.NDArray[np.int64]:
        """Numbers (`_tab`) of the tables that bear one of *names*."""
        wanted = [n.lower() for n in names]
        column = self.groups.table_column
        if not self.groups.whole:
            known = self.tables.keys.get_column("tbname")
        elif column is not None:
            known = self.groups.keys().get_column(column)
        else:
            only = self.plan.source.child or self.plan.source.table
            return np.arange(len(self.groups)) if only.lower() in wanted else np.empty(0, np.int64)
        return np.flatnonzero(known.str.to_lowercase().is_in(wanted).to_numpy())

    def written(
        self, rows: pl.DataFrame, history: History | None, *, replaces: bool = True
    ) -> pl.DataFrame:
        """See `penstock.windows.rows.merge.written`."""
        return written(rows, history, self._source, replaces=replaces)

    # ---------------------------------------------------------------- state

    def delta(self, full: bool) -> dict[str, pl.DataFrame]:
        """Partitions and tables seen since the last call, and the next arrival number."""
        first = 0 if full else self._saved
        self._saved = len(self.tables)
        return {
            "groups": self.groups.delta(full),
            "tables": self.tables.keys[first:],
            "arrival": pl.DataFrame({"next": [self._next]}),
        }

    def restore(self, frames: dict[str, pl.DataFrame]) -> None:
        """Apply what `delta` gave."""
        if "groups" in frames:
            self.groups.restore(frames["groups"])
        if "tables" in frames:
            self.tables.numbers(frames["tables"])
        self._saved = len(self.tables)
        self._next = frames["arrival"].item()

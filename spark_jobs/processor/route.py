"""Where rows of one exchange stream go: what the scan of a source partition decides before rows
leave it.

Owns WHERE and the keys over source rows, which rows are late for their own table (`_late`: only the
scan sees all of a table), rows that replace earlier ones, whichever group those were in, and the
columns worth sending. Rows of virtual sources are renamed here and joined behind the exchange.
`GroupPlaces` knows the partition of each group, `ExchangeSender` sends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from penstock.rows.rows import Rows
from penstock.rows.versions import DELETE, MERGE
from penstock.runtime.traces import rank
from penstock.sql.plan import Event, State, StreamPlan
from penstock.windows.clocks.clock import TableClock
from penstock.windows.emit.projection import Projection
from penstock.windows.groups.table_names import TableNames
from penstock.windows.kernel import Delta, History
from penstock.windows.rows.merge import written
from penstock.windows.rows.row_columns import RowColumns
from penstock.windows.rows.scope import Scope, evaluate
from penstock.windows.virtual import Mapper
from spark_jobs.processor.group_places import PARTITIONS, GroupPlaces

_META = ("_step", "_offset", "_now", "_op", "tbname")
_CLOCK = "route.tables"


@dataclass(frozen=True)
class Taken:
    """A chunk's rows of one table, whose time column is called `time`; `trace` = (place in the
    chunk, id) of the newest traced record.
    """

    table_id: int
    time: str
    given: Rows
    trace: tuple[int, str] | None = None

    @property
    def rows(self) -> pl.DataFrame:
        """The rows as a frame."""
        return self.given.frame

    def of_child(self, name: str) -> Taken:
        """The rows of one child table, its *name* in lower case."""
        return Taken(
            self.table_id,
            self.time,
            Rows.of_frame(self.rows.filter(pl.col("tbname").str.to_lowercase() == name)),
            self.trace,
        )


def newest(taken: Iterable[Taken]) -> str | None:
    """The trace of the last of the chunk's records that has one, those with a name first."""
    found = max((t.trace for t in taken if t.trace is not None), key=rank, default=None)
    return None if found is None else found[1]


def replaces(plan: StreamPlan) -> bool:
    """Whether a row written again takes the place of the earlier one."""
    return (
        not plan.ignore_update
        or plan.source.result_of is not None
        or plan.trigger.kind == "continuous_window_close"
    )


def columns_to_send(plan: StreamPlan) -> list[str]:
    """Source columns and tags that the plan reads; others need not travel."""
    scope = Scope(plan)
    window = plan.window
    texts = [plan.where, *(k.sql for k in plan.keys), *(a.sql for a in plan.aggregates)]
    found = {plan.source.time_column, plan.source.key_column}
    if window is None:
        texts += [o.sql for o in plan.outputs]
    if isinstance(window, State):
        texts.append(window.sql)
    if isinstance(window, Event):
        texts += [window.start_sql, window.end_sql]
        found |= {*window.start_columns, *window.end_columns}
    for text in texts:
        if text:
            found |= set(scope.over_rows(text).expr.meta.root_names())
    return [c.name for c in (*plan.source.columns, *plan.source.tags) if c.name in found]


class Route:
    """One stream in the scan of one source partition."""

    def __init__(self, plan: StreamPlan, table_names: TableNames | None = None) -> None:
        """*table_names*: numbers tables, for all streams of the process; None: for this one."""
        self._names = TableNames() if table_names is None else table_names
        self._tables = TableClock(self._names)
        self.plan = plan
        self._compile()

    def _compile(self) -> None:
        plan = self.plan
        source = plan.source
        scope = Scope(plan)
        self._mapper = Mapper(source) if source.kind == "virtual" else None
        key_names = [f"_k{i}" for i in range(len(plan.keys))]
        keys = [
            scope.over_rows(key.sql).expr.alias(name)
            for name, key in zip(key_names, plan.keys, strict=True)
        ]
        fixed = {"tbname", *(t.name for t in source.tags)}
        #: whether a table's rows can never change their group
        self._constant = all(set(k.meta.root_names()) <= fixed for k in keys)
        where = scope.over_rows(plan.where).expr.fill_null(False) if plan.where else pl.lit(True)
        #: columns that `meet` looks at
        self.looked_at = [source.time_column, *where.meta.root_names()]
        self._where = Projection([where.alias("_pass")])
        if self._mapper is not None:
            # a partial row says nothing about WHERE; and all parts of a row must meet
            where = pl.lit(True)
            keys = keys if self._constant else []
        only: int | None = None
        if not key_names:
            only = 0
        elif self._mapper is not None and not self._constant:
            only = plan.stream_id % PARTITIONS
        self._places = GroupPlaces(plan.target.table, key_names, only)
        self._expressions = Projection([where.alias("_pass"), *keys])
        self._columns = RowColumns.of(source)
        self._replaces = self._mapper is None and replaces(plan)
        self._sent = [*_META, *columns_to_send(plan), "_late"]

    def replan(self, plan: StreamPlan) -> None:
        """Go on with *plan*, which reads less than before."""
        self.plan = plan
        self._compile()

    def split(
        self, taken: Sequence[Taken], history: History | None
    ) -> tuple[list[tuple[int, pl.DataFrame]], pl.DataFrame | None]:
        """(exchange partition, rows) in order, and the rows on which an expression failed.

        *taken*: of the chunk all that the stream reads; only a virtual source has several tables.
        *history*: of the table, for partial writes.
        """
        if self._mapper is not None:
            rows = self._map_rows(self._mapper, taken)
            if not rows.height:
                return [], None
            tables = self._names.numbers(rows.select(pl.col("_origin").alias("tbname")))
        else:
            rows = written(taken[0].rows, history, self._columns, replaces=self._replaces)
            tables = self._names.numbers(rows)
        times = rows.get_column(self.plan.source.time_column).to_numpy()
        steps = rows.get_column("_step").to_numpy()
        behind = (
            self._tables.behind(tables, times)
            if self._replaces
            else np.zeros(rows.height, np.bool_)
        )
        made, failed = evaluate(
            rows.with_columns(pl.Series("_behind", behind), pl.Series("_table", tables)),
            self._expressions,
        )
        counts = made.get_column("_pass") & (made.get_column("_op") != DELETE)
        late = np.zeros(made.height, np.bool_)
        if failed is not None:
            steps = made.get_column("_step").to_numpy()
            times = made.get_column(self.plan.source.time_column).to_numpy()
            tables = made.get_column("_table").to_numpy()
        if counts.all():
            late = self._tables.late(tables, times, steps)
            self._tables.advance(tables, times)
        else:
            chosen = counts.to_numpy()
            late[chosen] = self._tables.late(tables[chosen], times[chosen], steps[chosen])
            self._tables.advance(tables[chosen], times[chosen])
        made = made.with_columns(pl.Series("_late", late))
        return self._parts(made), failed.drop("_behind", "_table") if failed is not None else None

    def meet(self, rows: pl.DataFrame) -> None:
        """Versions of rows that the source held when the stream began, if it fills its history:
        what comes for their tables may take their place, and be late behind them. Columns:
        `tbname`, `_op`, `looked_at`.
        """
        there, _ = evaluate(rows.filter(pl.col("_op") != DELETE), self._where)
        # what a part of a row leaves as it was is not looked up
        there = there.filter(pl.col("_pass") | (pl.col("_op") >= MERGE))
        self._tables.advance(
            self._names.numbers(there), there.get_column(self.plan.source.time_column).to_numpy()
        )

    @staticmethod
    def _map_rows(mapper: Mapper, taken: Sequence[Taken]) -> pl.DataFrame:
        """Partial rows of the virtual source, in the order of the log, with steps counted over all
        tables.
        """
        parts = [mapper.rows(t.table_id, t.time, t.rows) for t in taken]
        if len(parts) == 1:
            return parts[0]
        # a record is of one table
        rows = pl.concat(parts).sort("_offset", maintain_order=True)
        return rows.with_columns(
            pl.struct("_offset", "_step").rle_id().cast(pl.UInt32).alias("_step")
        )

    def _parts(self, made: pl.DataFrame) -> list[tuple[int, pl.DataFrame]]:
        gone = pl.col("_op") == DELETE
        if self._replaces and not self._constant:
            # the earlier version may be in any group: all partitions hear that it is gone, its new
            # one that it is there
            leaves = gone | pl.col("_behind")
        elif self._replaces:
            # its group is the same, but it may pass WHERE no more
            leaves = gone | (pl.col("_behind") & ~pl.col("_pass"))
        else:
            leaves = gone
        stays = pl.col("_pass") & ~gone
        made = self._places.add_to(made.filter(leaves | stays))
        if not made.height:
            return []
        everywhere = made.select(leaves.any()).item()
        as_delete = pl.lit(DELETE, dtype=pl.Int8).alias("_op")
        parts = []
        for number in range(PARTITIONS):
            mine = stays & (pl.col("_place") == number)
            if everywhere:
                here = made.select((mine).alias("_mine"), leaves.alias("_leaves"))
                part = made.with_columns(here).filter(pl.col("_mine") | pl.col("_leaves"))
                part = part.with_columns(
                    pl.when(pl.col("_mine")).then(pl.col("_op")).otherwise(as_delete).alias("_op")
                )
            else:
                part = made.filter(mine)
            if part.height:
                parts.append((number, part.select(self._sent)))
        return parts

    def select_finished(self, number: int, rows: pl.DataFrame) -> pl.DataFrame:
        """Those of *rows* whose group is finished at exchange partition *number*."""
        if not rows.height:
            return rows
        made, _ = evaluate(rows, self._expressions)
        return self._places.add_to(made).filter(pl.col("_place") == number).select(rows.columns)

    # ---------------------------------------------------------------- state

    def delta(self, full: bool) -> Delta:
        """How far each table has come, as changed since the last call."""
        frame = self._tables.delta(full)
        return Delta({_CLOCK: frame} if frame.height else {}, full)

    def restore(self, deltas: Iterable[Delta]) -> None:
        for delta in deltas:
            if _CLOCK in delta.frames:
                self._tables.restore(delta.frames[_CLOCK])

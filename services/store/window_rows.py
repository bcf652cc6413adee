"""The rows of one window select: found when the query is written for DuckDB, and computed when it
is executed, by DuckDB or by the kernels that streams have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from penstock.sql.plan import Column, StreamPlan
from penstock.sql.relational import ComputedRows
from penstock.windows import make_kernel
from services.store import interval_sql, session_sql
from services.store.late_aggregates import add_late
from services.store.plan_notes import (
    DUCKDB,
    KERNELS,
    RowEngine,
    describe_windows,
    names_read,
)
from services.store.row_origins import PlacedRows, QueryEngine, QueryTables, SubqueryRows
from services.store.window_engines import unfilled
from services.store.window_fill import FillClause, QueryFill
from services.store.window_range import RANGE_NAMES, TimeRange
from services.store.windowed import BoundWindows, key_names


class _History:
    """History of a query's kernel: the rows as they are now."""

    def __init__(self, frame: pl.DataFrame, time_column: str) -> None:
        self._frame = frame
        self._time = time_column

    def fetch(self, low: int, high: int, tables: Sequence[str] | None = None) -> pl.DataFrame:
        rows = self._frame.filter(pl.col(self._time).is_between(low, high))
        return rows if tables is None else rows.filter(pl.col("tbname").is_in(list(tables)))

    def fetch_versions(
        self, low: int, high: int, tables: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """The same as `fetch`: of a row as it is now there is one version."""
        return self.fetch(low, high, tables)


class WindowSelectRows:
    """The windows of one select. `node` is what they are in a plan."""

    def __init__(self, bound: BoundWindows, relation: str, moment: int) -> None:
        """
        Args:
            relation: name of the rows.
            moment: of the query, in nanoseconds.
        """
        self._bound = bound
        self._moment = moment
        self.node = describe_windows(bound, relation)
        #: the rows that windows are cut from, once they are found
        self._origin: PlacedRows
        #: DuckDB's SELECT of the windows, once it is known, where it computes them as it reads them
        self.sql = ""

    @property
    def engine(self) -> RowEngine:
        """Who computes the windows, and what is read for them."""
        if self._bound.engine == "kernels":
            return RowEngine(KERNELS)
        return RowEngine(DUCKDB, names_read(self._bound))

    @property
    def is_filled(self) -> bool:
        """Whether `fill` leaves something with the engine."""
        return not self._is_sql or isinstance(self._bound.source.origin, SubqueryRows)

    @property
    def _is_sql(self) -> bool:
        """Whether DuckDB computes the windows as it reads them."""
        return self._bound.engine == "interval" and self._bound.in_place

    def place(self, queries: QueryTables) -> ComputedRows:
        """Find the rows that windows are cut from; return the node with them in it."""
        self._origin = self._bound.source.origin.place(queries)
        if self._is_sql:
            self.sql = interval_sql.named(self._grouped(), self._bound.columns)
        return replace(self.node, source=self._origin.node)

    def fill(self, queries: QueryEngine, *, compute: bool) -> None:
        """Let the relation have its rows.

        Args:
            compute: else it has none of them, and nothing is read.
        """
        if self._origin.view is not None:
            queries.add_view(*self._origin.view)
        if self._is_sql:
            return
        name = self.node.relation
        if not compute:
            queries.add_frame(name, self._no_rows())
        elif self._bound.engine == "session" and self._bound.in_place:
            self._fill_with_sessions(queries, name)
        else:
            queries.add_frame(name, self._named(self._rows(queries)))

    def _fill_with_sessions(self, queries: QueryEngine, name: str) -> None:
        grouped = self._sessions(queries)
        if grouped is None:
            queries.add_frame(name, self._named(self._of_kernels(queries)))
        else:
            queries.add_view(name, interval_sql.named(grouped, self._bound.columns))

    # ---------------------------------------------------------------- who computes

    def _rows(self, queries: QueryEngine) -> pl.DataFrame:
        """Return the windows with all that is to be added to them, times in ticks."""
        bound = self._bound
        rows = self._computed(queries)
        if bound.late is not None:
            rows = add_late(
                queries,
                bound.statement,
                bound.source,
                self._origin.sql,
                bound.parts,
                bound.late,
                bound.planned,
                rows,
            )
        if bound.plan.fill.mode != "none":
            ticks = bound.source.ticks(self._moment)
            rows = QueryFill(bound.plan, self._fill_clause(), ticks).fill(rows)
        return _with_range(rows, bound.asked) if bound.parts.ranged else rows

    def _computed(self, queries: QueryEngine) -> pl.DataFrame:
        engine = self._bound.engine
        grouped = None
        if engine == "interval":
            grouped = self._grouped()
        elif engine == "session":
            grouped = self._sessions(queries)
        if grouped is None:
            return self._of_kernels(queries)
        columns = self._bound.plan.target.columns
        return queries.fetch(grouped).select(pl.col(c.name).cast(c.type.polars()) for c in columns)

    def _read(self) -> str:
        """Return FROM and WHERE of the rows that windows are cut from."""
        return self._bound.source.read(self._origin.sql, self._bound.condition)

    def _grouped(self) -> str:
        grouped = interval_sql.sql(unfilled(self._bound.plan), self._read())
        assert grouped is not None  # the engine of the windows says so
        return grouped

    def _sessions(self, queries: QueryEngine) -> str | None:
        """Return DuckDB's SELECT of sessions; None: the kernels must look at the rows."""
        sessions = session_sql.sessions(unfilled(self._bound.plan), self._read())
        assert sessions is not None  # the engine of the windows says so
        numbered = sessions.numbered(queries.fetch(sessions.rows))
        if numbered is None:
            return None
        name = queries.new_name()
        queries.add_frame(name, numbered)
        return sessions.sql(name)

    def _of_kernels(self, queries: QueryEngine) -> pl.DataFrame:
        bound = self._bound
        rows = bound.source.fetch(queries, self._read(), self._moment)
        return _windows_of(rows, unfilled(bound.plan), bound.by)

    # ---------------------------------------------------------------- what is around windows

    def _fill_clause(self) -> FillClause:
        node = self._bound.select.args["fill"]
        forced = node.args["mode"].endswith("_F")
        return FillClause(self._bound.statement, node, self._bound.asked.ends, forced)

    def _named(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return *rows*, whose times are ticks, in their order and with the names and the types of
        the relation.
        """
        bound = self._bound
        target = bound.plan.target
        frame = rows.with_columns(
            pl.col(name).cast(pl.Datetime(target.precision))
            for name, kind in bound.kinds.items()
            if kind.kind == "TIMESTAMP"
        )
        return frame.sort(target.columns[0].name).rename(bound.names)

    def _no_rows(self) -> pl.DataFrame:
        kinds = {name: kind.polars() for name, kind in self._bound.kinds.items()}
        return self._named(pl.DataFrame(schema=kinds))


def _windows_of(rows: pl.DataFrame, plan: StreamPlan, by: Sequence[Column]) -> pl.DataFrame:
    """Return the windows that the kernels compute of *rows*, times in ticks.

    Args:
        by: columns that tell partitions apart; they come under names of their own.
    """
    keys = key_names(by)
    made = make_kernel(plan, _History(rows, plan.source.time_column)).load_history().rows
    if made is None:
        kinds = {c.name: c.type for c in plan.target.columns}
        kinds |= {name: column.type for name, column in keys.items()}
        return pl.DataFrame(schema={name: kind.polars() for name, kind in kinds.items()})
    listed = [c.name for c in plan.target.columns]
    return made.select(*listed, **{name: pl.col(c.name) for name, c in keys.items()})


def _with_range(rows: pl.DataFrame, asked: TimeRange) -> pl.DataFrame:
    """Return windows with the ends of the range of times, which are the same for all."""
    ends = zip(RANGE_NAMES, (asked.low, asked.high, asked.duration), strict=True)
    return rows.with_columns(pl.lit(tick, pl.Int64).alias(name) for name, tick in ends)

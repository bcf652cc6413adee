"""Window clauses in a query: planned like a stream and computed by the stream kernels over the rows
that are there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import duckdb
import polars as pl
from sqlglot import exp

from penstock.sql.functions.base import BIGINT, TIMESTAMP
from penstock.sql.nodes import CountWindow
from penstock.sql.plan import Column, Duration, Fill, StreamPlan, Trigger
from penstock.sql.planner import PlannedStream, plan_stream
from penstock.sql.relational import Output, Scan, TableColumns
from penstock.sql.source_names import TIME_ALIASES
from penstock.sql.statements import CreateStream, Name, Query, StreamOptions
from penstock.types import ColumnType
from penstock.windows import make_kernel
from services.store import interval_sql, session_sql
from services.store.late_aggregates import add_late
from services.store.row_series import refuse_in_windows
from services.store.window_fill import FillClause, QueryFill
from services.store.window_limits import counts_by_partition
from services.store.window_range import RANGE_NAMES, TimeRange, range_of, start_with
from services.store.window_select import SplitSelect, column_name, split
from services.store.window_source import Tables, WindowSource, find_source

_RESULT = "_penstock_windows"
_TBNAME = "_penstock_tbname"


@dataclass(frozen=True)
class Windows:
    """Result of a window select: `frame` has the columns of `select.inner` (times as timestamps)
    under the names of `window_select.column_name`, `shown` what the planner calls them, `columns`
    the types of all. `keys` name columns of it that tell partitions apart. Where DuckDB computes
    the rows, `sql` does so, and the frame is empty. `source` is what they were cut from.
    """

    select: SplitSelect
    source: Scan
    frame: pl.DataFrame
    shown: list[str]
    columns: TableColumns
    keys: list[str]
    sql: str = ""
    by_kernels: bool = False

    @property
    def start(self) -> str:
        """The column of the beginnings of windows."""
        return self.frame.columns[0]

    def outer(self, relation: str) -> exp.Select:
        """Return the select over these rows, which are called *relation*."""
        return self.select.outer(relation, self.shown)


class _Rows:
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


def evaluate(
    queries: Tables,
    con: duckdb.DuckDBPyConnection,
    statement: Query,
    select: exp.Select,
    timezone: str,
    moment: int,
    *,
    compute: bool = True,
) -> Windows:
    """Compute one window select, at *moment* in nanoseconds; or only say what its rows are like.

    Raises:
        SqlSemanticError: it has no source that windows can be cut from, or the planner refuses it.
    """
    refuse_in_windows(select, statement)
    source = find_source(queries, statement, select, timezone)
    parts = _split(statement, source)
    planned = _plan(source, statement, parts.inner, timezone)
    plan = planned.plan
    asked = range_of(source, timezone, moment)
    plan = start_with(plan, asked) if parts.aligned else plan
    by = _partition_columns(plan) if counts_by_partition(select) else []
    unfilled = replace(plan, fill=Fill("none"))
    read, whole = source.rows(planned.query.select, timezone)
    # DuckDB's windows have no number of their partition
    grouped = _group_in_duckdb(queries, con, unfilled, read, compute) if whole and not by else None
    if grouped is not None and plan.fill.mode == "none" and not (parts.late or parts.ranged):
        windows = _shape(source, plan, _no_rows(plan, by), parts, by, {})
        return replace(windows, sql=interval_sql.named(grouped, windows.columns))
    rows = _no_rows(plan, by)
    if grouped is not None:
        rows = _of_duckdb(con, plan, grouped, compute)
    elif compute:
        rows = _of_kernels(source.fetch(con, read, moment), unfilled, by)
    late = add_late(queries, con, statement, source, parts, replace(planned, plan=plan), rows)
    rows = late.rows
    if plan.fill.mode != "none" and compute:
        clause = _fill_clause(statement, select, asked)
        rows = QueryFill(plan, clause, source.ticks(moment)).fill(rows)
    more = dict(late.added)
    if parts.ranged:
        more |= dict(zip(RANGE_NAMES, (TIMESTAMP, TIMESTAMP, BIGINT), strict=True))
        rows = _with_range(rows, asked)
    windows = _shape(source, plan, rows, parts, by, more)
    return replace(windows, by_kernels=grouped is None)


def _fill_clause(statement: Query, select: exp.Select, asked: TimeRange) -> FillClause:
    node = select.args["fill"]
    return FillClause(statement, node, asked.ends, node.args["mode"].endswith("_F"))


def _with_range(rows: pl.DataFrame, asked: TimeRange) -> pl.DataFrame:
    """Return windows with the ends of the range of times, which are the same for all."""
    ends = zip(RANGE_NAMES, (asked.low, asked.high, asked.duration), strict=True)
    return rows.with_columns(pl.lit(tick, pl.Int64).alias(name) for name, tick in ends)


def _group_in_duckdb(
    queries: Tables, con: duckdb.DuckDBPyConnection, plan: StreamPlan, read: str, compute: bool
) -> str | None:
    """Return DuckDB's SELECT of windows that it computes as the kernels do; None: it does not."""
    grouped = interval_sql.sql(plan, read)
    if grouped is not None:
        return grouped
    sessions = session_sql.sessions(plan, read)
    name = queries.new_name()
    if sessions is None or not sessions.register(con, name, compute=compute):
        return None
    return sessions.sql(name)


def _of_duckdb(
    con: duckdb.DuckDBPyConnection, plan: StreamPlan, grouped: str, compute: bool
) -> pl.DataFrame:
    text = grouped if compute else f"SELECT * FROM ({grouped}) LIMIT 0"
    rows = pl.DataFrame(con.sql(text).to_arrow_table())
    return rows.select(pl.col(c.name).cast(c.type.polars()) for c in plan.target.columns)


def _of_kernels(rows: pl.DataFrame, plan: StreamPlan, by: Sequence[Column]) -> pl.DataFrame:
    """Return the windows of *plan*, with times in ticks.

    Args:
        by: columns that tell partitions apart; they come under names of their own.
    """
    made = make_kernel(plan, _Rows(rows, plan.source.time_column)).load_history().rows
    if made is None:
        return _no_rows(plan, by)
    listed = [c.name for c in plan.target.columns]
    return made.select(*listed, **{name: pl.col(c.name) for name, c in _key_names(by).items()})


def _no_rows(plan: StreamPlan, by: Sequence[Column]) -> pl.DataFrame:
    kinds = {c.name: c.type for c in plan.target.columns}
    kinds |= {name: column.type for name, column in _key_names(by).items()}
    return pl.DataFrame(schema={name: kind.polars() for name, kind in kinds.items()})


def _key_names(by: Sequence[Column]) -> dict[str, Column]:
    return {f"_penstock_key_{n}": column for n, column in enumerate(by)}


def _split(statement: Query, source: WindowSource) -> SplitSelect:
    names = {c.name.lower() for c in source.columns}
    names |= {"tbname", *TIME_ALIASES}
    return split(statement, source.select, names, source.starred, source.view.function)


def _plan(
    source: WindowSource, statement: Query, select: exp.Select, timezone: str
) -> PlannedStream:
    database = source.database
    inner = select.copy()
    inner.args["from_"].this.set("db", exp.to_identifier(database))
    # a result table can't have a column `tbname`, a query's result can
    inner.set(
        "expressions",
        [
            exp.alias_(e, _TBNAME)
            if isinstance(e, exp.Column) and e.name.lower() == "tbname"
            else e
            for e in inner.expressions
        ],
    )
    # a count window wants a watermark in a stream; in a query nothing is late, so any will do
    watermark = Duration(1, "a") if isinstance(inner.args["window"], CountWindow) else None
    stream = CreateStream(
        source=statement.source,
        start=statement.start,
        end=statement.end,
        stream=Name("query", database),
        target=Name(_RESULT, database),
        query=inner,
        of_query=True,
        options=StreamOptions(trigger=Trigger("at_once"), watermark=watermark),
    )
    return plan_stream(
        stream, source.view, stream_id=0, target_id=0, timezone=timezone, database=database
    )


def _shape(
    source: WindowSource,
    plan: StreamPlan,
    rows: pl.DataFrame,
    select: SplitSelect,
    by: Sequence[Column],
    more: Mapping[str, ColumnType],
) -> Windows:
    """Give the computed *rows* the names and types of a query's answer; *more* are the types of
    columns that no plan knows.
    """
    target = plan.target
    keys = _key_names(by)
    kinds = {c.name: c.type for c in target.columns} | {n: c.type for n, c in keys.items()}
    kinds |= more
    frame = rows.with_columns(
        pl.col(name).cast(pl.Datetime(target.precision))
        for name, kind in kinds.items()
        if kind.kind == "TIMESTAMP"
    )
    listed = select.columns(plan)
    names = {name: name for name in kinds}
    names |= {name: column_name(position) for position, name in enumerate(listed)}
    frame = frame.sort(target.columns[0].name).rename(names)
    outputs = (Output(names[name], kind, target.precision) for name, kind in kinds.items())
    return Windows(
        select,
        source.scan,
        frame,
        ["tbname" if name == _TBNAME else name for name in listed],
        TableColumns(tuple(outputs), target.precision, stored=False),
        list(keys),
    )


def _partition_columns(plan: StreamPlan) -> list[Column]:
    """Return the columns of results that order partitions: their keys, then the group's number,
    which no two partitions share.
    """
    keys = {key.alias.lower() for key in plan.keys}
    selected = [c for c in plan.target.columns if c.name.lower() in {*keys, _TBNAME}]
    return [*selected, *plan.target.tags]

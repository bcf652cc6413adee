"""Window clauses in a query: planned like a stream and computed by the stream kernels over the rows
that are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import duckdb
import polars as pl
from sqlglot import exp

from penstock.catalog.model import Table
from penstock.errors import SqlSemanticError
from penstock.sql.nodes import CountWindow
from penstock.sql.plan import TICKS_PER_SECOND, Column, Duration, StreamPlan, Trigger
from penstock.sql.planner import plan_stream
from penstock.sql.planning.view import SchemaView
from penstock.sql.relational import Output, QueryScope, TableColumns, bind
from penstock.sql.statements import CreateStream, Name, Query, StreamOptions
from penstock.windows import make_kernel
from services.store import interval_sql, session_sql
from services.store.binding import Context, columns_of
from services.store.partition_limits import counts_by_partition
from services.store.relation import quote
from services.store.resolve import ResolvedTable
from services.store.scope import Scope, scope_of
from services.store.translate import query

_RESULT = "_penstock_windows"
#: of a second
_NANOS = 1_000_000_000
_TBNAME = "_penstock_tbname"
_REALS = ("FLOAT", "DOUBLE")


class Tables(Protocol):
    """What computing windows needs of the query around it."""

    def resolve(self, table: exp.Table) -> ResolvedTable: ...

    def relation(
        self,
        con: duckdb.DuckDBPyConnection,
        prefix: str,
        found: ResolvedTable,
        scope: Scope,
    ) -> str: ...

    def view(self) -> SchemaView: ...

    def new_name(self) -> str: ...


@dataclass(frozen=True)
class Windows:
    """Result of a window select: `frame` has the output columns (times as timestamps), `shown`
    those that were asked for, `columns` the types of all. `keys` name columns of it that tell
    partitions apart. Where DuckDB computes the rows, `sql` does so, and the frame is empty.
    """

    frame: pl.DataFrame
    shown: list[str]
    columns: TableColumns
    keys: list[str]
    sql: str = ""


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
    """Compute one window select over a table, at *moment* in nanoseconds; or only say what its rows
    are like.

    Raises:
        SqlSemanticError: its source is not one table, or the planner refuses it.
    """
    source = select.args["from_"].this if select.args.get("from_") else None
    if not isinstance(source, exp.Table) or select.args.get("joins"):
        raise statement.error(
            "a window clause needs one table in FROM",
            select,
            code="E_UNSUPPORTED_QUERY",
            hint="store the inner query's rows in a table, or window each table first",
        )
    found = queries.resolve(source)
    plan = _plan(queries, statement, select, found.table.database, timezone)
    source_rows, whole = _source_rows(queries, con, statement, select, found, timezone)
    limited = counts_by_partition(select)
    # DuckDB's windows have no number of their partition
    grouped = interval_sql.sql(plan, source_rows) if whole and not limited else None
    if grouped is not None:
        windows = _shape(plan, None, select, [])
        return replace(windows, sql=interval_sql.named(grouped, windows.columns))
    sessions = session_sql.sessions(plan, source_rows) if whole and not limited else None
    name = queries.new_name()
    if sessions is not None and (not compute or sessions.register(con, name)):
        windows = _shape(plan, None, select, [])
        return replace(windows, sql=interval_sql.named(sessions.sql(name), windows.columns))
    if not compute:
        return _shape(plan, None, select, [])
    rows = _fetch(con, found.table, source_rows, moment)
    emission = make_kernel(plan, _Rows(rows, plan.source.time_column)).load_history()
    keys = _partition_columns(plan) if limited else []
    return _shape(plan, emission.rows, select, keys)


def _plan(
    queries: Tables, statement: Query, select: exp.Select, database: str, timezone: str
) -> StreamPlan:
    inner = select.copy()
    inner.args["from_"].this.set("db", exp.to_identifier(database))
    for key in ("order", "limit", "offset", "distinct", "slimit", "soffset"):
        inner.set(key, None)
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
        stream, queries.view(), stream_id=0, target_id=0, timezone=timezone, database=database
    ).plan


def _source_rows(
    queries: Tables,
    con: duckdb.DuckDBPyConnection,
    statement: Query,
    select: exp.Select,
    found: ResolvedTable,
    timezone: str,
) -> tuple[str, bool]:
    """FROM and WHERE of the table's rows, and whether DuckDB alone may decide which those are."""
    table = found.table
    source = select.args["from_"].this
    scope = scope_of(source, table, timezone)
    relation = queries.relation(con, queries.new_name(), found, scope)
    text = f"FROM ({relation}) AS {quote(source.alias_or_name)}"
    where = select.args.get("where")
    if where is None:
        return text, True
    if not _pushable(where):
        return text, False
    condition = _condition(statement, select, found, timezone)
    # DuckDB takes NaN for whatever the statistics of a file say of its other values
    reals = {c.name.lower() for c in (*table.columns, *table.tags) if c.type.kind in _REALS}
    named = {c.name.lower() for c in where.find_all(exp.Column)}
    return f"{text} WHERE {condition}", not named & reals


def _times(table: Table) -> list[str]:
    return [c.name for c in (*table.columns, *table.tags) if c.type.kind == "TIMESTAMP"]


def _fetch(
    con: duckdb.DuckDBPyConnection, table: Table, source_rows: str, moment: int
) -> pl.DataFrame:
    """The table's rows in the kernels' input layout; WHERE already narrows what is read."""
    columns = [c.name for c in (*table.columns, *table.tags)]
    times = _times(table)
    listed = ", ".join(["tbname", *(quote(c) for c in columns)])
    rows = pl.DataFrame(con.sql(f"SELECT {listed} {source_rows}").to_arrow_table())
    types = {c.name: c.type.polars() for c in (*table.columns, *table.tags)}
    return rows.with_columns(
        *(pl.col(t).cast(pl.Datetime(table.precision)).cast(pl.Int64) for t in times),
        *(pl.col(n).cast(k) for n, k in types.items() if n not in times),
        _step=pl.lit(0, pl.UInt32),
        _offset=pl.lit(0, pl.Int64),
        _now=pl.lit(moment // (_NANOS // TICKS_PER_SECOND[table.precision]), pl.Int64),
        _op=pl.lit(0, pl.Int8),
    ).sort(table.time_column, "tbname")


def _condition(statement: Query, select: exp.Select, found: ResolvedTable, timezone: str) -> str:
    """Return DuckDB's text of WHERE, over the one table that FROM names."""
    source = select.args["from_"].this
    narrow = exp.select("1").from_(source.copy()).where(select.args["where"].this.copy())
    scope = QueryScope(statement.source, lambda _: columns_of(found.table), timezone)
    bound = bind(narrow, scope).tree
    bound.args["from_"].this.set("db", None)
    text = query(bound, Context({}, timezone, relations=frozenset((source.name,))))
    return text.split(" WHERE ", 1)[1]


def _pushable(where: exp.Where) -> bool:
    """Only comparisons of columns with literals: the kernel applies WHERE in any case, this only
    reads less.
    """
    allowed = (
        exp.Where,
        exp.And,
        exp.Column,
        exp.Identifier,
        exp.Literal,
        exp.EQ,
        exp.GT,
        exp.GTE,
        exp.LT,
        exp.LTE,
        exp.Between,
        exp.Neg,
    )
    return all(isinstance(n, allowed) for n in where.walk())


def _shape(
    plan: StreamPlan, rows: pl.DataFrame | None, select: exp.Select, by: Sequence[Column]
) -> Windows:
    """Give the computed *rows* the names and types of a query's answer.

    Args:
        by: columns that tell partitions apart; they come under names of their own.
    """
    target = plan.target
    keys = {f"_penstock_key_{n}": column for n, column in enumerate(by)}
    kinds = {c.name: c.type for c in target.columns} | {n: c.type for n, c in keys.items()}
    if rows is None:
        frame = pl.DataFrame(schema={name: kind.polars() for name, kind in kinds.items()})
    else:
        columns = (c.name for c in target.columns)
        frame = rows.select(*columns, **{name: pl.col(c.name) for name, c in keys.items()})
    frame = frame.with_columns(
        pl.col(name).cast(pl.Datetime(target.precision))
        for name, kind in kinds.items()
        if kind.kind == "TIMESTAMP"
    )
    added = len(target.columns) - len(select.expressions)
    if added not in (0, 1):
        raise SqlSemanticError(
            "`*` has no meaning in a window query",
            code="E_UNSUPPORTED_QUERY",
            hint="name the columns or aggregates",
        )
    shown = {name: "tbname" if name == _TBNAME else name for name in kinds}
    frame = frame.sort(target.columns[0].name).rename(shown)
    outputs = (Output(shown[name], kind, target.precision) for name, kind in kinds.items())
    return Windows(
        frame,
        [shown[c.name] for c in target.columns[added:]],
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

"""Window clauses in a query: planned like a stream and computed by the stream kernels over the rows
that are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import duckdb
import polars as pl
from sqlglot import exp

from penstock.errors import SqlSemanticError
from penstock.sql.nodes import CountWindow
from penstock.sql.plan import TICKS_PER_SECOND, Duration, StreamPlan, Trigger
from penstock.sql.planner import plan_stream
from penstock.sql.planning.view import SchemaView
from penstock.sql.statements import CreateStream, Name, Query, StreamOptions
from penstock.windows import make_kernel
from services.store.binding import BoundTable, Context
from services.store.relation import quote
from services.store.resolve import ResolvedTable
from services.store.translate import query

_RESULT = "_penstock_windows"
#: of a second
_NANOS = 1_000_000_000
_TBNAME = "_penstock_tbname"


class Tables(Protocol):
    """What computing windows needs of the query around it."""

    def resolve(self, database: str, table: exp.Table, statement: Query) -> ResolvedTable: ...

    def relation(
        self, con: duckdb.DuckDBPyConnection, prefix: str, found: ResolvedTable
    ) -> str: ...

    def view(self) -> SchemaView: ...


@dataclass(frozen=True)
class Windows:
    """Result of a window select: `frame` has the output columns (times as timestamps), `shown`
    those that were asked for.
    """

    frame: pl.DataFrame
    shown: list[str]
    types: dict[str, str]


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
    database: str,
    timezone: str,
    moment: int,
) -> Windows:
    """Compute one window select over a table, at *moment* in nanoseconds.

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
    found = queries.resolve(database, source, statement)
    plan = _plan(queries, statement, select, found.table.database, timezone)
    rows = _fetch(queries, con, select, found, timezone, moment)
    emission = make_kernel(plan, _Rows(rows, plan.source.time_column)).load_history()
    return _shape(plan, emission.rows, select)


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
        options=StreamOptions(trigger=Trigger("at_once"), watermark=watermark),
    )
    return plan_stream(
        stream, queries.view(), stream_id=0, target_id=0, timezone=timezone, database=database
    ).plan


def _fetch(
    queries: Tables,
    con: duckdb.DuckDBPyConnection,
    select: exp.Select,
    found: ResolvedTable,
    timezone: str,
    moment: int,
) -> pl.DataFrame:
    """The table's rows in the kernels' input layout; WHERE already narrows what is read."""
    table = found.table
    relation = queries.relation(con, "_penstock_window_source", found)
    columns = [c.name for c in (*table.columns, *table.tags)]
    times = [c.name for c in (*table.columns, *table.tags) if c.type.kind == "TIMESTAMP"]
    listed = ", ".join(["tbname", *(quote(c) for c in columns)])
    text = f"SELECT {listed} FROM ({relation}) AS {quote(select.args['from_'].this.alias_or_name)}"
    where = select.args.get("where")
    if where is not None and _pushable(where):
        bound = BoundTable("", tuple(columns), frozenset(t.lower() for t in times), table.precision)
        context = Context({select.args["from_"].this.alias_or_name.lower(): bound}, timezone)
        condition = query(exp.select("1").where(where.this.copy()), context).split(" WHERE ", 1)[1]
        text += f" WHERE {condition}"
    rows = pl.DataFrame(con.sql(text).to_arrow_table())
    types = {c.name: c.type.polars() for c in (*table.columns, *table.tags)}
    return rows.with_columns(
        *(pl.col(t).cast(pl.Datetime(table.precision)).cast(pl.Int64) for t in times),
        *(pl.col(n).cast(k) for n, k in types.items() if n not in times),
        _step=pl.lit(0, pl.UInt32),
        _offset=pl.lit(0, pl.Int64),
        _now=pl.lit(moment // (_NANOS // TICKS_PER_SECOND[table.precision]), pl.Int64),
        _op=pl.lit(0, pl.Int8),
    ).sort(table.time_column, "tbname")


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


def _shape(plan: StreamPlan, rows: pl.DataFrame | None, select: exp.Select) -> Windows:
    target = plan.target
    schema = {c.name: c.type.polars() for c in target.columns}
    frame = rows.select(list(schema)) if rows is not None else pl.DataFrame(schema=schema)
    frame = frame.with_columns(
        pl.col(c.name).cast(pl.Datetime(target.precision))
        for c in target.columns
        if c.type.kind == "TIMESTAMP"
    )
    added = len(target.columns) - len(select.expressions)
    if added not in (0, 1):
        raise SqlSemanticError(
            "`*` has no meaning in a window query",
            code="E_UNSUPPORTED_QUERY",
            hint="name the columns or aggregates",
        )
    names = {c.name: "tbname" if c.name == _TBNAME else c.name for c in target.columns}
    frame = frame.sort(target.columns[0].name).rename(names)
    return Windows(
        frame,
        [names[c.name] for c in target.columns[added:]],
        {names[c.name]: str(c.type) for c in target.columns},
    )

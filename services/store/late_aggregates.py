"""Aggregates of windows that the kernels do not have: of DISTINCT values, and those that only
queries have.

The kernels say which windows there are. DuckDB then joins the rows to them by partition and time,
and groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import polars as pl
from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.functions.base import BIGINT
from penstock.sql.plan import Count, Interval, Session, StreamPlan
from penstock.sql.planner import PlannedStream
from penstock.sql.relational import (
    Binding,
    Output,
    Scan,
    SelectItem,
    SelectPlan,
    StreamSelect,
    TableColumns,
    binding_of,
    note,
)
from penstock.sql.source_names import TBNAME
from penstock.sql.statements import Query
from penstock.types import ColumnType
from services.store.relation import quote
from services.store.window_select import LateAggregate, SplitSelect, column_name
from services.store.window_source import Tables, WindowSource

_WINDOW = "_penstock_window"
_WINDOWS = "_penstock_windows"
_LOW = "_penstock_low"
_HIGH = "_penstock_high"


@dataclass(frozen=True)
class WithLate:
    """`rows` have the late aggregates; `added` are the types of the columns that are new."""

    rows: pl.DataFrame
    added: dict[str, ColumnType]


def add_late(
    queries: Tables,
    con: duckdb.DuckDBPyConnection,
    statement: Query,
    source: WindowSource,
    select: SplitSelect,
    planned: PlannedStream,
    rows: pl.DataFrame,
) -> WithLate:
    """Compute the late aggregates of *select*.

    Args:
        rows: its windows, with the columns of the plan's target in ticks.

    Raises:
        SqlSemanticError: an aggregate does not take its arguments, or time does not say in which
            window a row is.
    """
    if not select.late:
        return WithLate(rows, {})
    plan = planned.plan
    names = {column_name(i): name for i, name in enumerate(select.columns(plan))}
    keys = [names[key] for key in select.keys]
    windows = _windows(plan, rows, names[select.end], keys)
    con.register(_WINDOWS, windows.to_arrow())
    members = _members(queries, source, planned.query)
    if source.is_subquery and not isinstance(plan.window, Interval | Session):
        _check_times(con, statement, source, members)
    columns = source.table_columns
    outputs = (*columns.columns, Output(_WINDOW, BIGINT))
    joined = queries.add_relation(
        _join(plan, source, members, len(keys)),
        TableColumns(outputs, columns.precision, database=columns.database),
    )
    grouped, found = queries.subquery(_grouping(source, joined, select.late))
    answer = pl.DataFrame(con.sql(f"SELECT * FROM {grouped}").to_arrow_table())
    kinds = {output.name: output.type for output in found[1:]}
    answer = answer.with_columns(
        *(_ticks(name, kind, columns.precision) for name, kind in kinds.items()),
        pl.col(_WINDOW).cast(pl.UInt32),
    )
    made = rows.with_row_index(_WINDOW).join(answer, on=_WINDOW, how="left", maintain_order="left")
    return _put_in_place(made.drop(_WINDOW), select.late, names, kinds)


def _windows(plan: StreamPlan, rows: pl.DataFrame, end: str, keys: Sequence[str]) -> pl.DataFrame:
    """Return the first and the last tick of each window, and its keys."""
    precision = plan.source.precision
    start = plan.target.columns[0].name
    # the end of an INTERVAL is not in it
    beyond = 1 if isinstance(plan.window, Interval) else 0
    return rows.select(
        pl.col(start).cast(pl.Datetime(precision)).alias(_LOW),
        (pl.col(end) - beyond).cast(pl.Datetime(precision)).alias(_HIGH),
        *(_key_value(plan, key).alias(_key(i)) for i, key in enumerate(keys)),
    ).with_row_index(_WINDOW)


def _key_value(plan: StreamPlan, name: str) -> pl.Expr:
    kinds = {c.name: c.type.kind for c in plan.target.columns}
    value = pl.col(name)
    return value.cast(pl.Datetime(plan.source.precision)) if kinds[name] == "TIMESTAMP" else value


def _key(number: int) -> str:
    return f"_penstock_key_{number}"


def _members(queries: Tables, source: WindowSource, query: StreamSelect) -> str:
    """Return a relation of the rows that are in windows, with their keys, as they are bound."""
    base = queries.add_relation(source.relation, source.table_columns)
    select = query.select
    columns = (*source.table_columns.columns, Output("tbname", TBNAME, source.precision))
    items = [*map(_column_item, columns)]
    for number, key in enumerate(select.partition_by):
        items.append(SelectItem(key.copy(), _key(number), binding_of(key)))
    conditions = [select.where.copy()] if select.where is not None else []
    if isinstance(query.window, nodes.StateWindow):
        # NULL belongs to no state
        state = exp.Paren(this=query.window.args["expr"].copy())
        conditions.append(exp.Not(this=exp.Is(this=state, expression=exp.Null())))
    where = exp.and_(*conditions, copy=False) if conditions else None
    scan = Scan(base, alias=source.table.alias_or_name)
    return queries.relation_of(SelectPlan(tuple(items), scan, where))


def _column_item(output: Output) -> SelectItem:
    binding = Binding(output.type, output.precision)
    column = exp.column(output.name, quoted=True)
    note(column, binding)
    return SelectItem(column, output.name, binding)


def _with_alias(relation: str, source: WindowSource) -> exp.Table:
    alias = exp.TableAlias(this=exp.to_identifier(source.table.alias_or_name, quoted=True))
    return exp.Table(this=exp.to_identifier(relation), alias=alias)


def _check_times(
    con: duckdb.DuckDBPyConnection, statement: Query, source: WindowSource, members: str
) -> None:
    """Refuse rows of a subquery that share their time: the order that windows were cut in is not
    known here.
    """
    repeated = con.execute(
        f"SELECT 1 FROM {members} GROUP BY tbname, {quote(source.time_column)}"
        " HAVING count(*) > 1 LIMIT 1"
    )
    if repeated.fetchone() is not None:
        raise statement.error(
            "rows of the subquery share their time, so that it is not clear which window has their"
            " values",
            source.table,
            code="E_UNSUPPORTED_QUERY",
            hint="give each row a time of its own, or leave DISTINCT out",
        )


def _join(plan: StreamPlan, source: WindowSource, members: str, keys: int) -> str:
    """Return the SQL of the rows with the numbers of their windows."""
    window = plan.window
    overlap = isinstance(window, Interval | Count) and window.size != window.sliding
    time = f"r.{quote(source.time_column)}"
    same = [f"{_texts('r', keys)} = {_texts('w', keys)}"] if keys else []
    after = f"{time} >= w.{_LOW}"
    before = f"{time} <= w.{_HIGH}"
    listed = ", ".join([*(f"r.{quote(c.name)}" for c in source.columns), "r.tbname"])
    # where windows do not overlap, a row can only be in the latest that begins before it
    kind, where = ("JOIN", "") if overlap else ("ASOF JOIN", f" WHERE {before}")
    conditions = " AND ".join([*same, after, *([before] if overlap else [])])
    return (
        f"SELECT {listed}, CAST(w.{_WINDOW} AS BIGINT) AS {_WINDOW}"
        f" FROM {members} r {kind} {_WINDOWS} w ON {conditions}{where}"
    )


def _texts(side: str, keys: int) -> str:
    """Return the keys as one list of texts: in a list NULL is equal to NULL."""
    return f"[{', '.join(f'CAST({side}.{_key(i)} AS VARCHAR)' for i in range(keys))}]"


def _grouping(source: WindowSource, joined: str, late: Sequence[LateAggregate]) -> exp.Select:
    window = exp.column(_WINDOW)
    made = exp.Select(
        expressions=[window, *(exp.alias_(a.call.copy(), a.name, quoted=True) for a in late)]
    )
    made.set("from_", exp.From(this=_with_alias(joined, source)))
    made.set("group", exp.Group(expressions=[window.copy()]))
    return made


def _ticks(name: str, kind: ColumnType, precision: str) -> pl.Expr:
    if kind.kind != "TIMESTAMP":
        return pl.col(name)
    return pl.col(name).cast(pl.Datetime(precision)).cast(pl.Int64)  # type: ignore[arg-type]


def _put_in_place(
    rows: pl.DataFrame,
    late: Sequence[LateAggregate],
    names: dict[str, str],
    kinds: dict[str, ColumnType],
) -> WithLate:
    """Put late aggregates in the places that are kept for them."""
    added: dict[str, ColumnType] = {}
    for aggregate in late:
        if aggregate.place is None:
            added[aggregate.name] = kinds[aggregate.name]
            continue
        column = names[column_name(aggregate.place)]
        kind = rows.schema[column]
        rows = rows.with_columns(
            pl.col(aggregate.name).cast(kind, strict=False).alias(column)
        ).drop(aggregate.name)
    return WithLate(rows, added)

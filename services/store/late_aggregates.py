"""Aggregates of windows that the kernels do not have: of DISTINCT values, and those that only
queries have.

The kernels say which windows there are. DuckDB then joins the rows to them by partition and time,
and groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.functions.base import BIGINT
from penstock.sql.plan import Count, Interval, Session, StreamPlan
from penstock.sql.planner import PlannedStream
from penstock.sql.relational import (
    Binding,
    Output,
    QueryPlan,
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
from services.store.row_origins import QueryEngine, QueryNames
from services.store.window_select import LateAggregate, SplitSelect, column_name
from services.store.window_source import WindowSource

_WINDOW = "_penstock_window"
_WINDOWS = "_penstock_windows"
_LOW = "_penstock_low"
_HIGH = "_penstock_high"


@dataclass(frozen=True)
class LateCalls:
    """The late aggregates of a window select, bound. `joined` is what `grouping` calls the rows
    with the numbers of their windows, and `kinds` are the types of the aggregates by their names.
    """

    calls: tuple[LateAggregate, ...]
    joined: str
    grouping: QueryPlan
    kinds: dict[str, ColumnType]

    @property
    def added(self) -> dict[str, ColumnType]:
        """The types of those that no place is kept for."""
        return {call.name: self.kinds[call.name] for call in self.calls if call.place is None}


def bind_late(queries: QueryNames, source: WindowSource, select: SplitSelect) -> LateCalls:
    """Bind the late aggregates of *select*.

    Raises:
        SqlSemanticError: one does not take its arguments.
    """
    columns = source.table_columns
    outputs = (*columns.columns, Output(_WINDOW, BIGINT))
    joined = queries.name_rows(TableColumns(outputs, columns.precision, database=columns.database))
    grouping = queries.bind(_grouping(source, joined, select.late))
    kinds = {output.name: output.type for output in grouping.outputs[1:]}
    return LateCalls(select.late, joined, grouping, kinds)


def add_late(
    queries: QueryEngine,
    statement: Query,
    source: WindowSource,
    relation: str,
    select: SplitSelect,
    late: LateCalls,
    planned: PlannedStream,
    rows: pl.DataFrame,
) -> pl.DataFrame:
    """Return *rows* with the late aggregates of *select*.

    Args:
        relation: SQL of the source's rows.
        rows: its windows, with the columns of the plan's target in ticks.

    Raises:
        SqlSemanticError: time does not say in which window a row is.
    """
    plan = planned.plan
    names = {column_name(i): name for i, name in enumerate(select.columns(plan))}
    keys = [names[key] for key in select.keys]
    queries.add_frame(_WINDOWS, _windows(plan, rows, names[select.end], keys))
    members = _members(queries, source, relation, planned.query)
    if source.is_subquery and not isinstance(plan.window, Interval | Session):
        _check_times(queries, statement, source, members)
    queries.add_view(late.joined, _join(plan, source, members, len(keys)))
    answer = queries.fetch(queries.write(late.grouping).text)
    precision = source.table_columns.precision
    answer = answer.with_columns(
        *(_ticks(name, kind, precision) for name, kind in late.kinds.items()),
        pl.col(_WINDOW).cast(pl.UInt32),
    )
    made = rows.with_row_index(_WINDOW).join(answer, on=_WINDOW, how="left", maintain_order="left")
    return _put_in_place(made.drop(_WINDOW), late.calls, names)


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


def _members(queries: QueryEngine, source: WindowSource, relation: str, query: StreamSelect) -> str:
    """Return a relation of the rows that are in windows, with their keys, as they are bound."""
    base = queries.name_rows(source.table_columns)
    queries.add_view(base, relation)
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
    made = SelectPlan(tuple(items), scan, where)
    queries.let_call(made)
    name = queries.new_name()
    queries.add_view(name, queries.write(made).text)
    return name


def _column_item(output: Output) -> SelectItem:
    binding = Binding(output.type, output.precision)
    column = exp.column(output.name, quoted=True)
    note(column, binding)
    return SelectItem(column, output.name, binding)


def _with_alias(relation: str, source: WindowSource) -> exp.Table:
    alias = exp.TableAlias(this=exp.to_identifier(source.table.alias_or_name, quoted=True))
    return exp.Table(this=exp.to_identifier(relation), alias=alias)


def _check_times(
    queries: QueryEngine, statement: Query, source: WindowSource, members: str
) -> None:
    """Refuse rows of a subquery that share their time: the order that windows were cut in is not
    known here.
    """
    repeated = queries.fetch(
        f"SELECT 1 FROM {members} GROUP BY tbname, {quote(source.time_column)}"
        " HAVING count(*) > 1 LIMIT 1"
    )
    if repeated.height:
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
    rows: pl.DataFrame, late: Sequence[LateAggregate], names: dict[str, str]
) -> pl.DataFrame:
    """Put late aggregates in the places that are kept for them."""
    for aggregate in late:
        if aggregate.place is None:
            continue
        column = names[column_name(aggregate.place)]
        kind = rows.schema[column]
        rows = rows.with_columns(
            pl.col(aggregate.name).cast(kind, strict=False).alias(column)
        ).drop(aggregate.name)
    return rows

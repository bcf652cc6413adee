"""Window clauses in a query, planned as a stream would be. Who computes them is
`services.store.window_rows`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from penstock.sql.functions.base import BIGINT, TIMESTAMP
from penstock.sql.nodes import CountWindow
from penstock.sql.plan import Column, Duration, StreamPlan, Trigger
from penstock.sql.planner import PlannedStream, plan_stream
from penstock.sql.relational import Output, TableColumns
from penstock.sql.source_names import TIME_ALIASES
from penstock.sql.statements import CreateStream, Name, Query, StreamOptions
from penstock.types import ColumnType
from services.store.late_aggregates import LateCalls, bind_late
from services.store.row_origins import QueryNames
from services.store.row_series import refuse_in_windows
from services.store.window_engines import WindowEngine, engine_of
from services.store.window_limits import counts_by_partition
from services.store.window_range import RANGE_NAMES, TimeRange, range_of, start_with
from services.store.window_select import SplitSelect, column_name, split
from services.store.window_source import WindowSource, find_source

_RESULT = "_penstock_windows"
_TBNAME = "_penstock_tbname"


@dataclass(frozen=True)
class BoundWindows:
    """A window select that is planned: what its rows are like, and what computing them takes.

    Args:
        parts: the select that the kernels compute, and what is around it.
        planned: the stream that it is like, with the plan that is computed.
        condition: what DuckDB is given of WHERE.
        engine: who computes the windows.
        asked: the range of times.
        by: columns that tell partitions apart for their limits.
        late: the aggregates that the engine does not have.
        kinds: types of all columns, by the names that the plan has for them.
    """

    statement: Query
    select: exp.Select
    source: WindowSource
    parts: SplitSelect
    planned: PlannedStream
    condition: str
    engine: WindowEngine
    asked: TimeRange
    by: tuple[Column, ...]
    late: LateCalls | None
    kinds: Mapping[str, ColumnType]

    @property
    def plan(self) -> StreamPlan:
        return self.planned.plan

    @property
    def shown(self) -> list[str]:
        """What the planner calls the columns of the inner select."""
        listed = self.parts.columns(self.plan)
        return ["tbname" if name == _TBNAME else name for name in listed]

    @property
    def names(self) -> dict[str, str]:
        """What the columns are called in the rows, by the names that the plan has for them."""
        names = {name: name for name in self.kinds}
        listed = enumerate(self.parts.columns(self.plan))
        return names | {name: column_name(position) for position, name in listed}

    @property
    def columns(self) -> TableColumns:
        """The columns of the rows, the beginning of windows first."""
        precision = self.plan.target.precision
        names = self.names
        outputs = (Output(names[name], kind, precision) for name, kind in self.kinds.items())
        return TableColumns(tuple(outputs), precision, stored=False)

    @property
    def start(self) -> str:
        """The column of the beginnings of windows."""
        return self.names[self.plan.target.columns[0].name]

    @property
    def keys(self) -> list[str]:
        """The columns that tell partitions apart for their limits."""
        return list(key_names(self.by))

    @property
    def in_place(self) -> bool:
        """Whether DuckDB computes the windows where it reads them."""
        unchanged = self.late is None and not self.parts.ranged and self.plan.fill.mode == "none"
        return self.engine != "kernels" and unchanged

    def outer(self, relation: str) -> exp.Select:
        """Return the select over the rows, which are called *relation*."""
        return self.parts.outer(relation, self.shown)


def bind_windows(
    queries: QueryNames, statement: Query, select: exp.Select, timezone: str, moment: int
) -> BoundWindows:
    """Plan one window select, at *moment* in nanoseconds. Nothing is read for it.

    Raises:
        SqlSemanticError: it has no source that windows can be cut from, or the planner refuses it.
    """
    refuse_in_windows(select, statement)
    source = find_source(queries, statement, select, timezone)
    parts = _split(statement, source)
    planned = _plan(source, statement, parts.inner, timezone)
    asked = range_of(source, timezone, moment)
    if parts.aligned:
        planned = replace(planned, plan=start_with(planned.plan, asked))
    plan = planned.plan
    by = _partition_columns(plan) if counts_by_partition(select) else []
    condition, whole = source.condition(planned.query.select, timezone)
    late = bind_late(queries, source, parts) if parts.late else None
    kinds = {c.name: c.type for c in plan.target.columns}
    kinds |= {name: column.type for name, column in key_names(by).items()}
    kinds |= {} if late is None else late.added
    if parts.ranged:
        kinds |= dict(zip(RANGE_NAMES, (TIMESTAMP, TIMESTAMP, BIGINT), strict=True))
    return BoundWindows(
        statement,
        select,
        source,
        parts,
        planned,
        condition,
        # DuckDB's windows have no number of their partition
        engine_of(plan) if whole and not by else "kernels",
        asked,
        tuple(by),
        late,
        kinds,
    )


def key_names(by: Sequence[Column]) -> dict[str, Column]:
    """Return the columns that tell partitions apart by the names that they have in the rows."""
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


def _partition_columns(plan: StreamPlan) -> list[Column]:
    """Return the columns of results that order partitions: their keys, then the group's number,
    which no two partitions share.
    """
    keys = {key.alias.lower() for key in plan.keys}
    selected = [c for c in plan.target.columns if c.name.lower() in {*keys, _TBNAME}]
    return [*selected, *plan.target.tags]

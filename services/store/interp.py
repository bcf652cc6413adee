"""A SELECT with RANGE: the values that interp() reads at points in time.

The rows that are read, with their partitions, are a SELECT of their own, which DuckDB answers.
`interpolation` computes the values at the points, and what is left of the query (expressions around
interp(), ORDER BY, limits) is a SELECT from these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol

import polars as pl
from sqlglot import exp

from penstock.catalog.model import Table
from penstock.sql.relational import (
    AGGREGATE_NAMES,
    Derived,
    Output,
    QueryPlan,
    TableColumns,
)
from penstock.sql.source import span_of
from penstock.sql.statements import Query
from penstock.types import ColumnType
from services.store.functions import function_name
from services.store.interp_clause import RangeClause, RangeReader
from services.store.interpolation import FILLED, GROUP, TIME, Filled, interpolate
from services.store.window_limits import keep_limits

_IROWTS = "_irowts"
_KEY = "_penstock_key_"
_TAG = "_penstock_tag_"
_VALUE = "_penstock_value_"
_TABLE = "_penstock_table"
_POSSIBLE = "name interp(column), _irowts, _isfilled or what PARTITION BY has"


class QueryRows(Protocol):
    """What interp() needs of a query that is being bound."""

    def bind(self, tree: exp.Query) -> QueryPlan:
        """Return the plan of *tree*, which is of the query. Raises SqlError."""
        ...

    def constant(self, node: exp.Expr) -> tuple[pl.Series, Output]:
        """Return the one value of an expression that reads nothing, and its type."""
        ...

    def table_of(self, table: exp.Table) -> Table | None:
        """Return the stored table that *table* names; None for computed windows."""
        ...


@dataclass(frozen=True)
class BoundPoints:
    """A SELECT with RANGE that is bound.

    Args:
        plan: of the rows that are read.
        values: what is read at the points.
        keys: columns that tell partitions apart.
        tags: columns that have one value in a partition.
        precision: of the rows' times.
        most_points: points of all partitions that there may be.
        columns: of the values at the points.
        outer: what is left of the SELECT, over the values.
        meanings: the columns of `plan` and of `outer`, with the expressions that they stand for.
    """

    plan: QueryPlan
    clause: RangeClause
    values: Sequence[Filled]
    keys: Sequence[str]
    tags: Sequence[str]
    precision: str
    most_points: int
    columns: TableColumns
    outer: exp.Select
    meanings: Mapping[str, exp.Expr]

    @property
    def source(self) -> Derived:
        """The rows that are read, as a plan has them."""
        return Derived(self.plan, "")

    def at_points(self, found: pl.DataFrame) -> pl.DataFrame:
        """Return the values at the points, beside the keys and the tags of their partitions.

        Args:
            found: the rows that are read.

        Raises:
            PenstockError: E_RESULT_TOO_LARGE.
        """
        unit = pl.Datetime(self.precision)  # type: ignore[arg-type]
        order = [TIME, _TABLE] if _TABLE in found.columns else [TIME]
        rows = found.with_columns(pl.col(TIME).cast(unit).cast(pl.Int64)).sort(
            order, maintain_order=True
        )
        rows = _with_groups(rows, list(self.keys))
        groups = rows.group_by(GROUP).agg(pl.col(name).last() for name in (*self.keys, *self.tags))
        clause = self.clause
        clause.check_size(max(1, groups.height), self.most_points)
        made = interpolate(rows, clause.points, clause.mode, self.values, given=clause.given)
        return (
            made.join(groups, on=GROUP, how="left", maintain_order="left")
            .with_columns(pl.col(TIME).cast(unit))
            .rename({TIME: _IROWTS})
            .select(column.name for column in self.columns.columns)
        )


def bind_points(
    rows: QueryRows,
    statement: Query,
    select: exp.Select,
    timezone: str,
    *,
    name: str,
    most_points: int,
) -> BoundPoints:
    """Bind a SELECT with RANGE. Of tables nothing is read for it.

    Args:
        name: of the relation that the outer SELECT shall read.
        most_points: points of all partitions that there may be.

    Raises:
        SqlError: it is not as a SELECT with RANGE is.
        PenstockError: E_RESULT_TOO_LARGE.
    """
    return _Interpolation(rows, statement, select, timezone).bind(name, most_points)


class _Interpolation:
    """One SELECT with RANGE."""

    def __init__(
        self, rows: QueryRows, statement: Query, select: exp.Select, timezone: str
    ) -> None:
        self._rows = rows
        self._statement = statement
        self._select = select
        self._timezone = timezone
        self._check_calls()
        self._source = self._check_source()
        self._keys = self._partition_keys()
        self._tags: list[exp.Column] = []
        self._calls: list[exp.Anonymous] = []
        self._items = [self._rewrite_item(item) for item in select.expressions]

    def bind(self, name: str, most_points: int) -> BoundPoints:
        time, precision = self._time()
        reader = RangeReader(self._rows, self._statement, self._timezone, precision)
        clause = reader.read(self._select, self._calls)
        plan = self._rows.bind(self._inner(time, clause))
        kinds = {output.name: output.type for output in plan.outputs}
        values = reader.columns(
            self._calls, [kinds[f"{_VALUE}{n}"] for n in range(len(self._calls))]
        )
        clause.check_size(1, most_points)
        keys = [f"{_KEY}{n}" for n in range(len(self._keys))]
        tags = [f"{_TAG}{n}" for n in range(len(self._tags))]
        shown = {_IROWTS: ColumnType("TIMESTAMP"), FILLED: ColumnType("BOOL")}
        shown |= {n: kinds[n] for n in (*keys, *tags, *(value.name for value in values))}
        outputs = tuple(Output(n, kind, precision) for n, kind in shown.items())
        return BoundPoints(
            plan,
            clause,
            values,
            keys,
            tags,
            precision,
            most_points,
            TableColumns(outputs, precision, stored=False),
            self._outer(name),
            dict(self._meanings(time)),
        )

    def _meanings(self, time: exp.Column) -> Iterator[tuple[str, exp.Expr]]:
        """Yield the columns of the inner and the outer SELECT with what they stand for."""
        yield TIME, time
        yield _TABLE, exp.column("tbname")
        for prefix, stands_for in ((_KEY, self._keys), (_TAG, self._tags), (_VALUE, self._calls)):
            for number, node in enumerate(stands_for):
                yield f"{prefix}{number}", node.unalias()

    # ---------------------------------------------------------------- what may stand in it

    def _check_calls(self) -> None:
        items = self._select.expressions
        if not any(function_name(n) == "interp" for item in items for n in item.walk()):
            self._refuse(
                self._select.args["range"],
                "RANGE is for interp(), and there is none in the select list",
                "SELECT _irowts, interp(column) FROM … RANGE(…) EVERY(…) FILL(…)",
            )

    def _check_source(self) -> exp.Expr:
        select = self._select
        source: exp.Expr | None = select.args["from_"].this if select.args.get("from_") else None
        if source is None or select.args.get("joins"):
            self._refuse(
                select.args["range"],
                "interp() reads one table",
                "join in a subquery: FROM (SELECT … FROM … JOIN …)",
            )
        grouping = "write PARTITION BY, or group in a query around this one"
        for key, shown, hint in (
            ("group", "GROUP BY", grouping),
            ("having", "HAVING", grouping),
            ("tags", "TAGS", "leave TAGS out: tags stand beside PARTITION BY tbname"),
        ):
            if select.args.get(key) is not None:
                message = f"{shown} is not possible with RANGE"
                self._refuse(select.args["range"], message, hint)
        return source

    def _partition_keys(self) -> list[exp.Expr]:
        partition = self._select.args.get("partition_by")
        return list(partition.expressions) if partition is not None else []

    def _rewrite_item(self, item: exp.Expr) -> exp.Expr:
        """Return an item of the select list over the values at the points, called as before."""
        if isinstance(item, exp.Star) or isinstance(item.unalias().this, exp.Star):
            self._refuse(item, "* has no value at a point in time", _POSSIBLE)
        inner = item.unalias()
        name = item.alias or (inner.name if isinstance(inner, exp.Column) else "")
        name = name or str(item.meta.get("sql") or inner.sql(dialect="penstock"))
        made = exp.alias_(self._rewrite(inner), name, quoted=True)
        made.meta.update(item.meta)
        return made

    def _rewrite(self, node: exp.Expr, names: Sequence[str] = ()) -> exp.Expr:
        """Return *node* over the values at the points.

        Args:
            names: of the select list, which may be used.
        """

        def rewrite(part: exp.Expr) -> exp.Expr:
            replaced = self._replace(part, names)
            if replaced is not part:
                span = span_of(part)
                if span is not None:
                    replaced.meta["start"], replaced.meta["end"] = span
            return replaced

        return node.copy().transform(rewrite, copy=False)

    def _replace(self, part: exp.Expr, names: Sequence[str]) -> exp.Expr:
        for number, key in enumerate(self._keys):
            if _is_same(part, key.unalias()) or _is_named(part, key):
                return exp.column(f"{_KEY}{number}", quoted=True)
        if isinstance(part, exp.Anonymous):
            return self._replace_call(part)
        if isinstance(part, exp.Query):
            self._refuse(part, "a subquery has no value at a point in time", _POSSIBLE)
        own = (_IROWTS, FILLED)
        if not isinstance(part, exp.Column):
            return part
        if part.name.lower() in own:
            return exp.column(part.name.lower(), quoted=True)
        if part.name.lower() in names:
            return part
        return self._replace_tag(part)

    def _replace_call(self, call: exp.Anonymous) -> exp.Expr:
        name = function_name(call)
        if name in AGGREGATE_NAMES:
            self._refuse(
                call,
                f"{name}() makes one row of many beside interp(), which gives one for each point",
                "aggregate in a query around this one",
            )
        if name != "interp":
            return call
        if not 1 <= len(call.expressions) <= 2 or isinstance(call.expressions[0], exp.Star):
            self._statement_error(
                call, "interp() takes a column, and 1 where NULL counts as no row", "interp(x, 1)"
            )
        if call.expressions[0].find(exp.Anonymous, exp.Query):
            self._check_argument(call)
        if call not in self._calls:
            self._calls.append(call.copy())
        return exp.column(f"{_VALUE}{self._calls.index(call)}", quoted=True)

    def _check_argument(self, call: exp.Anonymous) -> None:
        for inner in call.expressions[0].find_all(exp.Anonymous, exp.Query):
            if isinstance(inner, exp.Query) or function_name(inner) in {*AGGREGATE_NAMES, "interp"}:
                self._refuse(
                    inner, "interp() takes a value of one row", "compute this in a subquery of FROM"
                )

    def _replace_tag(self, column: exp.Column) -> exp.Expr:
        """Return what a tag is beside PARTITION BY tbname: that of the latest row."""
        table = self._rows.table_of(self._source) if isinstance(self._source, exp.Table) else None
        tags = {t.name.lower() for t in table.tags} if table is not None else set()
        by_table = any(_is_called(key.unalias(), "tbname") for key in self._keys)
        if not by_table or column.name.lower() not in tags:
            self._refuse(column, f"column {column.name} has no one value at a point", _POSSIBLE)
        if column not in self._tags:
            self._tags.append(column.copy())
        return exp.column(f"{_TAG}{self._tags.index(column)}", quoted=True)

    # ---------------------------------------------------------------- the rows that are read

    def _time(self) -> tuple[exp.Column, str]:
        """Return the time of the rows, and the unit of its ticks."""
        source = self._source
        table = self._rows.table_of(source) if isinstance(source, exp.Table) else None
        if table is not None:
            time = Output(table.time_column, ColumnType("TIMESTAMP"), table.precision)
        else:
            inner = exp.select(exp.Star()).from_(source.copy())
            time = self._rows.bind(inner).outputs[0]
        if time.type.kind != "TIMESTAMP":
            self._refuse(
                source,
                "interp() needs the time of each row",
                "the time is the first column of a table; select it first in a subquery, too",
            )
        qualifier = source.alias_or_name or None
        return exp.column(time.name, table=qualifier, quoted=True), time.precision

    def _inner(self, time: exp.Column, clause: RangeClause) -> exp.Select:
        """Return the SELECT of the rows with all that is needed of them."""
        items = [exp.alias_(time.copy(), TIME)]
        items += [exp.alias_(k.unalias().copy(), f"{_KEY}{n}") for n, k in enumerate(self._keys)]
        items += [exp.alias_(tag.copy(), f"{_TAG}{n}") for n, tag in enumerate(self._tags)]
        items += [
            exp.alias_(call.expressions[0].copy(), f"{_VALUE}{n}")
            for n, call in enumerate(self._calls)
        ]
        source = self._source
        if isinstance(source, exp.Table) and self._rows.table_of(source) is not None:
            name = exp.column("tbname", table=source.alias_or_name)
            items.append(exp.alias_(name, _TABLE))
        inner = exp.select(*items).from_(source.copy())
        where = self._select.args.get("where")
        if where is not None:
            inner = inner.where(where.this.copy(), copy=False)
        for bound in clause.bounds(time):
            inner = inner.where(bound, copy=False)
        return inner

    # ---------------------------------------------------------------- what is left of the query

    def _outer(self, name: str) -> exp.Select:
        select = self._select
        outer = exp.select(*self._items).from_(name)
        for key in ("limit", "offset", "distinct"):
            if select.args.get(key) is not None:
                outer.set(key, select.args[key].copy())
        order = select.args.get("order")
        if order is not None:
            names = [item.alias.lower() for item in self._items]
            outer.set("order", self._rewrite(order, names))
        keep_limits(select, outer, _IROWTS, [f"{_KEY}{n}" for n in range(len(self._keys))])
        return outer

    # ---------------------------------------------------------------- errors

    def _refuse(self, at: exp.Expr, message: str, hint: str) -> NoReturn:
        raise self._statement.error(message, at, code="E_UNSUPPORTED_QUERY", hint=hint)

    def _statement_error(self, at: exp.Expr, message: str, hint: str) -> NoReturn:
        raise self._statement.error(message, at, code="E_FUNCTION_ARGUMENT", hint=hint)


def _with_groups(rows: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Return *rows* with the number of their partition, in the order of keys, NULL last."""
    if not keys:
        return rows.with_columns(pl.lit(0, pl.UInt32).alias(GROUP))
    groups = rows.select(keys).unique().sort(keys, nulls_last=True).with_row_index(GROUP)
    return rows.join(groups, on=keys, how="left", nulls_equal=True, maintain_order="left")


def _is_same(part: exp.Expr, key: exp.Expr) -> bool:
    """Tell if *part* is a key; a column may have its table in front or not."""
    if not isinstance(part, exp.Column) or not isinstance(key, exp.Column):
        return type(part) is type(key) and part == key
    tables = {part.table.lower(), key.table.lower()} - {""}
    return part.name.lower() == key.name.lower() and len(tables) < 2


def _is_named(part: exp.Expr, key: exp.Expr) -> bool:
    """Tell if *part* is the name that PARTITION BY gives a key."""
    return isinstance(key, exp.Alias) and _is_called(part, key.alias.lower())


def _is_called(node: exp.Expr, name: str) -> bool:
    return isinstance(node, exp.Column) and not node.table and node.name.lower() == name

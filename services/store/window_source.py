"""The rows that the windows of a SELECT are cut from: those of a table, or of a subquery."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl
from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.plan import TICKS_PER_SECOND, Column, Precision
from penstock.sql.planning.view import SchemaView, TableDef
from penstock.sql.relational import (
    AGGREGATE_NAMES,
    Derived,
    Output,
    Scan,
    SelectItem,
    SelectPlan,
    TableColumns,
)
from penstock.sql.relational.chosen_columns import is_chosen_column
from penstock.sql.source_names import WINDOW_TYPES
from penstock.sql.statements import Query
from penstock.types import ColumnType
from penstock.udf import UserFunction
from services.store.binding import Context
from services.store.functions import function_name
from services.store.relation import quote
from services.store.row_origins import QueryEngine, QueryNames, ScannedRows, SubqueryRows
from services.store.scope import RowCondition
from services.store.translate import query

#: what stands for the database of a subquery; it is no table's
_DATABASE = "subquery"
#: of a second
_NANOS = 1_000_000_000
_REALS = ("FLOAT", "DOUBLE")
#: conditions that DuckDB and the kernels see alike, so that fewer rows need be read
_PUSHABLE = (
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


@dataclass(frozen=True)
class WindowSource:
    """`select` names one table in FROM, which `view` knows; `origin` is where its rows come from,
    with `tbname`, the columns (the time first) and the tags.
    """

    select: exp.Select
    origin: ScannedRows | SubqueryRows
    view: SchemaView
    database: str
    columns: tuple[Column, ...]
    precision: Precision
    #: names of the columns that `last(*)` means
    starred: tuple[str, ...]

    @property
    def table(self) -> exp.Table:
        """The table in FROM."""
        table = self.select.args["from_"].this
        assert isinstance(table, exp.Table)
        return table

    @property
    def is_subquery(self) -> bool:
        return self.database == _DATABASE

    @property
    def table_columns(self) -> TableColumns:
        """What names may mean in the rows."""
        outputs = tuple(Output(c.name, c.type, self.precision) for c in self.columns)
        return TableColumns(outputs, self.precision, database=self.database)

    @property
    def time_column(self) -> str:
        return self.columns[0].name

    def ticks(self, moment: int) -> int:
        """Return *moment*, in nanoseconds, in the ticks of the rows."""
        return moment // (_NANOS // TICKS_PER_SECOND[self.precision])

    def read(self, relation: str, condition: str) -> str:
        """Return FROM and WHERE of the rows that *condition* leaves.

        Args:
            relation: SQL of the rows.
        """
        text = f"FROM ({relation}) AS {quote(self.table.alias_or_name)}"
        return f"{text} WHERE {condition}" if condition else text

    def condition(self, bound: SelectPlan, timezone: str) -> tuple[str, bool]:
        """Return what of WHERE DuckDB is given, and whether DuckDB alone may decide which rows
        those are. *bound* is the select as it is planned.
        """
        where = bound.where
        if where is None:
            return "", True
        if not all(isinstance(n, _PUSHABLE) for n in where.walk()):
            return "", False
        # DuckDB takes NaN for whatever the statistics of a file say of its other values
        reals = {c.name.lower() for c in self.columns if c.type.kind in _REALS}
        named = {c.name.lower() for c in where.find_all(exp.Column)}
        condition = self._condition(where, timezone)
        if condition is None:
            return "", False
        return condition, not named & reals

    def _condition(self, where: exp.Expr, timezone: str) -> str | None:
        """Return DuckDB's text of a bound condition; None: it needs functions that are made for a
        query.
        """
        name = self.table.name
        item = SelectItem(exp.Literal.number(1))
        plan = SelectPlan((item,), Scan(name, relation=name), where)
        context = Context(timezone, relations=frozenset((name,)))
        text = query(plan, context)
        return None if context.needed else text.split(" WHERE ", 1)[1]

    def fetch(self, queries: QueryEngine, rows: str, moment: int) -> pl.DataFrame:
        """Return the rows in the kernels' input layout, at *moment* in nanoseconds.

        Args:
            rows: FROM and WHERE of them.
        """
        times = [c.name for c in self.columns if c.type.kind == "TIMESTAMP"]
        listed = ", ".join(["tbname", *(quote(c.name) for c in self.columns)])
        frame = queries.fetch(f"SELECT {listed} {rows}")
        return frame.with_columns(
            *(pl.col(t).cast(pl.Datetime(self.precision)).cast(pl.Int64) for t in times),
            *(pl.col(c.name).cast(c.type.polars()) for c in self.columns if c.name not in times),
            _step=pl.lit(0, pl.UInt32),
            _offset=pl.lit(0, pl.Int64),
            _now=pl.lit(self.ticks(moment), pl.Int64),
            _op=pl.lit(0, pl.Int8),
        ).sort(self.time_column, "tbname", maintain_order=True)


def find_source(
    queries: QueryNames, statement: Query, select: exp.Select, timezone: str
) -> WindowSource:
    """Find what *select*, which has a window clause, is from.

    Raises:
        SqlSemanticError: that is neither one table nor one subquery with a time.
    """
    source = select.args["from_"].this if select.args.get("from_") else None
    if select.args.get("joins") or not isinstance(source, exp.Table | exp.Subquery):
        raise statement.error(
            "a window clause needs one table or one subquery in FROM",
            select,
            code="E_UNSUPPORTED_QUERY",
            hint="put a join into a subquery: FROM (SELECT a.ts, … FROM a JOIN b ON …)",
        )
    if isinstance(source, exp.Subquery):
        return _of_subquery(queries, statement, select, source)
    return _of_table(queries, select, source, timezone)


def _of_table(
    queries: QueryNames, select: exp.Select, source: exp.Table, timezone: str
) -> WindowSource:
    found = queries.resolve(source)
    table = found.table
    where = select.args["where"].this if select.args.get("where") is not None else None
    name = queries.new_name()
    condition = RowCondition(where, source.alias_or_name, timezone)
    columns = (*table.columns, *table.tags)
    scan = Scan(source.name, source.db, source.alias, relation=name, time=table.time_column)
    return WindowSource(
        select,
        ScannedRows(scan, found, condition),
        queries.view(),
        table.database,
        tuple(Column(c.name, c.type) for c in columns),
        table.precision,
        tuple(c.name for c in table.columns),
    )


# ---------------------------------------------------------------- subqueries


class _SubqueryView:
    """A catalog that has one table, the subquery."""

    def __init__(self, view: SchemaView, definition: TableDef) -> None:
        self._view = view
        self._definition = definition

    def precision(self, database: str) -> Precision | None:
        return self._definition.precision if database == self._definition.database else None

    def table(self, database: str, name: str) -> TableDef | None:
        same = (database, name) == (self._definition.database, self._definition.name)
        return self._definition if same else None

    def table_names(self, database: str) -> Sequence[str]:
        return (self._definition.name,)

    def function(self, name: str) -> UserFunction | None:
        return self._view.function(name)

    def streams_into(self, database: str, table: str) -> Sequence[str]:
        return ()


def _of_subquery(
    queries: QueryNames, statement: Query, select: exp.Select, source: exp.Subquery
) -> WindowSource:
    plan = queries.bind(source.this)
    outputs = plan.outputs
    time = _first_time(statement, source, outputs)
    _check_names(statement, source, outputs)
    tables = [output for output in outputs if _names_tables(output)]
    read = [time, *(o for o in outputs if o is not time and not _names_tables(o))]
    renamed = _other_names(outputs)
    columns = [
        Column(renamed.get(output.name.lower(), output.name), _type_of_column(output.type))
        for output in read
    ]
    name = source.alias or "rows"
    definition = TableDef(
        0,
        _DATABASE,
        name,
        "stable" if tables else "plain",
        tuple(columns),
        precision=time.precision,  # type: ignore[arg-type]
    )
    made = select.copy()
    table = exp.Table(this=exp.to_identifier(name), db=exp.to_identifier(_DATABASE))
    table.meta.update(source.meta)
    made.args["from_"].set("this", table)
    _rename(made, renamed)
    listed = [f"coalesce({quote(tables[0].name)}, '') AS tbname" if tables else "'' AS tbname"]
    for output, column in zip(read, columns, strict=True):
        listed.append(f"{quote(output.name)} AS {quote(column.name)}")
    relation = queries.new_name()
    shown = f"SELECT {', '.join(listed)} FROM {relation} WHERE {quote(time.name)} IS NOT NULL"
    return WindowSource(
        made,
        SubqueryRows(Derived(plan, ""), relation, shown),
        _SubqueryView(queries.view(), definition),
        _DATABASE,
        tuple(columns),
        definition.precision,
        tuple(c.name for c in columns),
    )


def _first_time(statement: Query, source: exp.Subquery, outputs: Sequence[Output]) -> Output:
    """Return the time of a subquery's rows. Raises SqlSemanticError: it gives none."""
    for output in outputs:
        if output.type.kind == "TIMESTAMP":
            return output
    raise statement.error(
        "a window needs times, and the subquery gives no column of type TIMESTAMP",
        source,
        code="E_UNSUPPORTED_QUERY",
        hint="select the time in it: FROM (SELECT ts, …)",
    )


def _check_names(statement: Query, source: exp.Subquery, outputs: Sequence[Output]) -> None:
    seen: set[str] = set()
    for output in outputs:
        if output.name.lower() in seen:
            raise statement.error(
                f"two columns of the subquery are called {output.name}",
                source,
                code="E_DUPLICATE_COLUMN",
                hint="give one of them another name: expression AS name",
            )
        seen.add(output.name.lower())


def _names_tables(output: Output) -> bool:
    return output.name.lower() == "tbname" and output.type.text


def _type_of_column(kind: ColumnType) -> ColumnType:
    """Return a type that a column may have: NULL alone has none."""
    return ColumnType("DOUBLE") if kind.kind == "NULL" else kind


def _other_names(outputs: Sequence[Output]) -> dict[str, str]:
    """Return other names for the columns whose names may mean something of the window or of the
    kernels; the first is the time's.
    """
    taken = {output.name.lower() for output in outputs}
    names = (name for name in _free_names() if name not in taken)
    return {
        output.name.lower(): next(names)
        for output in outputs
        if output.name.startswith("_") or (output.name.lower() == "tbname" and not output.type.text)
    }


def _free_names() -> Iterator[str]:
    yield "ts"
    number = 1
    while True:
        yield f"column{number}"
        number += 1


def _rename(select: exp.Select, renamed: Mapping[str, str]) -> None:
    """Let the columns of *select* have their other names. `_wstart` means the subquery's column
    where rows are read, and else the window's beginning.
    """
    for column in list(select.find_all(exp.Column)):
        name = column.name.lower()
        if name not in renamed or column.find_ancestor(exp.Query) is not select:
            continue
        if name in WINDOW_TYPES and not _reads_rows(column):
            continue
        shown = column.name
        column.set("this", exp.to_identifier(renamed[name]))
        if column.parent is select:
            alias = exp.alias_(column.copy(), shown, quoted=True)
            alias.meta.update(column.meta)
            column.replace(alias)


def _reads_rows(column: exp.Column) -> bool:
    """Tell if *column* stands where the rows of the source are read."""
    node = column.parent
    while node is not None and not isinstance(node, exp.Query):
        if isinstance(node, exp.Where | nodes.WindowClause | nodes.PartitionBy):
            return True
        if function_name(node) in AGGREGATE_NAMES or is_chosen_column(node):
            return True
        node = node.parent
    return False

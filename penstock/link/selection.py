"""A SELECT that filters and projects rows as they come: what a subscription over the link and a
materialized view compute.

Rows are carried as they were written: deletes pass whatever WHERE says (who gets them drops the row
if it has it), a row that stops passing WHERE is not taken back. Refused: windows, aggregates,
joins, sorting: CREATE STREAM computes those.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
from sqlglot import exp

from penstock.errors import SqlSemanticError
from penstock.link.description import Description
from penstock.rows.versions import CLEAR, DELETE
from penstock.sql import parse_one
from penstock.sql.compile import compile_expression
from penstock.sql.dialect import to_sql
from penstock.sql.functions import AGGREGATES
from penstock.sql.plan import TICKS_PER_SECOND, Column
from penstock.sql.source_names import TIME_ALIASES
from penstock.sql.statements import Query
from penstock.types import ColumnType

TBNAME = ColumnType("VARCHAR", length=192)
#: what every row of the link has beside its selected columns
SYSTEM = ("_op", "tbname", "_time", "_offset", "_row")
#: virtual column → (column of the decoded frame, type)
VIRTUAL = {
    "_tp_sn": ("_offset", ColumnType("BIGINT")),
    "_tp_shard": ("_part", ColumnType("INT")),
    "_tp_append_time": ("_appended", ColumnType("TIMESTAMP")),
}
_CLAUSES = (
    "joins",
    "group",
    "having",
    "qualify",
    "order",
    "limit",
    "offset",
    "distinct",
    "window",
    "range",
    "fill",
    "partition_by",
    "slimit",
    "soffset",
    "tags",
)


@dataclass(frozen=True)
class Selection:
    """Compiled for one definition of a table. `outputs` are the selected columns; times in frames
    are ticks.
    """

    outputs: tuple[Column, ...]
    #: columns of the source that are read
    read: frozenset[str]
    _items: tuple[pl.Expr, ...]
    _where: pl.Expr | None
    #: what `now` means, in ticks: the moment the selection began, for all its rows
    _now: int

    def apply(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Selected rows: SYSTEM columns, then `outputs`."""
        if "_now" in self.read:
            rows = rows.with_columns(_now=pl.lit(self._now, pl.Int64))
        if self._where is not None:
            kept = self._where | (pl.col("_op") == DELETE)
            # what stands before a row stays with it
            after = kept.shift(-1, fill_value=False)
            rows = rows.filter(pl.when(pl.col("_op") == CLEAR).then(after).otherwise(kept))
        return rows.select(*(pl.col(name) for name in SYSTEM), *self._items)


def source_of(sql: str) -> tuple[Query, exp.Select, exp.Table]:
    """The only table of a SELECT that filters and projects. Raises SqlError."""
    statement = parse_one(sql)
    if not isinstance(statement, Query) or not isinstance(statement.query, exp.Select):
        raise SqlSemanticError("one SELECT is expected here", code="E_UNSUPPORTED_QUERY")
    return statement, *check(statement, statement.query)


def point_at(select: exp.Select, database: str, name: str) -> str:
    """The SQL of *select*, as `source_of` gave it, over another table; what it called the old one
    stays as an alias.
    """
    select = select.copy()
    node = select.args["from_"].this
    if not node.args.get("alias"):
        node.set("alias", exp.TableAlias(this=exp.to_identifier(node.name)))
    node.set("db", exp.to_identifier(database))
    node.set("this", exp.to_identifier(name))
    return to_sql(select)


def check(statement: Query, select: exp.Select) -> tuple[exp.Select, exp.Table]:
    """Refuse what is more than filter and projection. Raises SqlError."""
    for clause in _CLAUSES:
        node = select.args.get(clause)
        if node:
            raise statement.error(
                f"{clause.replace('_', ' ').upper()} is not possible where rows are passed on one"
                " by one",
                node if isinstance(node, exp.Expr) else select,
                code="E_UNSUPPORTED_QUERY",
                hint=(
                    "CREATE STREAM computes windows and aggregates; a view can pass on a stream's"
                    " result"
                ),
            )
    table = select.args["from_"].this if select.args.get("from_") else None
    if not isinstance(table, exp.Table):
        raise statement.error("one table is needed in FROM", select, code="E_UNSUPPORTED_QUERY")
    for call in select.find_all(exp.Anonymous):
        if str(call.this).lower() in AGGREGATES:
            raise statement.error(
                f"{call.name}() needs a window",
                call,
                code="E_UNSUPPORTED_QUERY",
                hint="CREATE STREAM … INTERVAL(…) computes aggregates",
            )
    return select, table


def compile_selection(
    sql: str, source: Description, timezone: str = "UTC", now: int = 0
) -> Selection:
    """Compile a SELECT that filters and projects rows of *source*.

    Args:
        now: epoch nanoseconds.

    Raises:
        SqlError: not a plain SELECT, unknown columns, wrong types.
    """
    statement, select, table = source_of(sql)
    scope = _Scope(statement, table, source, timezone)
    outputs: list[Column] = []
    items: list[pl.Expr] = []
    for item in select.expressions:
        if isinstance(item, exp.Star):
            outputs += source.fields
            items += [pl.col(c.name) for c in source.fields]
        elif not _is_tbname(item):  # every row has that
            expression, kind = scope.compile(item)
            name = _output_name(item, source)
            outputs.append(Column(name, kind))
            items.append(expression.alias(name))
    _check_names(outputs, statement)
    where = select.args.get("where")
    condition = None if where is None else scope.condition(where.this)
    expressions = items if condition is None else [*items, condition]
    return Selection(
        tuple(outputs),
        frozenset(name for e in expressions for name in e.meta.root_names()),
        tuple(items),
        condition,
        now * TICKS_PER_SECOND[source.precision] // 10**9,
    )


class _Scope:
    """Names that expressions of one SELECT may use, and what they stand for in a decoded frame."""

    def __init__(
        self, statement: Query, table: exp.Table, source: Description, timezone: str
    ) -> None:
        self._statement = statement
        self._source = source
        self._timezone = timezone
        self._kinds = {c.name: c.type for c in source.fields} | {"tbname": TBNAME}
        #: column of the frame by its name in SQL, where they differ
        self._frame_names: dict[str, str] = {}
        for name, (frame_name, kind) in VIRTUAL.items():
            if name not in self._kinds:
                self._kinds[frame_name] = kind
                self._frame_names[name] = frame_name
        for alias in TIME_ALIASES:
            if alias not in self._kinds:
                self._frame_names[alias] = source.time_column
        self._qualifiers = {
            table.alias_or_name.lower(),
            source.name.lower(),
            (source.child or source.name).lower(),
        }

    def compile(self, node: exp.Expr) -> tuple[pl.Expr, ColumnType]:
        compiled = compile_expression(
            node.copy().transform(self._bind, copy=False),
            self._kinds,
            precision=self._source.precision,
            timezone=self._timezone,
            source=self._statement.source,
        )
        return compiled.expr, compiled.type

    def condition(self, node: exp.Expr) -> pl.Expr:
        """Compile what WHERE says; NULL does not pass."""
        condition, kind = self.compile(node)
        if kind.kind != "BOOL":
            raise self._statement.error(
                "WHERE needs a condition", node, code="E_TYPE", detail=f"this is {kind}"
            )
        return condition.fill_null(False)

    def _bind(self, node: exp.Expr) -> exp.Expr:
        """Replace a name by that of the frame's column."""
        if _is_earliest_time(node):
            return exp.Literal.string("1970-01-01 00:00:00Z")
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            return node
        if node.table and node.table.lower() not in self._qualifiers:
            raise self._statement.error(
                f"{node.table} is not in FROM", node, code="E_UNKNOWN_COLUMN"
            )
        name = self._frame_names.get(node.name.lower(), node.name)
        column = exp.Column(this=exp.Identifier(this=name, quoted=False))
        column.meta.update(node.meta)
        return column


def _is_earliest_time(node: exp.Expr) -> bool:
    if not isinstance(node, exp.Anonymous) or node.expressions:
        return False
    return str(node.this).lower() in ("earliest_ts", "earliest_timestamp")


def _is_tbname(item: exp.Expr) -> bool:
    return isinstance(item, exp.Column) and item.name.lower() == "tbname"


def _output_name(item: exp.Expr, source: Description) -> str:
    """Return the name of a selected column, spelled as in *source* where it has one of that
    name.
    """
    name = item.alias
    if not name:
        is_column = isinstance(item, exp.Column)
        name = item.name if is_column else str(item.meta.get("sql") or item.sql(dialect="penstock"))
    return next((c.name for c in source.fields if c.name.lower() == name.lower()), name)


def _check_names(outputs: list[Column], statement: Query) -> None:
    """Raise SqlError for a name that is selected twice or is the link's own."""
    seen = set(SYSTEM)
    for column in outputs:
        name = column.name.lower()
        if name in seen:
            what = "is a name of the link's own" if name in SYSTEM else "is selected twice"
            raise statement.error(
                f'"{column.name}" {what}',
                code="E_DUPLICATE_COLUMN",
                hint="give it another name with AS",
            )
        seen.add(name)

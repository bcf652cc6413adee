"""The relational plan of a query: frozen nodes, each of which knows the columns that it gives.

`bind` makes a plan of a tree. Whatever changes a plan makes another one of it. Expressions are
sqlglot's nodes with their types noted (`binding_of`); a query inside an expression is a
`PlannedQuery`, so that no SELECT is left as a tree.

A SELECT is one node with all its clauses, no chain of filter, aggregate and project: its clauses
share names (WHERE may use those of the select list), and an engine is given a SELECT again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.functions.base import NULL
from penstock.sql.relational.bindings import Binding
from penstock.sql.relational.relations import Output, TableColumns
from penstock.sql.relational.series import SeriesOrder

# ---------------------------------------------------------------- FROM


@dataclass(frozen=True)
class Scan:
    """The rows of a table, as a query names it.

    Args:
        columns: what names may mean in it; None where nobody has looked.
        relation: the engine's name of the rows; "" until somebody has found them.
        time: the column that rows are in the order of, "" where there is none.
        of_tags: not its rows are meant, but one for each child table, with its tags.
    """

    table: str
    database: str = ""
    alias: str = ""
    columns: TableColumns | None = None
    relation: str = ""
    time: str = ""
    of_tags: bool = False

    @property
    def name(self) -> str:
        """As the query calls the rows."""
        return self.alias or self.table


@dataclass(frozen=True)
class Derived:
    """The rows of a subquery in FROM. `names` are what it calls its columns: `q (a, b)`."""

    query: QueryPlan
    alias: str
    names: tuple[str, ...] = ()
    columns: tuple[Output, ...] = ()

    @property
    def name(self) -> str:
        """As the query calls the rows."""
        return self.alias


@dataclass(frozen=True)
class JoinLimit:
    """JLIMIT: at most `count` rows of the one side for each row of the side that is kept.

    Args:
        rows: columns that tell the rows of the kept side apart.
        time: of the other side; its earliest rows count.
        backwards: its latest rows count.
        near: as many rows as one ASOF JOIN finds one of, so `on` has no other bound of times.
        alike: what rows of the other side are compared by with the kept ones.
    """

    count: int
    rows: tuple[exp.Column, ...]
    time: exp.Column
    backwards: bool = False
    near: bool = False
    alike: tuple[exp.Expr, ...] = ()


@dataclass(frozen=True)
class Join:
    """Rows of two sides that go together. `method` ASOF joins by time; `side` and `kind` are the
    words of SQL. Without words and conditions every row goes with every other.
    """

    left: RowSource
    right: RowSource
    method: str = ""
    side: str = ""
    kind: str = ""
    on: exp.Expr | None = None
    using: tuple[str, ...] = ()
    limit: JoinLimit | None = None


@dataclass(frozen=True)
class ComputedRows:
    """The rows of a window clause, or the values of RANGE, EVERY and FILL at points in time. No
    engine of SQL reads them: whoever executes the plan fills `relation` before.

    It is a leaf. What its rows are computed from is a plan of its own, which a change of the plan
    around it does not reach.

    Args:
        relation: the engine's name of the rows, and the only name that they have.
        source: the rows that they are computed from, but for those that `where` leaves out.
        partition_by: of what partitions they are.
        columns: what names may mean in them.
        meanings: these names, each with the expression that its values are of.
    """

    relation: str
    clause: nodes.WindowClause | nodes.Range
    source: Scan | Derived
    where: exp.Expr | None
    partition_by: tuple[exp.Expr, ...]
    fill: nodes.Fill | None
    columns: TableColumns
    meanings: Mapping[str, exp.Expr]

    @property
    def name(self) -> str:
        """As the query calls the rows."""
        return self.relation


#: the rows that a query has one name for
NamedRows: TypeAlias = "Scan | Derived | ComputedRows"
RowSource: TypeAlias = "NamedRows | Join"

# ---------------------------------------------------------------- SELECT


@dataclass(frozen=True)
class SelectItem:
    """A column of a select list; `name` is "" where the expression is called by its own name."""

    expression: exp.Expr
    name: str = ""
    binding: Binding | None = None

    @property
    def output(self) -> Output:
        """The column that it becomes."""
        name = self.name or self.expression.name
        if self.binding is None:
            return Output(name, NULL)
        return Output(name, self.binding.type, self.binding.precision)


@dataclass(frozen=True)
class RowLimits:
    """How many rows are kept behind those that are skipped. With PARTITION BY both are of each
    partition; `partitions` and `skipped_partitions` are SLIMIT and SOFFSET.
    """

    rows: exp.Literal | None = None
    skipped: exp.Literal | None = None
    partitions: exp.Literal | None = None
    skipped_partitions: exp.Literal | None = None

    def __bool__(self) -> bool:
        return any((self.rows, self.skipped, self.partitions, self.skipped_partitions))


NO_LIMITS = RowLimits()


@dataclass(frozen=True)
class SelectPlan:
    """One SELECT. `series` is the order of its rows where it has functions of a row and the rows
    before it; `span` is where it stands in its text.
    """

    items: tuple[SelectItem, ...]
    source: RowSource | None = None
    where: exp.Expr | None = None
    partition_by: tuple[exp.Expr, ...] = ()
    group_by: tuple[exp.Expr, ...] = ()
    having: exp.Expr | None = None
    qualify: exp.Expr | None = None
    order_by: tuple[exp.Ordered, ...] = ()
    limits: RowLimits = NO_LIMITS
    distinct: bool = False
    series: SeriesOrder | None = None
    span: tuple[int, int] | None = None

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The columns that it gives."""
        return tuple(item.output for item in self.items)


@dataclass(frozen=True)
class StreamSelect:
    """The SELECT of a stream, or one of a query that has a window clause. `key_names` are what
    PARTITION BY calls its keys, `written` are the items of `select` as the text has them; what
    stands in `window` is bound, the values of `fill` are not.
    """

    select: SelectPlan
    written: tuple[exp.Expr, ...]
    key_names: tuple[str, ...] = ()
    window: nodes.WindowClause | None = None
    fill: nodes.Fill | None = None


# ---------------------------------------------------------------- several queries


@dataclass(frozen=True)
class SetOperation:
    """UNION, EXCEPT or INTERSECT, as `word` says. `every`: rows that are alike stay."""

    word: str
    left: QueryPlan
    right: QueryPlan
    every: bool = False
    outputs: tuple[Output, ...] = ()
    order_by: tuple[exp.Ordered, ...] = ()
    limits: RowLimits = NO_LIMITS


@dataclass(frozen=True)
class Enclosed:
    """A query in parentheses, with an order and limits of its own."""

    query: QueryPlan
    order_by: tuple[exp.Ordered, ...] = ()
    limits: RowLimits = NO_LIMITS

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The columns that it gives."""
        return self.query.outputs


QueryPlan: TypeAlias = "SelectPlan | SetOperation | Enclosed"


class PlannedQuery(exp.Expression, exp.Query):
    """A query inside an expression; `plan` is a `QueryPlan`."""

    arg_types = {"plan": True}

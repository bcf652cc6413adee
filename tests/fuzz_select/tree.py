"""Random SELECTs as typed trees. Nothing here knows SQL's text or what an expression is worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

#: values of the operands and the session's zone → the value
Compute = Callable[[Sequence[Any], str], Any]


@dataclass(frozen=True)
class Operation:
    """An operator or a function: how it is written and what it means.

    `kinds` are those of its operands (see `kinds.py`), `text` has `{0}`, `{1}` … in their places.
    `rough`: the last digits of its result depend on who computes it.
    """

    text: str
    kinds: tuple[str, ...]
    result: str
    compute: Compute
    rough: bool = False


@dataclass(frozen=True)
class Value:
    """A constant, `text` as it is written."""

    kind: str
    value: Any
    text: str


@dataclass(frozen=True)
class Column:
    """A column of a relation of FROM."""

    kind: str
    relation: str
    name: str

    @property
    def place(self) -> str:
        """Key of the column in an evaluator's row."""
        return f"{self.relation}.{self.name}"


@dataclass(frozen=True)
class Apply:
    """An operation on operands."""

    operation: Operation
    operands: tuple[Expression, ...]

    @property
    def kind(self) -> str:
        return self.operation.result


@dataclass(frozen=True)
class Aggregate:
    """An aggregate of an expression over the rows of a group; of none: `count(*)`."""

    kind: str
    name: str
    of: Expression | None
    distinct: bool = False
    #: percentage of a percentile
    share: float | None = None


@dataclass(frozen=True)
class WindowColumn:
    """`_wstart`, `_wend` or `_wduration`."""

    kind: str
    name: str


@dataclass(frozen=True)
class InQuery:
    """`x IN (SELECT …)`."""

    of: Expression
    select: Select
    kind: str = "BOOL"


@dataclass(frozen=True)
class Exists:
    """`EXISTS (SELECT …)`."""

    select: Select
    kind: str = "BOOL"


Expression = Value | Column | Apply | Aggregate | WindowColumn | InQuery | Exists


@dataclass(frozen=True)
class TableSource:
    table: str
    alias: str


@dataclass(frozen=True)
class Derived:
    """A subquery in FROM."""

    select: Query
    alias: str


@dataclass(frozen=True)
class Join:
    """`left … JOIN right ON condition`; a cross join has no condition."""

    left: Source
    right: TableSource | Derived
    #: INNER, LEFT, RIGHT, FULL or CROSS
    side: str
    on: Expression | None


Source = TableSource | Derived | Join


@dataclass(frozen=True)
class Window:
    """A window clause; lengths are in milliseconds, `numbers` those of COUNT_WINDOW."""

    clause: str
    size: int = 0
    offset: int = 0
    sliding: int = 0
    #: local days instead of a length
    days: int = 0
    numbers: tuple[int, int] = (0, 0)
    #: state, or the conditions of start and end
    of: tuple[Expression, ...] = ()
    true_for: int = 0


@dataclass(frozen=True)
class Ordered:
    """An item of ORDER BY: the place of a column of the answer."""

    place: int
    descending: bool
    #: None: not written, which is last
    nulls_first: bool | None


@dataclass(frozen=True)
class Select:
    """One SELECT; the n-th item is called `c<n>`."""

    items: tuple[Expression, ...]
    source: Source
    where: Expression | None = None
    partition: tuple[Expression, ...] = ()
    window: Window | None = None
    group: tuple[Expression, ...] = ()
    having: Expression | None = None
    distinct: bool = False
    order: tuple[Ordered, ...] = ()
    limit: int | None = None
    offset: int | None = None
    #: ORDER BY and GROUP BY name columns of the answer by their numbers
    by_place: bool = False


@dataclass(frozen=True)
class Union:
    """Two SELECTs under each other."""

    left: Select
    right: Select
    every: bool
    order: tuple[Ordered, ...] = ()
    limit: int | None = None
    offset: int | None = None


Query = Select | Union


def operands(node: Expression) -> tuple[Expression, ...]:
    """Return the expressions right below *node*; those of a subquery are not among them."""
    if isinstance(node, Apply):
        return node.operands
    if isinstance(node, Aggregate) and node.of is not None:
        return (node.of,)
    return (node.of,) if isinstance(node, InQuery) else ()


def walk(node: Expression) -> list[Expression]:
    """Return *node* and all below it, without subqueries."""
    return [node, *(below for child in operands(node) for below in walk(child))]


def aggregated(node: Expression) -> bool:
    """Tell if there is an aggregate in *node*."""
    return any(isinstance(below, Aggregate) for below in walk(node))


def rough(node: Expression) -> bool:
    """Tell if the last digits of *node* depend on who computes it."""
    return any(_is_rough(below) for below in walk(node))


#: aggregates that are computed by dividing
_DIVIDING = frozenset({"avg", "stddev", "stddev_samp", "var_pop", "var_samp", "percentile"})


def _is_rough(node: Expression) -> bool:
    if isinstance(node, Aggregate):
        return node.name in _DIVIDING
    return isinstance(node, Apply) and node.operation.rough


def output_kinds(query: Query) -> tuple[str, ...]:
    """Return the kinds of the columns of an answer."""
    select = query.left if isinstance(query, Union) else query
    return tuple(item.kind for item in select.items)

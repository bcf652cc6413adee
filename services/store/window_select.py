"""A window select as two: the one that the kernels compute, and the one over their rows.

The kernels give a list of columns and know nothing behind it. So HAVING, ORDER BY and whatever
they have no function for stand in a select around them, over the columns of the list and over
hidden ones: the aggregates, keys and times of windows that only the outer select reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.compile.compiler import nearest
from penstock.sql.functions import QUERY_ONLY, REGISTRY
from penstock.sql.plan import StreamPlan
from penstock.sql.planning.select import HIDDEN
from penstock.sql.relational import AGGREGATE_NAMES
from penstock.sql.relational.select_list import column_reference, written_name
from penstock.sql.source_names import TIME_ALIASES, WINDOW_TYPES
from penstock.sql.statements import Query
from penstock.udf import UserFunction
from services.store.functions import function_name
from services.store.partition_keys import WindowPartitionKeys, canonical_text
from services.store.window_calls import (
    OF_A_SET,
    has_place,
    is_late,
    is_of_queries,
    of_all,
    write_out,
)
from services.store.window_range import RANGE_NAMES

_COUNT = exp.Anonymous(this="count", expressions=[exp.Star()])
#: clauses of the select around the windows
_OUTSIDE = ("having", "order", "limit", "offset", "distinct", "slimit", "soffset")


@dataclass(frozen=True)
class WindowItem:
    """A column of the answer. `expression` is over the columns of the inner select, and None where
    the column is one of these as it is: number `position`.
    """

    name: str
    position: int
    expression: exp.Expr | None = None


@dataclass(frozen=True)
class LateAggregate:
    """An aggregate that is computed once the windows are known, as the column *name*; or as column
    number `place` of the inner select, which keeps a place of its type for it.
    """

    name: str
    call: exp.Expr
    place: int | None = None


@dataclass(frozen=True)
class SplitSelect:
    """`inner` is what the kernels compute; `items`, `having` and `order` are over its columns and,
    if `ranged`, over the ends of the range of times. `aligned`: the windows begin where that does.
    """

    inner: exp.Select
    items: tuple[WindowItem, ...]
    having: exp.Expr | None
    order: exp.Order | None
    ranged: bool
    aligned: bool
    late: tuple[LateAggregate, ...]
    #: columns of `inner`: where windows end, and the keys of their partitions
    end: str
    keys: tuple[str, ...]

    def columns(self, plan: StreamPlan) -> list[str]:
        """Return what the columns of `inner` are called in the plan's target, which may have the
        beginning of the window in front.
        """
        added = len(plan.target.columns) - len(self.inner.expressions)
        return [c.name for c in plan.target.columns[added:]]

    def outer(self, relation: str, shown: list[str]) -> exp.Select:
        """Return the select over *relation*, which has the columns of `inner`.

        Args:
            shown: the names that the planner gave these columns.
        """
        made = exp.Select(expressions=[_select_item(item, shown) for item in self.items])
        made.set("from_", exp.From(this=exp.to_table(relation)))
        if self.having is not None:
            made.set("where", exp.Where(this=self.having))
        if self.order is not None:
            made.set("order", self.order)
        return made


def _select_item(item: WindowItem, shown: list[str]) -> exp.Expr:
    if item.expression is not None:
        return exp.alias_(item.expression, item.name, quoted=True)
    return exp.alias_(
        exp.column(column_name(item.position), quoted=True), shown[item.position], quoted=True
    )


def column_name(position: int) -> str:
    """Return what column number *position* of the inner select is called in its rows."""
    return f"_penstock_item_{position}"


def split(
    statement: Query,
    select: exp.Select,
    source_columns: Set[str],
    starred: Sequence[str],
    functions: Callable[[str], UserFunction | None],
) -> SplitSelect:
    """Split a window select of *statement*.

    Args:
        source_columns: names of the columns of its source, in lower case.
        starred: the columns that `last(*)` means.
        functions: gives the user-defined function of a name.

    Raises:
        SqlSemanticError: HAVING or ORDER BY names what there is not.
    """
    return _Splitter(statement, select, source_columns, starred, functions).split()


class _Splitter:
    def __init__(
        self,
        statement: Query,
        select: exp.Select,
        source_columns: Set[str],
        starred: Sequence[str],
        functions: Callable[[str], UserFunction | None],
    ) -> None:
        self._statement = statement
        self._select = select
        self._listed = list(write_out(select.expressions, starred))
        self._source_columns = source_columns
        self._filled = select.args.get("fill") is not None
        self._late: list[LateAggregate] = []
        #: whether anything outside reads the ends of the range of times
        self._ranged = False
        self._functions = functions
        #: the list of the inner select
        self._inner: list[exp.Expr] = []
        #: canonical text of an expression → its place in that list
        self._places: dict[str, int] = {}
        #: name in lower case → what it means outside
        self._names: dict[str, exp.Expr] = {}
        self._keys = WindowPartitionKeys(select)

    def split(self) -> SplitSelect:
        items = self._split_items()
        having = self._select.args.get("having")
        made_having = self._outside(having.this) if having is not None else None
        made_order = self._split_order()
        if not any(self._has_aggregate(item) for item in self._inner):
            self._hide(_COUNT)
        end = keys = None
        if self._filled or self._late:
            # both are for each partition
            end = self._hide(exp.column("_wend")).name
            keys = [self._hide(key).name for key in self._keys.nodes]
        inner = self._select.copy()
        aligned = isinstance(inner.args["window"].args.get("offset"), exp.Var)
        if aligned:
            inner.args["window"].set("offset", None)
        for key in _OUTSIDE:
            inner.set(key, None)
        inner.set("expressions", [item.copy() for item in self._inner])
        return SplitSelect(
            inner,
            items,
            made_having,
            made_order,
            self._ranged,
            aligned,
            tuple(self._late),
            end or "",
            tuple(keys or ()),
        )

    def _split_order(self) -> exp.Order | None:
        order = self._select.args.get("order")
        if order is None:
            return None
        return exp.Order(expressions=[self._order_item(o) for o in order.expressions])

    def _split_items(self) -> tuple[WindowItem, ...]:
        """Take the whole items first, so that what is written twice is computed once."""
        listed = self._listed
        whole = [not self._is_outside(item) for item in listed]
        for item, inside in zip(listed, whole, strict=True):
            if inside and is_late(item.unalias()):
                name = written_name(item)
                self._keep_place(item.unalias(), exp.alias_(of_all(item), name, quoted=True))
            elif inside:
                self._places.setdefault(canonical_text(item.unalias()), len(self._inner))
                self._inner.append(item)
        made: list[WindowItem] = []
        position = 0
        for item, inside in zip(listed, whole, strict=True):
            name = written_name(item)
            if inside:
                made.append(WindowItem(name, position))
                position += 1
            else:
                made.append(WindowItem(name, -1, self._outside(item.unalias())))
            if isinstance(item, exp.Alias | exp.Column):
                self._names.setdefault(name.lower(), self._meaning(made[-1]))
        return tuple(made)

    def _meaning(self, item: WindowItem) -> exp.Expr:
        if item.expression is not None:
            return item.expression
        return exp.column(column_name(item.position), quoted=True)

    def _is_outside(self, item: exp.Expr) -> bool:
        """Tell if the kernels cannot compute *item* as a whole. What FILL fills is a whole."""
        parts = list(item.unalias().walk())
        if any(self._is_of_range(node) for node in parts):
            return True
        if self._filled:
            # FILL has its values for aggregates of the list, those of DISTINCT values too
            return is_late(item.unalias()) and not has_place(item.unalias())
        return any(
            isinstance(node, exp.Query) or is_of_queries(node) or is_late(node) for node in parts
        )

    def _is_of_range(self, node: exp.Expr) -> bool:
        if not isinstance(node, exp.Column) or node.table:
            return False
        name = node.name.lower()
        return name in RANGE_NAMES and name not in self._source_columns

    # ------------------------------------------------------------ expressions outside

    def _order_item(self, item: exp.Ordered) -> exp.Ordered:
        made = item.copy()
        node = made.this
        meant = None
        if isinstance(node, exp.Column) and not node.table:
            # a name of the list goes before a column of the source
            meant = self._names.get(node.name.lower())
        made.set("this", _at(meant, node) if meant is not None else self._outside(node))
        return made

    def _outside(self, node: exp.Expr) -> exp.Expr:
        """Return *node* over the columns of the inner select."""
        return node.copy().transform(self._replace, copy=False)

    def _replace(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Query):
            # another node is not descended into
            return node.copy()
        if isinstance(node, exp.Column):
            return self._column(node)
        if is_late(node):
            return self._hide_late(node)
        if isinstance(node, exp.Filter) or self._is_aggregate(node) or self._is_unknown(node):
            return self._hide(node)
        return self._hide(node) if self._keys.has(node) else node

    def _column(self, node: exp.Column) -> exp.Expr:
        if self._is_of_range(node):
            self._ranged = True
            return column_reference(node.name.lower(), node)
        name = node.name.lower()
        own = name in self._source_columns or self._keys.has_name(name)
        if node.table or own:
            return self._hide(node)
        if name in self._names:
            return _at(self._names[name], node)
        if name not in WINDOW_TYPES:
            self._refuse_unknown(node)
        return self._hide(node)

    def _refuse_unknown(self, node: exp.Column) -> NoReturn:
        known = [*self._names, *sorted(self._source_columns - {*TIME_ALIASES})]
        near = nearest(node.name, known)
        raise self._statement.error(
            f"there is no column {node.name}",
            node,
            code="E_UNKNOWN_COLUMN",
            hint=f"did you mean {near}?" if near else f"known here: {', '.join(known[:20])}",
        )

    def _hide(self, node: exp.Expr) -> exp.Expr:
        """Return the column that *node* is, which the inner select gets if it lacks it."""
        text = canonical_text(node)
        if text not in self._places:
            self._places[text] = len(self._inner)
            hidden = exp.alias_(node.copy(), column_name(len(self._inner)))
            hidden.meta.update(node.meta)
            hidden.meta[HIDDEN] = True
            self._inner.append(hidden)
        return column_reference(column_name(self._places[text]), node)

    def _hide_late(self, node: exp.Expr) -> exp.Expr:
        """Return the column that the late aggregate *node* becomes. That of DISTINCT values keeps
        the place of the same aggregate of all values, which has its type.
        """
        text = canonical_text(node)
        if text in self._places:
            return column_reference(column_name(self._places[text]), node)
        name = f"_penstock_late_{len(self._late)}"
        same = [a for a in self._late if canonical_text(a.call) == text]
        if same:
            return column_reference(same[0].name, node)
        if not has_place(node):
            self._refuse_fill(node)
            self._late.append(LateAggregate(name, node.copy()))
            return column_reference(name, node)
        hidden = exp.alias_(of_all(node), column_name(len(self._inner)))
        hidden.meta[HIDDEN] = True
        self._keep_place(node, hidden)
        return column_reference(column_name(self._places[text]), node)

    def _keep_place(self, node: exp.Expr, item: exp.Expr) -> None:
        """Let the aggregate *node* of DISTINCT values have the place of *item*."""
        item.meta.update(node.meta)
        if function_name(node) not in OF_A_SET:
            name = f"_penstock_late_{len(self._late)}"
            self._late.append(LateAggregate(name, node.copy(), len(self._inner)))
        self._places[canonical_text(node)] = len(self._inner)
        self._inner.append(item)

    def _refuse_fill(self, node: exp.Expr) -> None:
        if self._filled:
            name = function_name(node.this if isinstance(node, exp.Filter) else node)
            raise self._statement.error(
                f"FILL has no values for {name}(), which is computed after the windows",
                node,
                code="E_UNSUPPORTED_QUERY",
                hint=f"leave FILL out, or compute {name}() in a query of its own",
            )

    def _has_aggregate(self, item: exp.Expr) -> bool:
        return any(self._is_aggregate(node) for node in item.walk())

    def _is_unknown(self, node: exp.Expr) -> bool:
        """Tell if *node* calls what is no function: the planner says which is meant."""
        if not isinstance(node, exp.Anonymous):
            return False
        name = function_name(node)
        known = name in REGISTRY or name in QUERY_ONLY
        return not known and self._functions(name) is None

    def _is_aggregate(self, node: exp.Expr) -> bool:
        name = function_name(node)
        if name in AGGREGATE_NAMES or name == nodes.COLS:
            return True
        user = self._functions(name) if name else None
        return user is not None and user.aggregate


def _at(meant: exp.Expr, node: exp.Expr) -> exp.Expr:
    """Return *meant* where *node* stands."""
    made = meant.copy()
    made.meta.update({k: v for k, v in node.meta.items() if k != "sql"})
    return made

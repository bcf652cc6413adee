"""The select list of a stream with a window: outputs over aggregates, keys and window times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from penstock.sql.dialect import to_sql
from penstock.sql.functions import AGGREGATES, REGISTRY
from penstock.sql.functions.time import NOW
from penstock.sql.plan import Aggregate, Output, State, Window
from penstock.sql.planning.binder import TIMESTAMP, Binder
from penstock.sql.planning.select.aggregates import WINDOW_TYPES, AggregateCalls
from penstock.sql.planning.select.items import (
    SelectList,
    column_reference,
    expand_items,
    output_name,
    without_alias,
)
from penstock.sql.planning.select.keys import PartitionKeys, strip_parentheses
from penstock.types import ColumnType


class WindowSelect:
    """Takes the select list of a stream with a window apart."""

    def __init__(self, binder: Binder, keys: PartitionKeys, window: Window) -> None:
        self._binder = binder
        self._keys = keys
        self._window = window
        self._selection = SelectList()
        self._calls = AggregateCalls(binder, self._selection.aggregates)
        #: plain columns beside aggregates: place among the aggregates, and the select item
        self._companions: list[tuple[int, exp.Expr]] = []
        key_types = {f"_k{i}": k.type for i, k in enumerate(keys.items)}
        self._plan_types: dict[str, ColumnType] = key_types | WINDOW_TYPES | {NOW: TIMESTAMP}

    def run(self, select: exp.Select) -> SelectList:
        """Return aggregates and outputs of the whole list."""
        items = expand_items(select, self._binder)
        lowered = [self._lower(self._binder.bind(without_alias(i)), i) for i in items]
        if all(a.function == "companion" for a in self._selection.aggregates):
            self._refuse_unknown(lowered)
            self._binder.refuse_query(
                items[0],
                "a window needs at least one aggregate",
                "add one, such as count(*) or last(column)",
            )
        self._attach_companions(lowered)
        types = {a.name: a.type for a in self._selection.aggregates}
        for item, bound in zip(items, lowered, strict=True):
            self._add_output(item, bound, types)
        return self._selection

    def _refuse_unknown(self, lowered: Sequence[exp.Expr]) -> None:
        """Refuse a function that does not exist: it may be a misspelt aggregate."""
        for bound in lowered:
            for call in bound.find_all(exp.Anonymous):
                name = str(call.this).lower()
                if name not in REGISTRY and self._binder.function(name) is None:
                    self._binder.compile(call)

    def _add_output(
        self, item: exp.Expr, bound: exp.Expr, aggregates: dict[str, ColumnType]
    ) -> None:
        kind = self._binder.compile(bound, self._plan_types | aggregates).type
        plain = without_alias(item)
        shown = self._binder.bind(plain) if isinstance(plain, exp.Column) else plain
        if kind.kind == "JSON":
            self._binder.refuse_query(
                item,
                "a result column cannot be JSON",
                "write CAST(… AS VARCHAR(…)) around it",
            )
        of_tables = {a.name for a in self._selection.aggregates if self._is_tag_of_query(a)}
        filled = any(
            c.name in aggregates and c.name not in of_tables for c in bound.find_all(exp.Column)
        )
        output = Output(output_name(item, shown), to_sql(bound), kind)
        self._selection.add(item, output, filled=filled)

    # ---------------------------------------------------------------- lowering

    def _lower(self, node: exp.Expr, item: exp.Expr) -> exp.Expr:
        """Return *node* (bound) over plan names: keys, window times and aggregates replaced."""
        place = self._keys.place(node)
        if place is not None:
            return column_reference(f"_k{place}", node)
        if isinstance(node, exp.Anonymous):
            call = self._lower_call(node)
            if call is not None:
                return call
        if isinstance(node, exp.Column):
            return self._lower_column(node, item)
        if self._is_state(node):
            return self._calls.add(
                "first",
                to_sql(strip_parentheses(node)),
                self._binder.compile(node).type,
                (),
                node,
            )
        for key, value in list(node.args.items()):
            if isinstance(value, exp.Expr):
                node.set(key, self._lower(value, item))
            elif isinstance(value, list):
                node.set(key, [self._lower_element(v, item) for v in value])
        return node

    def _lower_element(self, element: object, item: exp.Expr) -> object:
        return self._lower(element, item) if isinstance(element, exp.Expr) else element

    def _lower_call(self, node: exp.Anonymous) -> exp.Expr | None:
        """Return an aggregate or `_group_key` over plan names, or None for another function."""
        name = str(node.this).lower()
        if name == "_group_key":
            return self._group_key(node)
        if name in AGGREGATES:
            return self._calls.add_call(AGGREGATES[name], node)
        user = self._binder.function(name)
        if user is not None and user.aggregate:
            return self._calls.add_user_call(user, node)
        return None

    def _is_state(self, node: exp.Expr) -> bool:
        return (
            isinstance(self._window, State) and to_sql(strip_parentheses(node)) == self._window.sql
        )

    def _group_key(self, node: exp.Anonymous) -> exp.Expr:
        place = self._keys.place(node.expressions[0]) if len(node.expressions) == 1 else None
        if place is None:
            keys = ", ".join(k.sql for k in self._keys.items)
            hint = f"one of: {keys}" if keys else "add PARTITION BY"
            self._binder.refuse_query(
                node, "_group_key() takes an expression of PARTITION BY", hint
            )
        return column_reference(f"_k{place}", node)

    def _lower_column(self, node: exp.Column, item: exp.Expr) -> exp.Expr:
        if node.name in WINDOW_TYPES or node.name == NOW:
            return node
        kind = self._binder.compile(node).type
        aggregates = self._selection.aggregates
        sql = to_sql(node)
        for known in aggregates:
            if known.function == "companion" and known.sql == sql:
                return column_reference(known.name, node)
        name = f"_a{len(aggregates)}"
        self._companions.append((len(aggregates), item))
        aggregates.append(Aggregate(name, "companion", sql, kind))
        return column_reference(name, node)

    # ---------------------------------------------------------------- columns beside aggregates

    def _attach_companions(self, lowered: Sequence[exp.Expr]) -> None:
        """Give each plain column the row of the one aggregate that chooses a row."""
        if not self._companions:
            return
        self._refuse_unknown(lowered)
        aggregates = self._selection.aggregates
        choosers = [a for a in aggregates if _chooses_row(a)]
        for index, item in self._companions:
            column = aggregates[index]
            if len(choosers) == 1:
                aggregates[index] = replace(column, of=choosers[0].name)
            elif self._is_tag_of_query(column):
                # a table has one value of it
                aggregates[index] = replace(column, function="last_row")
            elif isinstance(self._window, State) and column.sql == self._window.sql:
                # The state is the same in every row of its window.
                aggregates[index] = replace(column, function="first")
            else:
                self._refuse_companion(item, column, len(choosers))

    def _is_tag_of_query(self, aggregate: Aggregate) -> bool:
        """Tell if a query takes a tag beside PARTITION BY tbname."""
        tags = {tag.name for tag in self._binder.source.tags}
        return (
            self._binder.statement.of_query
            and self._keys.by_table
            and aggregate.sql in tags
            and aggregate.function in ("companion", "last_row")
        )

    def _refuse_companion(self, item: exp.Expr, column: Aggregate, choosers: int) -> None:
        count = f"the list has {choosers}" if choosers else "the list has none"
        self._binder.refuse_query(
            item,
            f"column {column.sql} stands beside aggregates, which only one min, max, first or last"
            f" allows ({count})",
            f"put it into an aggregate such as last({column.sql}), or into PARTITION BY",
        )


def _chooses_row(aggregate: Aggregate) -> bool:
    return aggregate.function in AGGREGATES and AGGREGATES[aggregate.function].chooses

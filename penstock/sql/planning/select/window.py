"""The select list of a stream with a window: outputs over aggregates, keys and window times."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.dialect import to_sql
from penstock.sql.functions import AGGREGATES
from penstock.sql.plan import Aggregate, State, Window
from penstock.sql.planning.context import PlanningContext
from penstock.sql.planning.filters import as_call
from penstock.sql.planning.select.aggregates import AggregateCalls
from penstock.sql.planning.select.items import SelectList, output_of
from penstock.sql.planning.select.keys import PartitionKeys
from penstock.sql.relational import StreamSelect
from penstock.sql.relational.select_list import column_reference
from penstock.sql.relational.stream_names import strip_parentheses, type_of
from penstock.sql.source_names import WINDOW_TYPES


class WindowSelect:
    """Takes the select list of a stream with a window apart."""

    def __init__(self, context: PlanningContext, keys: PartitionKeys, window: Window) -> None:
        self._context = context
        self._keys = keys
        self._window = window
        self._selection = SelectList()
        self._calls = AggregateCalls(context, self._selection.aggregates)
        #: plain columns beside aggregates: place among the aggregates, and the select item
        self._companions: list[tuple[int, exp.Expr]] = []
        #: aggregates that only choose rows for cols()
        self._in_cols: set[str] = set()

    def run(self, query: StreamSelect) -> SelectList:
        """Return aggregates and outputs of the whole list."""
        items = query.select.items
        lowered = [
            self._lower(item.expression, written)
            for item, written in zip(items, query.written, strict=True)
        ]
        if all(a.function == "companion" for a in self._selection.aggregates):
            self._context.refuse_query(
                query.written[0],
                "a window needs at least one aggregate",
                "add one, such as count(*) or last(column)",
            )
        self._attach_companions()
        aggregates = {a.name for a in self._selection.aggregates if not self._is_tag_of_query(a)}
        for item, over_plan, written in zip(items, lowered, query.written, strict=True):
            hint = "write CAST(… AS VARCHAR(…)) around it"
            output = output_of(self._context, item, over_plan, hint)
            filled = any(c.name in aggregates for c in over_plan.find_all(exp.Column))
            self._selection.add(written, output, filled=filled)
        return self._selection

    # ---------------------------------------------------------------- lowering

    def _lower(self, node: exp.Expr, item: exp.Expr) -> exp.Expr:
        """Return *node* (bound), which stays as it is, over plan names: keys, window times and
        aggregates replaced.
        """
        place = self._keys.place(node)
        if place is not None:
            return column_reference(f"_k{place}", node)
        if isinstance(node, exp.Filter):
            return self._lower(as_call(node), item)
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
                type_of(node),
                (),
                node,
            )
        made = type(node)(**{k: self._lower_part(v, item) for k, v in node.args.items()})
        made.meta.update(node.meta)
        return made

    def _lower_part(self, part: object, item: exp.Expr) -> object:
        if isinstance(part, list):
            return [self._lower_part(element, item) for element in part]
        return self._lower(part, item) if isinstance(part, exp.Expr) else part

    def _lower_call(self, node: exp.Anonymous) -> exp.Expr | None:
        """Return an aggregate or `_group_key` over plan names, or None for another function."""
        name = str(node.this).lower()
        if name == "_group_key":
            return self._group_key(node)
        if name in AGGREGATES:
            added = self._calls.add_call(AGGREGATES[name], node)
            self._in_cols.discard(added.name)
            return added
        if name == nodes.COLS:
            return self._chosen_column(node)
        user = self._context.function(name)
        if user is not None and user.aggregate:
            return self._calls.add_user_call(user, node)
        return None

    def _chosen_column(self, node: exp.Anonymous) -> exp.Expr:
        """Return what cols() takes from the row that its function chooses."""
        chooser, value = node.expressions
        aggregates = self._selection.aggregates
        known = len(aggregates)
        of = self._calls.add_call(AGGREGATES[str(chooser.this).lower()], chooser).name
        if len(aggregates) > known:
            self._in_cols.add(of)
        sql = to_sql(value)
        for one in aggregates:
            if (one.function, one.sql, one.of) == ("companion", sql, of):
                return column_reference(one.name, node)
        name = f"_a{len(aggregates)}"
        aggregates.append(Aggregate(name, "companion", sql, type_of(value), of=of))
        return column_reference(name, node)

    def _is_state(self, node: exp.Expr) -> bool:
        return (
            isinstance(self._window, State) and to_sql(strip_parentheses(node)) == self._window.sql
        )

    def _group_key(self, node: exp.Anonymous) -> exp.Expr:
        place = self._keys.place(node.expressions[0]) if len(node.expressions) == 1 else None
        if place is None:
            keys = ", ".join(k.sql for k in self._keys.items)
            hint = f"one of: {keys}" if keys else "add PARTITION BY"
            self._context.refuse_query(
                node, "_group_key() takes an expression of PARTITION BY", hint
            )
        return column_reference(f"_k{place}", node)

    def _lower_column(self, node: exp.Column, item: exp.Expr) -> exp.Expr:
        if node.name in WINDOW_TYPES:
            return column_reference(node.name, node)
        aggregates = self._selection.aggregates
        sql = to_sql(node)
        for known in aggregates:
            if (known.function, known.sql, known.of) == ("companion", sql, None):
                return column_reference(known.name, node)
        name = f"_a{len(aggregates)}"
        self._companions.append((len(aggregates), item))
        aggregates.append(Aggregate(name, "companion", sql, type_of(node)))
        return column_reference(name, node)

    # ---------------------------------------------------------------- columns beside aggregates

    def _attach_companions(self) -> None:
        """Give each plain column the row of the one aggregate that chooses a row."""
        if not self._companions:
            return
        aggregates = self._selection.aggregates
        choosers = [a for a in aggregates if _chooses_row(a) and a.name not in self._in_cols]
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
        tags = {tag.name for tag in self._context.source.tags}
        return (
            self._context.statement.of_query
            and self._keys.by_table
            and aggregate.sql in tags
            and aggregate.function in ("companion", "last_row")
        )

    def _refuse_companion(self, item: exp.Expr, column: Aggregate, choosers: int) -> None:
        count = f"the list has {choosers}" if choosers else "the list has none"
        self._context.refuse_query(
            item,
            f"column {column.sql} stands beside aggregates, which only one min, max, first or last"
            f" allows ({count})",
            f"put it into an aggregate such as last({column.sql}), or into PARTITION BY",
        )


def _chooses_row(aggregate: Aggregate) -> bool:
    return aggregate.function in AGGREGATES and AGGREGATES[aggregate.function].chooses

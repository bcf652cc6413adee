"""Columns beside min, max, first, last and last_row: those of the row that was chosen
(stream-semantics 8), also where its value is NULL.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from penstock.sql.functions.duck_rows import ROW_VALUES
from penstock.sql.relational import (
    SelectItem,
    SelectPlan,
    binding_of,
    change_order,
    map_expressions,
    note,
)
from penstock.sql.relational.chosen_columns import is_chosen_column
from penstock.sql.relational.companions import (
    BY_TIME,
    Chosen,
    chosen_by,
    is_companion,
)
from services.store.binding import Context
from services.store.functions import arguments, function_name


def take_companions(select: SelectPlan, context: Context) -> SelectPlan:
    """Return *select* with the plain columns that stand beside the call that chooses a row picked
    from that row, and so the call itself; and with what cols() takes picked from the row of its own
    call.
    """
    select = _take_chosen_columns(select, context)
    own = list(_own_nodes(select))
    chooser, chosen = _chooser_alone(own)
    if chooser is None or chosen is None or not any(map(is_companion, own)):
        return select
    pick = _Picker(function_name(chooser), _argument(chooser), chosen, context)
    return replace(
        select,
        items=tuple(pick.item(item) for item in select.items),
        having=None if select.having is None else pick.expression(select.having),
        order_by=change_order(select.order_by, pick.expression),
    )


def _take_chosen_columns(select: SelectPlan, context: Context) -> SelectPlan:
    if not any(map(is_chosen_column, _own_nodes(select))):
        return select

    def take(node: exp.Expr) -> exp.Expr:
        if not is_chosen_column(node):
            return node
        chooser, value = node.expressions
        chosen = chosen_by(chooser)
        assert chosen is not None  # the binder has noted it
        pick = _Picker(function_name(chooser), _argument(chooser), chosen, context)
        return pick.value(node, value)

    return map_expressions(select, lambda node: node.transform(take))


class _Picker:
    """Picks values of the row that the call *name* of *argument* chooses."""

    def __init__(self, name: str, argument: exp.Expr, chosen: Chosen, context: Context) -> None:
        self._name = name
        self._argument = argument
        self._chosen = chosen
        self._context = context

    def item(self, item: SelectItem) -> SelectItem:
        """Return an item of the select list, called as before."""
        return replace(item, expression=self.expression(item.expression), name=item.output.name)

    def expression(self, node: exp.Expr) -> exp.Expr:
        """Return an expression of what is picked."""
        made: exp.Expr = node.transform(self._pick)
        return made

    def value(self, node: exp.Expr, value: exp.Expr) -> exp.Expr:
        """Return *value* of the chosen row, in place of *node*."""
        return self._value(node, value, self._argument)

    def _pick(self, node: exp.Expr) -> exp.Expr:
        if is_companion(node):
            return self._value(node, node, self._argument)
        if self._name in BY_TIME and function_name(node) == self._name:
            own = _argument(node)
            return self._value(node, own, own)
        return node

    def _value(self, node: exp.Expr, value: exp.Expr, argument: exp.Expr) -> exp.Expr:
        """Return *value* of the chosen row, in place of *node*."""
        keys: list[exp.Expr] = [time_of(self._chosen)] if self._chosen.time else []
        if self._chosen.by_table:
            keys.append(exp.column("tbname", table=self._chosen.relation, quoted=True))
        made = ROW_VALUES[self._name]([value.copy(), argument.copy(), *keys], self._context)
        binding = binding_of(node)
        if binding is not None:
            note(made, binding)
        return made


def _chooser_alone(own: list[exp.Expr]) -> tuple[exp.Expr | None, Chosen | None]:
    """Return the call that chooses the row; several are copies of one."""
    for call in own:
        chosen = chosen_by(call)
        if chosen is not None and chosen.alone:
            return call, chosen
    return None, None


def time_of(chosen: Chosen) -> exp.Column:
    """Return the time of the rows among which a call chooses."""
    return exp.column(chosen.time, table=chosen.relation, quoted=True)


def _own_nodes(select: SelectPlan) -> Iterator[exp.Expr]:
    """Yield what stands in the select list, in HAVING and in ORDER BY, queries in it left out."""
    own = [item.expression for item in select.items]
    own += [] if select.having is None else [select.having]
    for expression in [*own, *select.order_by]:
        yield from expression.walk(prune=lambda node: isinstance(node, exp.Query))


def _argument(call: exp.Expr) -> exp.Expr:
    """Return what an aggregate is computed of, behind DISTINCT, too."""
    first = arguments(call)[0]
    return first.expressions[0] if isinstance(first, exp.Distinct) else first

"""Rows that top, bottom, unique, tail and sample choose in each partition.

DuckDB has no such functions, so a SELECT with a call of one reads from a subquery of the rows that
are chosen: those whose number in their partition is low enough. The call itself is then the value
of its first argument. Rows come in the order of time unless the query has an order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from penstock.sql.functions.row_choosers import ROW_CHOOSERS
from penstock.sql.relational import (
    Derived,
    Join,
    NamedRows,
    RowSource,
    Scan,
    SelectItem,
    SelectPlan,
    binding_of,
)
from services.store.functions import function_name

_REALS = ("FLOAT", "DOUBLE")
#: these count a row whose value is NULL
_WITH_NULL = ("unique", "tail")
#: a random number of each row, to sample by
_DICE = "_penstock_dice"


def choose_rows(select: SelectPlan) -> SelectPlan:
    """Return *select*, if it chooses rows, over the chosen ones."""
    call = chooser_of(select)
    return select if call is None else _read_chosen(select, call)


def chooser_of(select: SelectPlan) -> exp.Anonymous | None:
    """Return the call in the select list that chooses rows; the binder lets several be only where
    they are the same.
    """
    for item in select.items:
        for node in item.expression.walk(prune=lambda n: isinstance(n, exp.Query)):
            if isinstance(node, exp.Anonymous) and function_name(node) in ROW_CHOOSERS:
                return node
    return None


def _read_chosen(select: SelectPlan, call: exp.Anonymous) -> SelectPlan:
    source = select.source
    assert source is not None and not isinstance(source, Join)  # the binder lets neither be
    time = _time(call)
    by_time = _by_time(time, source)
    meant = _items_by_name(select, source)
    conditions = [] if select.where is None else [_spell_out(select.where, meant)]
    known = _known(call)
    conditions += [] if known is None else [known]
    keys = [_spell_out(key, meant) for key in select.partition_by]
    inner = SelectPlan(
        (SelectItem(exp.Star()),),
        _with_dice(source) if function_name(call) == "sample" else source,
        where=exp.and_(*conditions, copy=False) if conditions else None,
        qualify=_test(call, keys, by_time),
    )
    order_by = select.order_by
    if not order_by and not select.distinct:
        order_by = by_time
    return replace(select, source=Derived(inner, source.name), where=None, order_by=order_by)


def _with_dice(source: NamedRows) -> RowSource:
    """Return *source* with a random number in each row: DuckDB does not order windows by a call
    that gives them.
    """
    dice = SelectItem(exp.Anonymous(this="random"), _DICE)
    return Derived(SelectPlan((SelectItem(exp.Star()), dice), source), source.name)


def _time(call: exp.Anonymous) -> exp.Column | None:
    """Return the time of the row, which the binder gives a call where there is one."""
    last = call.expressions[-1]
    return last if len(call.expressions) > 1 and isinstance(last, exp.Column) else None


def _items_by_name(select: SelectPlan, source: NamedRows) -> Mapping[str, exp.Expr]:
    """Return what the names of the select list mean that are no columns of *source*."""
    if isinstance(source, Derived):
        own = {column.name.lower() for column in source.columns}
    else:
        columns = source.columns.columns if source.columns is not None else ()
        own = {*(column.name.lower() for column in columns), "tbname"}
    return {
        item.name.lower(): item.expression
        for item in select.items
        if item.name and item.name.lower() not in own
    }


def _spell_out(node: exp.Expr, meant: Mapping[str, exp.Expr]) -> exp.Expr:
    """Return a copy of *node* with expressions in place of the names that the select list gives
    them, which the subquery does not know.
    """

    def spell(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column) or part.table:
            return part
        found = meant.get(part.name.lower())
        return part if found is None else exp.Paren(this=found.copy())

    return node.copy().transform(spell)


def _known(call: exp.Anonymous) -> exp.Expr | None:
    """Return the condition that a row has a value to be chosen by; None: it needs none."""
    if function_name(call) in _WITH_NULL:
        return None
    value = call.expressions[0]
    binding = binding_of(value)
    if binding is not None and binding.kind in _REALS:
        return exp.Not(this=exp.Anonymous(this="isnan", expressions=[value.copy()]))
    return exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null()))


def _by_time(time: exp.Column | None, source: NamedRows) -> tuple[exp.Ordered, ...]:
    """Return the order of rows in time; of one time, by the names of their tables."""
    if time is None:
        return ()
    order = (exp.Ordered(this=time.copy()),)
    if not isinstance(source, Scan) or not source.time:
        return order
    return (*order, exp.Ordered(this=exp.column("tbname", table=time.table or None)))


def _test(call: exp.Anonymous, keys: list[exp.Expr], by_time: tuple[exp.Ordered, ...]) -> exp.Expr:
    """Return the condition that a row is chosen, on its number in its partition."""
    name = function_name(call)
    value = call.expressions[0].copy()
    if name == "unique":
        return exp.EQ(this=_number([*keys, value], [*by_time]), expression=exp.Literal.number(1))
    counts = [int(str(n.this)) for n in call.expressions[1:] if isinstance(n, exp.Literal)]
    skipped = counts[1] if len(counts) > 1 else 0
    if name == "sample":
        order: list[exp.Expr] = [exp.Ordered(this=exp.column(_DICE))]
    elif name == "tail":
        order = [exp.Ordered(this=item.this.copy(), desc=True) for item in by_time]
    else:
        order = [exp.Ordered(this=value, desc=name == "top"), *by_time]
    number = _number(keys, order)
    below = exp.LTE(this=number, expression=exp.Literal.number(skipped + counts[0]))
    if not skipped:
        return below
    above = exp.GT(this=number.copy(), expression=exp.Literal.number(skipped))
    return exp.And(this=above, expression=below)


def _number(keys: list[exp.Expr], order: list[exp.Expr]) -> exp.Window:
    """Return the number of a row among those with the same *keys*, in *order*."""
    return exp.Window(
        this=exp.RowNumber(),
        partition_by=[key.copy() for key in keys],
        order=exp.Order(expressions=[item.copy() for item in order]),
    )

"""LIMIT and OFFSET in each partition, SLIMIT and SOFFSET over partitions.

With PARTITION BY, LIMIT counts the rows of each partition, in the order of ORDER BY (or of time),
and SLIMIT keeps the first partitions in the order of their keys. DuckDB has neither, so a select
with them becomes one from itself: the inner one numbers its rows and partitions, the outer one
chooses by number. GROUP BY has SLIMIT too, but its LIMIT counts all rows, as in standard SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from penstock.sql.relational import (
    NO_LIMITS,
    Derived,
    Join,
    RowLimits,
    Scan,
    SelectItem,
    SelectPlan,
)
from penstock.sql.statements import Query
from services.store.select_errors import refusal_of
from services.store.translate import aggregates

#: numbers of a row in its partition, of its partition, and of the row in the whole answer
_ROW = "_penstock_row"
_PARTITION = "_penstock_partition"
_PLACE = "_penstock_place"


def limit_partitions(select: SelectPlan, statement: Query) -> SelectPlan:
    """Return *select* with its limits of partitions written out.

    Raises:
        SqlSemanticError: SLIMIT without partitions, or limits of partitions with DISTINCT.
    """
    return _limit(select, statement) if _limits_partitions(select, statement) else select


def _limits_partitions(select: SelectPlan, statement: Query) -> bool:
    limits = select.limits
    if select.partition_by:
        return bool(limits)
    first = limits.partitions or limits.skipped_partitions
    if first is not None and not select.group_by:
        word = "SLIMIT" if limits.partitions is not None else "SOFFSET"
        raise statement.error(
            f"{word} counts partitions, and there are none",
            first,
            code="E_UNSUPPORTED_QUERY",
            hint="add PARTITION BY or GROUP BY, or write LIMIT and OFFSET",
        )
    return first is not None


def _limit(select: SelectPlan, statement: Query) -> SelectPlan:
    """Return the select from *select* that keeps what its limits leave."""
    _check_clauses(select, statement)
    keys = _keys(select)
    order = _order(select, keys)
    by_key = [exp.Ordered(this=key.copy(), nulls_first=False) for key in keys]
    numbers = (
        _number(_ROW, exp.RowNumber(), order, keys),
        _number(_PARTITION, exp.DenseRank(), by_key),
        _number(_PLACE, exp.RowNumber(), [*order, *by_key]),
    )
    inner = replace(
        select,
        items=(*select.items, *numbers),
        partition_by=(),
        group_by=_groups(select, keys),
        order_by=(),
        limits=NO_LIMITS,
    )
    limits = select.limits
    tests = list(_between(_PARTITION, limits.partitions, limits.skipped_partitions))
    outer_limits = RowLimits(limits.rows, limits.skipped)  # GROUP BY: as in standard SQL
    if select.partition_by:
        tests += _between(_ROW, limits.rows, limits.skipped)
        outer_limits = NO_LIMITS
    hidden = [exp.to_identifier(name) for name in (_ROW, _PARTITION, _PLACE)]
    return SelectPlan(
        (SelectItem(exp.Star(except_=hidden)),),
        Derived(inner, "_penstock_rows"),
        where=exp.and_(*tests, copy=False) if tests else None,
        order_by=(exp.Ordered(this=exp.column(_PLACE)),),
        limits=outer_limits,
    )


def _check_clauses(select: SelectPlan, statement: Query) -> None:
    if select.distinct:
        raise refusal_of(
            select,
            statement,
            "DISTINCT cannot be limited in each partition",
            "leave DISTINCT out and add the columns to PARTITION BY",
        )
    if select.qualify is not None:
        raise statement.error(
            "QUALIFY cannot be limited in each partition",
            select.qualify,
            code="E_UNSUPPORTED_QUERY",
            hint="put it in a subquery: SELECT … FROM (SELECT … QUALIFY …) PARTITION BY … LIMIT …",
        )


def _keys(select: SelectPlan) -> list[exp.Expr]:
    """Return the expressions that tell partitions apart."""
    if not select.partition_by:
        return [_meant(key, select) for key in select.group_by]
    return [
        _meant(key, select) if isinstance(key, exp.Literal) else key.copy()
        for key in select.partition_by
    ]


def _order(select: SelectPlan, keys: Sequence[exp.Expr]) -> list[exp.Expr]:
    """Return the items of ORDER BY, or the order of time without one."""
    items: list[exp.Expr] = []
    for item in select.order_by:
        made = item.copy()
        made.set("this", _meant(item.this, select))
        items.append(made)
    return items if items or _groups(select, keys) else _order_of_time(select)


def _groups(select: SelectPlan, keys: Sequence[exp.Expr]) -> tuple[exp.Expr, ...]:
    """Return what rows are grouped by: PARTITION BY does it where there are aggregates."""
    by_partition = select.partition_by and any(aggregates(i.expression) for i in select.items)
    return tuple(keys) if by_partition else select.group_by


def _order_of_time(select: SelectPlan) -> list[exp.Expr]:
    """Return the order of time of rows that come straight from a table; nothing for others."""
    source = select.source
    while isinstance(source, Join):
        source = source.left
    if not isinstance(source, Scan) or not source.time:
        return []
    return [exp.Ordered(this=exp.column(source.time, table=source.alias or None, quoted=True))]


def _meant(item: exp.Expr, select: SelectPlan) -> exp.Expr:
    """Return the expression that *item* of ORDER BY or GROUP BY means: `1` is the first column,
    and a name may be that of a column of the answer.
    """
    if isinstance(item, exp.Literal) and not item.is_string:
        # the binder has seen that there is such a column
        return select.items[int(str(item.this)) - 1].expression.copy()
    if isinstance(item, exp.Column) and not item.table:
        named = [i for i in select.items if i.name.lower() == item.name.lower()]
        if named:
            return named[0].expression.copy()
    return item.copy()


def _between(
    name: str, count: exp.Literal | None, skipped: exp.Literal | None
) -> Iterator[exp.Expr]:
    """Yield the tests that *name* is among *count* numbers behind *skipped*."""
    first = 0 if skipped is None else int(skipped.name)
    if first:
        yield exp.GT(this=exp.column(name), expression=exp.Literal.number(first))
    if count is not None:
        last = exp.Literal.number(first + int(count.name))
        yield exp.LTE(this=exp.column(name), expression=last)


def _number(
    name: str, function: exp.Expr, order: Sequence[exp.Expr], keys: Sequence[exp.Expr] = ()
) -> SelectItem:
    """Return the column *name* that counts rows in *order*, in each partition of *keys*."""
    window = exp.Window(this=function, partition_by=[key.copy() for key in keys])
    if order:
        window.set("order", exp.Order(expressions=[item.copy() for item in order]))
    return SelectItem(window, name)

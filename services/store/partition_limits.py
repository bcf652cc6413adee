"""LIMIT and OFFSET in each partition, SLIMIT and SOFFSET over partitions.

With PARTITION BY, LIMIT counts the rows of each partition, in the order of ORDER BY (or of time),
and SLIMIT keeps the first partitions in the order of their keys. DuckDB has neither, so a select
with them becomes one from itself: the inner one numbers its rows and partitions, the outer one
chooses by number. GROUP BY has SLIMIT too, but its LIMIT counts all rows, as in standard SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.statements import Query
from services.store.binding import Context
from services.store.translate import aggregates

#: numbers of a row in its partition, of its partition, and of the row in the whole answer
_ROW = "_penstock_row"
_PARTITION = "_penstock_partition"
_PLACE = "_penstock_place"
_LIMITS = ("limit", "offset", "slimit", "soffset")


def limit_partitions(tree: exp.Query, statement: Query, context: Context) -> exp.Query:
    """Return *tree*, whose tables are bound and windows computed, with its limits of partitions
    written out.

    Raises:
        SqlSemanticError: SLIMIT without partitions, or limits of partitions with DISTINCT.
    """
    for select in list(tree.find_all(exp.Select))[::-1]:  # innermost first
        if not _limits_partitions(select, statement):
            continue
        limited = _limit(select, statement, context)
        if select is tree:
            return limited
        select.replace(limited)
    return tree


def _limits_partitions(select: exp.Select, statement: Query) -> bool:
    by_partition = [key for key in ("slimit", "soffset") if select.args.get(key) is not None]
    if select.args.get("partition_by") is not None:
        return counts_by_partition(select)
    if by_partition and select.args.get("group") is None:
        raise statement.error(
            f"{by_partition[0].upper()} counts partitions, and there are none",
            select.args[by_partition[0]],
            code="E_UNSUPPORTED_QUERY",
            hint="add PARTITION BY or GROUP BY, or write LIMIT and OFFSET",
        )
    return bool(by_partition)


def _limit(select: exp.Select, statement: Query, context: Context) -> exp.Select:
    """Return the select from *select* that keeps what its limits leave."""
    if select.args.get("distinct") is not None:
        raise statement.error(
            "DISTINCT cannot be limited in each partition",
            select,
            code="E_UNSUPPORTED_QUERY",
            hint="leave DISTINCT out and add the columns to PARTITION BY",
        )
    if select.args.get("qualify") is not None:
        raise statement.error(
            "QUALIFY cannot be limited in each partition",
            select.args["qualify"].this,
            code="E_UNSUPPORTED_QUERY",
            hint="put it in a subquery: SELECT … FROM (SELECT … QUALIFY …) PARTITION BY … LIMIT …",
        )
    inner = select.copy()
    keys = _take_keys(inner, statement)
    order = _take_order(inner, statement, context)
    limits = {key: inner.args.pop(key, None) for key in _LIMITS}
    tests = list(_between(_PARTITION, limits["slimit"], limits["soffset"]))
    outer = exp.select(exp.Star(except_=[exp.to_identifier(n) for n in (_ROW, _PARTITION, _PLACE)]))
    if select.args.get("partition_by") is not None:
        tests += _between(_ROW, _count(limits["limit"]), _count(limits["offset"]))
    else:  # GROUP BY: as in standard SQL
        outer.set("limit", limits["limit"])
        outer.set("offset", limits["offset"])
    by_key = [exp.Ordered(this=key.copy(), nulls_first=False) for key in keys]
    inner.append("expressions", _number(_ROW, exp.RowNumber(), order, keys))
    inner.append("expressions", _number(_PARTITION, exp.DenseRank(), by_key))
    inner.append("expressions", _number(_PLACE, exp.RowNumber(), [*order, *by_key]))
    outer = outer.from_(exp.Subquery(this=inner, alias=_alias("_penstock_rows")))
    if tests:
        outer = outer.where(*tests)
    outer.set("order", exp.Order(expressions=[exp.Ordered(this=exp.column(_PLACE))]))
    return outer


def _take_keys(select: exp.Select, statement: Query) -> list[exp.Expr]:
    """Remove PARTITION BY from *select*, which groups where there are aggregates; return the
    expressions that tell partitions apart.
    """
    partition = select.args.pop("partition_by", None)
    if partition is None:
        group = select.args["group"].expressions
        return [_meant(key, select, statement) for key in group]
    keys = [_of_position(key.unalias(), select, statement) for key in partition.expressions]
    if any(aggregates(item) for item in select.expressions):
        select.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    return keys


def _take_order(select: exp.Select, statement: Query, context: Context) -> list[exp.Expr]:
    """Remove ORDER BY from *select*; return its items, or the order of time without one."""
    order = select.args.pop("order", None)
    if order is not None:
        items: list[exp.Expr] = [item.copy() for item in order.expressions]
        for item in items:
            item.set("this", _meant(item.this, select, statement))
        return items
    return [] if select.args.get("group") is not None else _order_of_time(select, context)


def _order_of_time(select: exp.Select, context: Context) -> list[exp.Expr]:
    """Return the order of time of rows that come straight from a table; nothing for others."""
    source = select.args["from_"].this if select.args.get("from_") else None
    if not isinstance(source, exp.Table):
        return []
    bound = next((b for b in context.tables.values() if b.name == source.this.name), None)
    if bound is None:
        return []
    table = source.alias or None
    return [exp.Ordered(this=exp.column(bound.time_column, table=table, quoted=True))]


def _meant(item: exp.Expr, select: exp.Select, statement: Query) -> exp.Expr:
    """Return the expression that *item* of ORDER BY or GROUP BY means: `1` is the first column,
    and a name may be that of a column of the answer.
    """
    if isinstance(item, exp.Literal) and not item.is_string:
        # the binder has seen that there is such a column
        column: exp.Expr = select.expressions[int(str(item.this)) - 1]
        return column.unalias().copy()
    if isinstance(item, exp.Column) and not item.table:
        named = [c for c in select.expressions if isinstance(c, exp.Alias)]
        same = [c for c in named if c.alias.lower() == item.name.lower()]
        if same:
            return same[0].unalias().copy()
    return item.copy()


def _of_position(key: exp.Expr, select: exp.Select, statement: Query) -> exp.Expr:
    """Return the column that a key of PARTITION BY means by its position, others as they are."""
    return _meant(key, select, statement) if isinstance(key, exp.Literal) else key


def _count(clause: exp.Expr | None) -> exp.Expr | None:
    """Return the number of LIMIT or OFFSET."""
    return None if clause is None else clause.expression


def _between(name: str, count: exp.Expr | None, skipped: exp.Expr | None) -> Iterator[exp.Expr]:
    """Yield the tests that *name* is among *count* numbers behind *skipped*."""
    first = 0 if skipped is None else int(skipped.name)
    if first:
        yield exp.GT(this=exp.column(name), expression=exp.Literal.number(first))
    if count is not None:
        last = exp.Literal.number(first + int(count.name))
        yield exp.LTE(this=exp.column(name), expression=last)


def _number(
    name: str, function: exp.Expr, order: Sequence[exp.Expr], keys: Sequence[exp.Expr] = ()
) -> exp.Expr:
    """Return the column *name* that counts rows in *order*, in each partition of *keys*."""
    window = exp.Window(this=function, partition_by=[key.copy() for key in keys])
    if order:
        window.set("order", exp.Order(expressions=[item.copy() for item in order]))
    return exp.alias_(window, name)


def _alias(name: str) -> exp.TableAlias:
    return exp.TableAlias(this=exp.to_identifier(name))


def counts_by_partition(select: exp.Select) -> bool:
    """Tell if *select* has PARTITION BY and limits of the rows or the number of its partitions."""
    return select.args.get("partition_by") is not None and any(map(select.args.get, _LIMITS))


def keep_limits(select: exp.Select, outer: exp.Select, time: str, keys: Sequence[str]) -> None:
    """Give *outer*, which reads the computed windows of *select*, the limits of partitions.

    Args:
        time: the column that orders windows.
        keys: the columns that tell partitions apart.
    """
    for key in ("slimit", "soffset"):
        if select.args.get(key) is not None:
            outer.set(key, select.args[key].copy())
    if not counts_by_partition(select):
        return
    columns = [exp.column(key, quoted=True) for key in keys]
    outer.set("partition_by", nodes.PartitionBy(expressions=columns))
    if outer.args.get("order") is None:
        outer.set("order", exp.Order(expressions=[exp.Ordered(this=exp.column(time, quoted=True))]))

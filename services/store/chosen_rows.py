"""Rows that top, bottom, unique, tail and sample choose in each partition.

DuckDB has no such functions, so a SELECT with a call of one reads from a subquery of the rows that
are chosen: those whose number in their partition is low enough. The call itself is then the value
of its first argument. Rows come in the order of time unless the query has an order.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from penstock.sql.functions.row_choosers import ROW_CHOOSERS
from penstock.sql.relational import binding_of
from services.store.binding import BoundTable, Context
from services.store.functions import function_name

_REALS = ("FLOAT", "DOUBLE")
#: these count a row whose value is NULL
_WITH_NULL = ("unique", "tail")
#: a random number of each row, to sample by
_DICE = "_penstock_dice"


def choose_rows(tree: exp.Query, context: Context) -> None:
    """Let each SELECT of *tree* that chooses rows read the chosen ones, in place. *tree* is bound,
    and so are its tables.
    """
    for select in list(tree.find_all(exp.Select))[::-1]:  # innermost first
        call = _chooser(select)
        if call is not None:
            _read_chosen(select, call, context)


def _chooser(select: exp.Select) -> exp.Anonymous | None:
    """Return the call in the select list that chooses rows; the binder lets several be only where
    they are the same.
    """
    for item in select.expressions:
        for node in item.walk(prune=lambda n: isinstance(n, exp.Query)):
            if isinstance(node, exp.Anonymous) and function_name(node) in ROW_CHOOSERS:
                return node
    return None


def _read_chosen(select: exp.Select, call: exp.Anonymous, context: Context) -> None:
    source = select.args["from_"].this
    table = _table(source, context)
    time = _time(call)
    meant = _items_by_name(select, source, table)
    rows = _with_dice(source) if function_name(call) == "sample" else source.copy()
    inner = exp.select(exp.Star()).from_(rows)
    where = select.args.get("where")
    if where is not None:
        inner = inner.where(_spell_out(where.this, meant), copy=False)
        select.set("where", None)
    known = _known(call)
    if known is not None:
        inner = inner.where(known, copy=False)
    partition = select.args.get("partition_by")
    keys = [
        _spell_out(key.unalias(), meant)
        for key in (partition.expressions if partition is not None else [])
    ]
    inner.set("qualify", exp.Qualify(this=_test(call, keys, _by_time(time, table))))
    select.args["from_"].set("this", _as_source(inner, source))
    if time is not None and not select.args.get("order") and not select.args.get("distinct"):
        select.set("order", exp.Order(expressions=_by_time(time, table)))


def _as_source(rows: exp.Select, source: exp.Expr) -> exp.Subquery:
    """Return *rows* as what stands in FROM in place of *source*, under its name."""
    name = exp.to_identifier(source.alias_or_name, quoted=True)
    return exp.Subquery(this=rows, alias=exp.TableAlias(this=name))


def _with_dice(source: exp.Expr) -> exp.Subquery:
    """Return *source* with a random number in each row: DuckDB does not order windows by a call
    that gives them.
    """
    dice = exp.alias_(exp.Anonymous(this="random"), _DICE)
    return _as_source(exp.select(exp.Star(), dice).from_(source.copy()), source)


def _table(source: exp.Expr, context: Context) -> BoundTable | None:
    """Return the stored table that *source* is, if it is one."""
    if not isinstance(source, exp.Table):
        return None
    return next((b for b in context.tables.values() if b.name == source.this.name), None)


def _time(call: exp.Anonymous) -> exp.Column | None:
    """Return the time of the row, which the binder gives a call where there is one."""
    last = call.expressions[-1]
    return last if len(call.expressions) > 1 and isinstance(last, exp.Column) else None


def _items_by_name(
    select: exp.Select, source: exp.Expr, table: BoundTable | None
) -> Mapping[str, exp.Expr]:
    """Return what the names of the select list mean that are no columns of *source*."""
    if table is not None:
        own = {column.lower() for column in (*table.columns, "tbname")}
    else:
        own = {name.lower() for name in getattr(source.this, "named_selects", [])}
    return {
        item.alias.lower(): item.this
        for item in select.expressions
        if isinstance(item, exp.Alias) and item.alias.lower() not in own
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


def _by_time(time: exp.Column | None, table: BoundTable | None) -> list[exp.Expr]:
    """Return the order of rows in time; of one time, by the names of their tables."""
    if time is None:
        return []
    order: list[exp.Expr] = [exp.Ordered(this=time.copy())]
    if table is not None:
        order.append(exp.Ordered(this=exp.column("tbname", table=time.table or None)))
    return order


def _test(call: exp.Anonymous, keys: list[exp.Expr], by_time: list[exp.Expr]) -> exp.Expr:
    """Return the condition that a row is chosen, on its number in its partition."""
    name = function_name(call)
    value = call.expressions[0].copy()
    if name == "unique":
        return exp.EQ(this=_number([*keys, value], by_time), expression=exp.Literal.number(1))
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

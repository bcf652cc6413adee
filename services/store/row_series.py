"""Functions of a row and the rows before it (`diff`, `csum`, …), as DuckDB's window functions.

A select that has them becomes one from a subquery of the same name. The innermost one reads the
rows: it has FROM and WHERE, and what each function takes. Those around it compute the functions in
each partition, in the order of time. The select itself keeps its columns, PARTITION BY (for LIMIT),
ORDER BY and limits, and leaves out the rows that no function has a value for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from penstock.duck.types import duck_type
from penstock.sql.functions import SERIES
from penstock.sql.functions.duck_series import unpack
from penstock.sql.functions.series import is_whole
from penstock.sql.relational import (
    Derived,
    Join,
    RowSource,
    SelectItem,
    SelectPlan,
    SeriesCall,
    SeriesOrder,
    binding_of,
    change_order,
    is_alias,
    note,
    series_call,
)
from penstock.sql.statements import Query
from services.store.binding import Context
from services.store.select_errors import refusal_of

_PREFIX = "_penstock_series_"
#: selects with such functions in each other: each is several to DuckDB
_MOST_NESTED = 16
_HUGEINT = exp.DataType.build("HUGEINT", dialect="duckdb")
_DOUBLE = exp.DataType.build("DOUBLE", dialect="duckdb")


def write_series(select: SelectPlan, context: Context, *, on_top: bool) -> SelectPlan:
    """Return *select* with its functions of a row and the rows before it written out.

    Args:
        on_top: its rows are the answer of the query.
    """
    if select.series is None:
        return select
    layers = _Layers(select, select.series, context)
    return layers.write(_order_by(select, select.series, on_top=on_top))


def check_depth(select: SelectPlan, depth: int, statement: Query) -> None:
    """Refuse too many selects with such functions in each other; *select* is number *depth*. Raises
    SqlSemanticError.
    """
    if depth > _MOST_NESTED:
        raise refusal_of(
            select,
            statement,
            f"more than {_MOST_NESTED} selects in each other compute functions over their rows",
            "store what the inner ones give in a table",
        )


def refuse_in_windows(select: exp.Select, statement: Query) -> None:
    """Refuse functions of a row and the rows before it in a select with a window clause. Raises
    SqlSemanticError.
    """
    for node in select.walk(prune=lambda n: isinstance(n, exp.Query) and n is not select):
        name = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
        if name in SERIES:
            window = select.args["window"].sql(dialect="penstock")
            raise statement.error(
                f"{name}() gives a value for each row, and a window one for many",
                node,
                code="E_SERIES_HERE",
                hint=f"SELECT _wstart, {name}(x) FROM (SELECT _wstart, avg(v) AS x … {window})",
            )


def _order_by(select: SelectPlan, order: SeriesOrder, *, on_top: bool) -> tuple[exp.Ordered, ...]:
    """Return the order of *select*: that of time where somebody sees it and nobody asks for
    another.
    """
    limited = select.limits.rows is not None or select.limits.skipped is not None
    if select.order_by or select.distinct or not (on_top or limited):
        return select.order_by
    alias = source_name(select)
    columns = (order.time, *order.ties)
    return tuple(exp.Ordered(this=exp.column(c, table=alias, quoted=True)) for c in columns)


def source_name(select: SelectPlan) -> str:
    """Return the name of the one table, or subquery, that *select* is from."""
    source = select.source
    assert source is not None and not isinstance(source, Join)  # the binder lets neither be
    return source.name


class _Layers:
    """The subqueries that one select is computed from."""

    def __init__(self, select: SelectPlan, order: SeriesOrder, context: Context) -> None:
        self._select = select
        self._order = order
        self._context = context
        self._alias = source_name(select)
        self._count = 0
        #: what is computed from the rows, from the columns of that, and so on
        self._layers: list[list[SelectItem]] = [[]]
        #: calls that are written, with the columns of their packed values
        self._written: list[tuple[exp.Expr, exp.Column]] = []

    def write(self, order_by: tuple[exp.Ordered, ...]) -> SelectPlan:
        """Return the select over the layers, with values in place of its calls."""
        self._layers[0] += self._items_by_name()
        place = self._place()

        def write_values(node: exp.Expr) -> exp.Expr:
            made: exp.Expr = node.transform(lambda part: self._value(part, place))
            return made

        items = tuple(
            replace(item, expression=write_values(item.expression)) for item in self._select.items
        )
        order_by = change_order(order_by, write_values)
        return replace(
            self._select,
            items=items,
            source=self._source(),
            where=self._condition(),
            order_by=order_by,
            series=None,
        )

    # ------------------------------------------------------------ the rows

    def _place(self) -> tuple[exp.Expr, exp.Expr, exp.Expr]:
        """Return the columns that tell where a row stands: its partition, time and order."""
        time = exp.column(self._order.time, table=self._alias, quoted=True)
        ticks = exp.Anonymous(this=f"epoch_{self._order.precision}", expressions=[time])
        keys = [self._meant(key) for key in self._select.partition_by]
        own = {key.name.lower() for key in keys if isinstance(key, exp.Column)}
        ties = [c for c in self._order.ties if c.lower() not in own]
        columns = [exp.column(c, table=self._alias, quoted=True) for c in ties]
        return (
            self._add(0, _together(keys)),
            self._add(0, ticks),
            self._add(0, _together(columns)),
        )

    def _meant(self, key: exp.Expr) -> exp.Expr:
        """Return what a key of PARTITION BY means: `1` is the first column."""
        if isinstance(key, exp.Literal) and not key.is_string:
            # the binder has seen that there is such a column
            key = self._select.items[int(key.name) - 1].expression
        return key.copy()

    def _items_by_name(self) -> list[SelectItem]:
        """Return the items of the select list that WHERE, a key or an argument calls by name."""
        pending = [*self._select.partition_by]
        pending += [] if self._select.where is None else [self._select.where]
        pending += [argument for call in self._calls() for argument in call.expressions[:1]]
        named = {item.name.lower(): item for item in self._select.items if item.name}
        found: set[str] = set()
        while pending:
            fresh = _names_in(pending.pop()) & named.keys() - found
            found |= fresh
            pending += [named[name].expression for name in fresh]
        # in the order of the list, where a name stands before what it is used in
        return [item for name, item in named.items() if name in found]

    # ------------------------------------------------------------ the calls

    def _calls(self) -> Iterator[exp.Anonymous]:
        """Yield the calls of the select itself."""
        for part in [*(item.expression for item in self._select.items), *self._select.order_by]:
            for node in part.walk(prune=lambda n: isinstance(n, exp.Query)):
                if isinstance(node, exp.Anonymous) and series_call(node) is not None:
                    yield node

    def _value(self, node: exp.Expr, place: tuple[exp.Expr, exp.Expr, exp.Expr]) -> exp.Expr:
        """Return the value of a call, and any other node as it is."""
        call = series_call(node)
        if call is None:
            return node
        binding = binding_of(node)
        assert binding is not None and isinstance(node, exp.Anonymous)  # the binder has typed it
        value = _fit(unpack(self._pack(node, call, place), self._context), call)
        note(value, binding)
        return value

    def _pack(
        self, node: exp.Anonymous, call: SeriesCall, place: tuple[exp.Expr, exp.Expr, exp.Expr]
    ) -> exp.Expr:
        """Return the column of the packed value of a call; equal calls have one."""
        for known, column in self._written:
            if known == node:
                return column.copy()
        row = _Row(self, self._add(0, _value(node.expressions[0].copy(), call)), place)
        packed = call.function.duckdb(row, call.options)
        column = self._add(row.level, packed)
        self._written.append((node.copy(), column))
        return column.copy()

    def add_before(self, level: int, value: exp.Expr) -> exp.Expr:
        """Add a column of an inner layer."""
        return self._add(level, value)

    @property
    def context(self) -> Context:
        """The surroundings of the query."""
        return self._context

    def _add(self, level: int, value: exp.Expr) -> exp.Column:
        """Add a column to a layer, under a name that nothing else has."""
        while len(self._layers) <= level:
            self._layers.append([])
        name = f"{_PREFIX}{self._count}"
        while name in self._order.names:
            self._count += 1
            name = f"{_PREFIX}{self._count}"
        self._count += 1
        self._layers[level].append(SelectItem(value, name))
        return exp.column(name, quoted=True)

    # ------------------------------------------------------------ the subqueries

    def _source(self) -> RowSource:
        """Return the subquery that the select reads."""
        source = self._select.source
        where = self._select.where
        for layer in self._layers:
            inner = SelectPlan((SelectItem(exp.Star()), *layer), source, where=where)
            source = Derived(inner, self._alias)
            where = None
        assert source is not None  # the binder wants rows for such functions
        return source

    def _condition(self) -> exp.Expr:
        """Return the test that any function has a value for a row, packed NULL or another."""
        tests: list[exp.Expr] = [
            exp.Not(this=exp.Is(this=column.copy(), expression=exp.Null()))
            for _, column in self._written
        ]
        return exp.or_(*tests, copy=False)


class _Row:
    """The columns that one function may name (`SeriesRow`)."""

    def __init__(
        self, layers: _Layers, value: exp.Expr, place: tuple[exp.Expr, exp.Expr, exp.Expr]
    ) -> None:
        self._layers = layers
        self._value = value
        self._place = place
        #: layer that the function itself is in
        self.level = 1

    @property
    def scope(self) -> Context:
        return self._layers.context

    @property
    def value(self) -> exp.Expr:
        return self._value.copy()

    @property
    def partition(self) -> exp.Expr:
        return self._place[0].copy()

    @property
    def time(self) -> exp.Expr:
        return self._place[1].copy()

    @property
    def order(self) -> exp.Expr:
        return self._place[2].copy()

    def before(self, value: exp.Expr) -> exp.Expr:
        """Return a column that is computed before; each knows those that were asked for before."""
        column = self._layers.add_before(self.level, value)
        self.level += 1
        return column


def _names_in(part: exp.Expr) -> set[str]:
    """Return the names of items of the select list in *part*."""
    return {column.name.lower() for column in part.find_all(exp.Column) if is_alias(column)}


def _together(columns: Sequence[exp.Expr]) -> exp.Expr:
    """Return one value for several."""
    if not columns:
        return exp.Literal.number(0)
    return columns[0] if len(columns) == 1 else exp.Anonymous(this="row", expressions=[*columns])


def _value(argument: exp.Expr, call: SeriesCall) -> exp.Expr:
    """Return an argument as a HUGEINT, or as a DOUBLE that is NULL where it is NaN."""
    if call.argument.kind == "TIMESTAMP":
        binding = binding_of(argument)
        assert binding is not None  # the binder has typed it
        argument = exp.Anonymous(this=f"epoch_{binding.precision}", expressions=[argument])
    if is_whole(call.argument):
        return exp.Cast(this=argument, to=_HUGEINT.copy())
    number = exp.Cast(this=argument, to=_DOUBLE.copy())
    known = exp.Not(this=exp.Anonymous(this="isnan", expressions=[number]))
    return exp.Case(ifs=[exp.If(this=known, true=number.copy())])


def _fit(value: exp.Expr, call: SeriesCall) -> exp.Expr:
    """Return a value with the type of its call; a whole number that does not fit is NULL."""
    if not call.type.integer:
        return value
    to = exp.DataType.build(duck_type(call.type.kind, "ms", ""), dialect="duckdb")
    return exp.TryCast(this=value, to=to)

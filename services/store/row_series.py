"""Functions of a row and the rows before it (`diff`, `csum`, …), as DuckDB's window functions.

A select that has them becomes one from a subquery of the same name. The innermost one reads the
rows: it has FROM and WHERE, and what each function takes. Those around it compute the functions in
each partition, in the order of time. The select itself keeps its columns, PARTITION BY (for LIMIT),
ORDER BY and limits, and leaves out the rows that no function has a value for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from penstock.duck.types import duck_type
from penstock.sql.functions import SERIES
from penstock.sql.functions.duck_series import unpack
from penstock.sql.functions.series import is_whole
from penstock.sql.relational import (
    SeriesCall,
    SeriesOrder,
    binding_of,
    is_alias,
    note,
    series_call,
    series_order,
)
from penstock.sql.statements import Query
from services.store.binding import Context

_PREFIX = "_penstock_series_"
#: selects with such functions in each other: each is several to DuckDB
_MOST_NESTED = 16
_HUGEINT = exp.DataType.build("HUGEINT", dialect="duckdb")
_DOUBLE = exp.DataType.build("DOUBLE", dialect="duckdb")


def write_series(tree: exp.Query, statement: Query, context: Context) -> None:
    """Write out the functions of a row and the rows before it in *tree*, whose tables are bound and
    windows computed.

    Raises:
        SqlSemanticError: too many selects with such functions are in each other.
    """
    for select in list(tree.find_all(exp.Select))[::-1]:  # innermost first
        order = series_order(select)
        if order is None:
            continue
        _check_depth(select, statement)
        _add_order(select, order, on_top=select is tree)
        source, condition = _Layers(select, order, context).write()
        select.args["from_"].set("this", source)
        select.set("where", exp.Where(this=condition))


def _check_depth(select: exp.Select, statement: Query) -> None:
    depth = 0
    node: exp.Expr | None = select
    while node is not None:
        depth += isinstance(node, exp.Select) and series_order(node) is not None
        node = node.parent
    if depth > _MOST_NESTED:
        raise statement.error(
            f"more than {_MOST_NESTED} selects in each other compute functions over their rows",
            select,
            code="E_UNSUPPORTED_QUERY",
            hint="store what the inner ones give in a table",
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


def _add_order(select: exp.Select, order: SeriesOrder, *, on_top: bool) -> None:
    """Give rows in the order of time where somebody sees it and nobody asks for another."""
    limited = any(select.args.get(key) is not None for key in ("limit", "offset"))
    if select.args.get("order") is not None or select.args.get("distinct") is not None:
        return
    if on_top or limited:
        alias = select.args["from_"].this.alias
        columns = (order.time, *order.ties)
        items = [exp.Ordered(this=exp.column(c, table=alias, quoted=True)) for c in columns]
        select.set("order", exp.Order(expressions=items))


class _Layers:
    """The subqueries that one select is computed from."""

    def __init__(self, select: exp.Select, order: SeriesOrder, context: Context) -> None:
        self._select = select
        self._order = order
        self._context = context
        self._alias: str = select.args["from_"].this.alias
        self._count = 0
        #: what is computed from the rows, from the columns of that, and so on
        self._layers: list[list[exp.Expr]] = [[]]
        #: calls that are written, with the columns of their packed values
        self._written: list[tuple[exp.Expr, exp.Column]] = []

    def write(self) -> tuple[exp.Expr, exp.Expr]:
        """Replace the calls of the select; return what it reads instead of its table, and the
        condition on that.
        """
        self._layers[0] += self._items_by_name()
        place = self._place()
        for call in self._calls():
            self._replace(call, place)
        return self._source(), self._condition()

    # ------------------------------------------------------------ the rows

    def _place(self) -> tuple[exp.Expr, exp.Expr, exp.Expr]:
        """Return the columns that tell where a row stands: its partition, time and order."""
        time = exp.column(self._order.time, table=self._alias, quoted=True)
        ticks = exp.Anonymous(this=f"epoch_{self._order.precision}", expressions=[time])
        partition = self._select.args.get("partition_by")
        keys = [self._meant(k) for k in (partition.expressions if partition is not None else [])]
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
        key = key.unalias()
        if isinstance(key, exp.Literal) and not key.is_string:
            # the binder has seen that there is such a column
            key = self._select.expressions[int(key.name) - 1].unalias()
        return key.copy()

    def _items_by_name(self) -> list[exp.Expr]:
        """Return the items of the select list that WHERE, a key or an argument calls by name."""
        parts = [self._select.args.get("where"), self._select.args.get("partition_by")]
        parts += [argument for call in self._calls() for argument in call.expressions[:1]]
        named = {c.alias.lower(): c for c in self._select.expressions if isinstance(c, exp.Alias)}
        found: set[str] = set()
        pending = [part for part in parts if part is not None]
        while pending:
            fresh = _names_in(pending.pop()) & named.keys() - found
            found |= fresh
            pending += [named[name].this for name in fresh]
        # in the order of the list, where a name stands before what it is used in
        return [item.copy() for name, item in named.items() if name in found]

    # ------------------------------------------------------------ the calls

    def _calls(self) -> Iterator[exp.Anonymous]:
        """Yield the calls of the select itself."""
        order = self._select.args.get("order")
        for part in [*self._select.expressions, *(order.expressions if order is not None else [])]:
            nodes = part.walk(prune=lambda n: isinstance(n, exp.Query))
            yield from [n for n in nodes if series_call(n) is not None]

    def _replace(self, node: exp.Anonymous, place: tuple[exp.Expr, exp.Expr, exp.Expr]) -> None:
        call = series_call(node)
        binding = binding_of(node)
        assert call is not None and binding is not None  # the binder has typed it
        value = _fit(unpack(self._pack(node, call, place), self._context), call)
        note(value, binding)
        node.replace(value)

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
        self._layers[level].append(exp.alias_(value, name, quoted=True))
        return exp.column(name, quoted=True)

    # ------------------------------------------------------------ the subqueries

    def _source(self) -> exp.Expr:
        """Return the subquery that the select reads."""
        source: exp.Expr = self._select.args["from_"].this.copy()
        where = self._select.args.get("where")
        for layer in self._layers:
            inner = exp.select(exp.Star(), *layer).from_(source)
            if where is not None:
                inner.set("where", where.copy())
                where = None
            alias = exp.TableAlias(this=exp.to_identifier(self._alias, quoted=True))
            source = exp.Subquery(this=inner, alias=alias)
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

"""Random SELECTs over the tables of a world. Whatever is limited is ordered by every column."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TypeVar

from tests.fuzz_select import draw_aggregates, draw_windows, operations
from tests.fuzz_select.answer import scope_of
from tests.fuzz_select.draw_expressions import ExpressionDrawer
from tests.fuzz_select.drawing import Drawing, is_tbname
from tests.fuzz_select.kinds import SMALL
from tests.fuzz_select.tables import GROUPED, World
from tests.fuzz_select.tree import (
    Apply,
    Column,
    Derived,
    Exists,
    Expression,
    InQuery,
    Join,
    Ordered,
    Query,
    Select,
    Source,
    TableSource,
    Union,
    Value,
    WindowColumn,
    output_kinds,
    rough,
)

Q = TypeVar("Q", Select, Union)
TABLES = ("p", "m", "m", "e", "a", "b")
#: names under which only one row can be at a time
SINGLE = ("p", "e", "a", "b")


class SelectDrawer:
    """Draws SELECTs; every relation gets a name of its own."""

    def __init__(self, dice: random.Random, world: World, zone: str) -> None:
        self._dice = dice
        self._world = world
        self._zone = zone
        self._named = 0

    def draw(self) -> Query:
        """Return a query."""
        shape = self._dice.choice(
            (
                self._plain,
                self._plain,
                self._grouped,
                self._grouped,
                self._windowed,
                self._windowed,
                self._windowed,
                self._union,
                self._partitioned,
            )
        )
        return shape()

    def draw_from_table(self) -> Select:
        """Return a SELECT of rows of one table."""
        return self._rows_of(self._table_source())

    # ---------------------------------------------------------------- shapes

    def _plain(self, *, exact: bool = False) -> Select:
        return self._rows_of(self._any_source(), exact=exact)

    def _rows_of(self, source: Source, *, exact: bool = False) -> Select:
        at = self._from(source)
        at.exact = exact or self._dice.random() < 0.5
        items = tuple(self._item(at) for _ in range(self._dice.randint(1, 4)))
        select = Select(items, at.source, self._where(at))
        if at.exact and self._dice.random() < 0.3:
            select = replace(select, distinct=True)
        return self._end(select)

    def _grouped(self, *, exact: bool = False) -> Select:
        at = self._from(self._any_source())
        at.exact = exact or self._dice.random() < 0.5
        keys = tuple(self._key(at) for _ in range(self._dice.randint(0, 2)))
        at.in_time_order = self._times_differ(at, keys)
        where = self._where(at)
        having = draw_aggregates.having(at) if keys and self._dice.random() < 0.4 else None
        items = self._beside_keys(at, keys)
        by = {"partition": keys} if self._dice.random() < 0.3 else {"group": keys}
        select = Select(items, at.source, where, having=having, **by)
        return self._end(select, limited=not select.partition)

    def _windowed(self) -> Select:
        name = self._dice.choice(TABLES)
        window_of_rows = name in SINGLE
        at = self._from(TableSource(name, name))
        at.in_window = True
        at.exact = self._dice.random() < 0.5
        keys = self._window_keys(name)
        at.in_time_order = window_of_rows or any(is_tbname(key) for key in keys)
        # states and events want the rows of one table, and to be told so
        of_one_table = name in ("p", "a", "b") or any(map(is_tbname, keys))
        window = draw_windows.window(at, self._world.step, of_one_table=of_one_table)
        items: list[Expression] = [
            WindowColumn(kind, name)
            for kind, name in (
                ("TIMESTAMP", "_wstart"),
                ("TIMESTAMP", "_wend"),
                ("BIGINT", "_wduration"),
            )
            if name == "_wstart" or self._dice.random() < 0.3
        ]
        items += [*keys, *draw_aggregates.aggregates(at)]
        select = Select(tuple(items), at.source, self._where(at), partition=keys, window=window)
        return self._end(select, limited=not keys)

    def _partitioned(self) -> Select:
        """Rows of each partition, of which some are left."""
        name = self._dice.choice(("m", "m", "p", "e"))
        at = self._from(TableSource(name, name))
        keys = tuple(self._key(at, columns_only=True) for _ in range(self._dice.randint(1, 2)))
        at.exact = True
        items = (*keys, *(self._item(at) for _ in range(self._dice.randint(1, 3))))
        select = Select(items, at.source, self._where(at), partition=keys)
        return self._limit(select, order=self._order(select, every=True))

    def _union(self) -> Union:
        left = self._exact_select()
        right = self._matching(output_kinds(left))
        union = Union(left, right, every=self._dice.random() < 0.5)
        return self._end(union)

    def _exact_select(self) -> Select:
        made = self._dice.choice((self._plain, self._plain, self._grouped))(exact=True)
        return replace(made, order=(), limit=None, offset=None)

    def _matching(self, kinds: tuple[str, ...]) -> Select:
        """Return a SELECT with columns of these kinds."""
        at = self._from(self._table_source())
        items = tuple(at.expressions.draw(kind, 1) for kind in kinds)
        return Select(items, at.source, self._where(at))

    # ---------------------------------------------------------------- FROM

    def _name(self) -> str:
        self._named += 1
        return f"q{self._named}"

    def _table_source(self, *, renamed: bool = True) -> TableSource:
        name = self._dice.choice(TABLES)
        return TableSource(name, self._name() if renamed else name)

    def _any_source(self) -> Source:
        roll = self._dice.random()
        if roll < 0.5:
            return self._table_source(renamed=roll < 0.1)
        if roll < 0.7:
            return Derived(self._exact_query(), self._name())
        return self._join()

    def _exact_query(self) -> Query:
        select = self._exact_select()
        if self._dice.random() < 0.2:
            return self._end(select)
        return select

    def _join(self) -> Join:
        left = self._table_source()
        right: TableSource | Derived = self._table_source()
        if self._dice.random() < 0.2:
            right = Derived(self._exact_select(), self._name())
        side = self._dice.choice(("INNER", "INNER", "LEFT", "RIGHT", "FULL", "CROSS"))
        if side == "CROSS":
            return Join(left, right, side, None)
        return Join(left, right, side, self._on(left, right, side))

    def _on(self, left: TableSource, right: TableSource | Derived, side: str) -> Expression:
        """Return the condition of a join: two columns are equal, and perhaps something else."""
        ours = scope_of(left, self._world)
        theirs = scope_of(right, self._world)
        pairs = [
            (a, b)
            for a in ours
            for b in theirs
            if a.kind == b.kind and a.kind in (*GROUPED, "TIMESTAMP", "BIGINT")
        ]
        if not pairs:
            return Value("BOOL", True, "TRUE")
        a, b = self._dice.choice(pairs)
        equal = Apply(operations.comparison("=", a.kind, b.kind), (a, b))
        if side == "FULL" or self._dice.random() < 0.6:
            return equal
        more = self._drawer([*ours, *theirs]).condition(1)
        return Apply(operations.LOGIC[0], (equal, more))

    def _drawer(self, columns: list[Column]) -> ExpressionDrawer:
        return ExpressionDrawer(self._dice, columns, self._zone, self._world.base)

    def _from(self, source: Source) -> Drawing:
        return Drawing(self._drawer(scope_of(source, self._world)), source)

    # ---------------------------------------------------------------- clauses

    def _item(self, at: Drawing) -> Expression:
        drawer = at.expressions
        column = drawer.column()
        if column is not None and self._dice.random() < 0.3:
            return column
        return drawer.draw(drawer.some_kind(), 2, rough=not at.exact)

    def _where(self, at: Drawing) -> Expression | None:
        if self._dice.random() < 0.4:
            return None
        if not at.in_window and self._dice.random() < 0.25:
            return self._subquery(at)
        if isinstance(at.source, TableSource) and self._dice.random() < 0.5:
            return at.expressions.plain_condition()
        return at.expressions.condition(2)

    def _subquery(self, at: Drawing) -> Expression:
        """Return a condition with a subquery: IN, or EXISTS of rows that belong to ours."""
        inner = self._from(self._table_source())
        kind = self._dice.choice(("INT", SMALL, "VARCHAR", "BIGINT", "TIMESTAMP"))
        if self._dice.random() < 0.5 and at.expressions.has(kind):
            of = at.expressions.draw(kind, 1)
            item = inner.expressions.draw(kind, 1)
            return InQuery(of, Select((item,), inner.source, self._where_without_query(inner)))
        theirs = inner.expressions.column(kind)
        ours = at.expressions.column(kind)
        condition = inner.expressions.condition(1)
        if theirs is not None and ours is not None and not _is_unqualified(at.source):
            equal = Apply(operations.comparison("=", kind, kind), (theirs, ours))
            condition = Apply(operations.LOGIC[0], (equal, condition))
        return Exists(Select((Value("INT", 1, "1"),), inner.source, condition))

    def _where_without_query(self, at: Drawing) -> Expression | None:
        return at.expressions.condition(1) if self._dice.random() < 0.5 else None

    def _key(self, at: Drawing, *, columns_only: bool = False) -> Expression:
        """Return what rows are grouped by; a constant would be the place of a column."""
        drawer = at.expressions
        column = drawer.column(*GROUPED) or drawer.column()
        if column is None or (not columns_only and self._dice.random() < 0.2):
            drawn = drawer.draw(self._dice.choice(("INT", "VARCHAR", "BOOL")), 1)
            if isinstance(drawn, Apply):
                return drawn
        assert column is not None
        return column

    def _times_differ(self, at: Drawing, keys: tuple[Expression, ...]) -> bool:
        source = at.source
        if not isinstance(source, TableSource):
            return False
        return source.table in SINGLE or any(is_tbname(key) for key in keys)

    def _beside_keys(self, at: Drawing, keys: tuple[Expression, ...]) -> tuple[Expression, ...]:
        shown = [key for key in keys if self._dice.random() < 0.9]
        return (*shown, *draw_aggregates.aggregates(at))

    # ---------------------------------------------------------------- windows

    def _window_keys(self, name: str) -> tuple[Expression, ...]:
        stable = self._world.stable_of(name)
        choice: tuple[tuple[str, str], ...] = (("SMALL", "n"), ("BOOL", "o"))
        if stable:
            choice = (("VARCHAR", "tbname"), ("VARCHAR", "tbname"), ("VARCHAR", "g"), *choice)
        if self._dice.random() < 0.4:
            return ()
        kind, column = self._dice.choice(choice)
        return (Column(kind, name, column),)

    # ---------------------------------------------------------------- the end of a SELECT

    def _end(self, query: Q, *, limited: bool = True) -> Q:
        """Add ORDER BY, and LIMIT where the order is one of all columns."""
        roll = self._dice.random()
        if roll < 0.4:
            return query
        exact = isinstance(query, Union) or not any(map(rough, query.items))
        order = self._order(query, every=exact)
        if isinstance(query, Select) and self._dice.random() < 0.3:
            query = replace(query, by_place=True)
        if roll < 0.7 or not exact or not limited:
            return replace(query, order=order)
        return self._limit(query, order)

    def _limit(self, query: Q, order: tuple[Ordered, ...]) -> Q:
        offset = self._dice.choice((None, 0, 1, 3))
        return replace(query, order=order, limit=self._dice.choice((0, 1, 2, 5)), offset=offset)

    def _order(self, query: Query, *, every: bool) -> tuple[Ordered, ...]:
        select = query.left if isinstance(query, Union) else query
        exact = [i for i, item in enumerate(select.items) if not rough(item)]
        places = self._dice.sample(exact, len(exact))
        if not every:
            places = places[:1]
        nulls = (None, None, True, False)
        return tuple(
            Ordered(place, self._dice.random() < 0.4, self._dice.choice(nulls)) for place in places
        )


def _is_unqualified(source: Source) -> bool:
    return isinstance(source, TableSource) and source.alias == source.table

"""Which rows of a table a SELECT can need at all: of which child tables, and between which times.

The query's own WHERE is still computed, so a scope may be too wide, never too narrow. What lies
outside is not read: segments of other times, partitions of other tables, and most of the tail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl
from sqlglot import exp

from penstock.catalog.model import Table
from penstock.rows.partition import partition
from penstock.sql.free_literals import free_number
from penstock.sql.source_names import TIME_ALIASES
from services.store.conditions import SWAPPED, conditions
from services.store.free_literals import Value
from services.store.relation import TablePart
from services.store.times import literal_ticks

_FROM = (exp.GT, exp.GTE, exp.EQ)
_TO = (exp.LT, exp.LTE, exp.EQ)


@dataclass(frozen=True)
class ReadScope:
    """`tables` None: all; `low` and `high`: times in ticks, both within, None without an end."""

    tables: frozenset[str] | None = None
    low: int | None = None
    high: int | None = None

    def among(self, tables: Sequence[str]) -> ReadScope:
        """Return what of the scope is of *tables*."""
        both = frozenset(tables) if self.tables is None else self.tables & frozenset(tables)
        return replace(self, tables=both)

    def within(self, low: int | None, high: int | None) -> ReadScope:
        """Return what of the scope is between two times."""
        lows = [t for t in (self.low, low) if t is not None]
        highs = [t for t in (self.high, high) if t is not None]
        return replace(self, low=max(lows, default=None), high=min(highs, default=None))

    def narrow(self, image: Sequence[TablePart], table: Table) -> list[TablePart]:
        """Return the parts of *image* with what can hold rows of the scope.

        All versions of a row have its key, so of each all or none are in the scope.
        """
        homes = None
        if self.tables is not None and table.kind == "stable":
            homes = {partition(name, table.partitions) for name in self.tables}
        return [
            self._narrow_part(part, table.time_column)
            for part in image
            if homes is None or part.partition in homes
        ]

    def _narrow_part(self, part: TablePart, time_column: str) -> TablePart:
        found = tuple(
            s
            for s in part.found
            if (self.high is None or s.low <= self.high)
            and (self.low is None or s.high >= self.low)
        )
        return replace(part, found=found, frames=self._narrow_frames(part.frames, time_column))

    def _narrow_frames(
        self, frames: tuple[pl.DataFrame, ...], time_column: str
    ) -> tuple[pl.DataFrame, ...]:
        conditions = []
        if self.low is not None:
            conditions.append(pl.col(time_column) >= self.low)
        if self.high is not None:
            conditions.append(pl.col(time_column) <= self.high)
        if self.tables is not None:
            conditions.append(_is_one_of(sorted(self.tables)))
        if not conditions:
            return frames
        # only what is left of a frame is copied
        narrowed = (frame.filter(*conditions) for frame in frames)
        return tuple(rows for rows in narrowed if not rows.is_empty())


def _is_one_of(tables: Sequence[str]) -> pl.Expr:
    name = pl.col("tbname")
    # a comparison takes a small part of the time of a search in a set
    return name == tables[0] if len(tables) == 1 else name.is_in(tables)


EVERYTHING = ReadScope()


@dataclass(frozen=True)
class RowCondition:
    """What a SELECT says of the rows of one table.

    A condition on what is joined is no condition on the rows that the join is made from: a table in
    a join has no *where*.

    Args:
        where: the condition of the SELECT.
        name: what it calls the table.
        timezone: of the query.
    """

    where: exp.Expr | None = None
    name: str = ""
    timezone: str = "UTC"

    def scope(self, table: Table, values: Sequence[Value] = ()) -> ReadScope:
        """Return what the SELECT can need of *table*.

        Args:
            values: of the free literals in the condition, if it has any.
        """
        return scope_of(self.where, self.name, table, self.timezone, values)

    def detached(self) -> RowCondition:
        """Return the same without the tree around it."""
        return replace(self, where=None if self.where is None else self.where.copy())


ALL_ROWS = RowCondition()


def scope_of(
    where: exp.Expr | None,
    name: str,
    table: Table,
    timezone: str,
    values: Sequence[Value] = (),
) -> ReadScope:
    """Return what a SELECT from one table can need of it; see `RowCondition`."""
    scope = EVERYTHING
    if where is None:
        return scope
    reader = _Reader(table, name.lower(), timezone, values)
    for condition in conditions(where):
        scope = reader.apply(condition, scope)
    return scope


class _Reader:
    """Reads conditions on the columns of one table."""

    def __init__(self, table: Table, alias: str, timezone: str, values: Sequence[Value]) -> None:
        self._alias = alias
        self._values = values
        self._timezone = timezone
        self._precision = table.precision
        own = {c.name.lower() for c in (*table.columns, *table.tags)}
        time = table.time_column.lower()
        self._times = {time} | (set(TIME_ALIASES) - own)
        self._has_names = "tbname" not in own

    def apply(self, condition: exp.Expr, scope: ReadScope) -> ReadScope:
        """Return what is left of *scope* where *condition* is true."""
        if isinstance(condition, exp.Between):
            if self._is_time(condition.this) and not condition.args.get("symmetric"):
                return scope.within(
                    self._below(condition.args["low"]), self._above(condition.args["high"])
                )
            return scope
        if isinstance(condition, exp.In):
            return self._apply_in(condition, scope)
        kind = type(condition)
        if kind not in SWAPPED:
            return scope
        if self._is_column(condition.this):
            return self._compare(condition.this, kind, condition.expression, scope)
        return self._compare(condition.expression, SWAPPED[kind], condition.this, scope)

    def _compare(
        self, column: exp.Expr, kind: type[exp.Expr], value: exp.Expr, scope: ReadScope
    ) -> ReadScope:
        if self._is_time(column):
            return scope.within(
                self._below(value) if kind in _FROM else None,
                self._above(value) if kind in _TO else None,
            )
        if kind is exp.EQ and self._is_name(column) and _is_text(value):
            return scope.among([self._text(value)])
        return scope

    def _apply_in(self, condition: exp.In, scope: ReadScope) -> ReadScope:
        values = condition.expressions
        if condition.args.get("query") or not values or not self._is_name(condition.this):
            return scope
        return scope.among([*map(self._text, values)]) if all(map(_is_text, values)) else scope

    def _is_column(self, node: exp.Expr) -> bool:
        return isinstance(node, exp.Column) and node.table.lower() in ("", self._alias)

    def _is_time(self, node: exp.Expr) -> bool:
        return self._is_column(node) and node.name.lower() in self._times

    def _is_name(self, node: exp.Expr) -> bool:
        return self._has_names and self._is_column(node) and node.name.lower() == "tbname"

    # a literal may lie between two ticks, so that both ends are one tick wider

    def _below(self, value: exp.Expr) -> int | None:
        found = self._ticks(value)
        return None if found is None else found - 1

    def _above(self, value: exp.Expr) -> int | None:
        found = self._ticks(value)
        return None if found is None else found + 1

    def _ticks(self, value: exp.Expr) -> int | None:
        given = self._given(value)
        if given is None:
            return literal_ticks(value, self._precision, self._timezone)
        return given if isinstance(given, int) else None

    def _text(self, value: exp.Expr) -> str:
        given = self._given(value)
        return str(value.this if given is None else given)

    def _given(self, value: exp.Expr) -> Value | None:
        """Return the value of a free literal at this run; None: it is the one that is written."""
        number = free_number(value)
        return None if number is None or not self._values else self._values[number - 1]


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and node.is_string
